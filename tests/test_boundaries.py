"""Boundaries: who may import whom, who builds an accelerator, and that nothing is ever unpickled."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PARTS = ["core", "cli", *(path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("plugins/*/src"))]
SOURCES = {
    path.relative_to(ROOT).as_posix(): path
    for part in PARTS
    for path in sorted((ROOT / part / "src").rglob("*.py"))
}


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text("utf-8"), str(path)))


def imports(path: Path) -> set[str]:
    """The modules that a file imports by absolute names, wherever in it."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module)
    return found


def calls(path: Path, name: str) -> list[ast.Call]:
    """The calls of something of this name, or of an attribute of this name."""
    found = [node for node in nodes(path) if isinstance(node, ast.Call)]
    return [call for call in found if name in (getattr(call.func, "id", ""), getattr(call.func, "attr", ""))]


def where(condition: bool, name: str) -> list[str]:
    return [name] if condition else []


def test_the_sources_are_found() -> None:
    assert "core/src/separata/registry.py" in SOURCES
    assert "cli/src/separata_cli/root.py" in SOURCES


def test_an_accelerator_is_built_in_one_place() -> None:
    builders = [name for name, path in SOURCES.items() if calls(path, "Accelerator")]
    assert builders == ["core/src/separata/placement.py"]


def test_the_core_knows_neither_command_line_nor_plugins_by_name() -> None:
    packages = [
        path.name for part in PARTS for path in (ROOT / part / "src").iterdir() if path.name != "separata"
    ]
    core = {name: path for name, path in SOURCES.items() if name.startswith("core/")}
    known = [
        f"{name} imports {module}"
        for name, path in core.items()
        for module in imports(path)
        if module.partition(".")[0] in packages
    ]
    assert known == []


def test_nothing_imports_the_command_line() -> None:
    outside = {name: path for name, path in SOURCES.items() if not name.startswith("cli/")}
    assert [
        name for name, path in outside.items() if any("separata_cli" in module for module in imports(path))
    ] == []


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_of_the_core_only_the_verbs_draw_on_the_command_lines_libraries(library: str) -> None:
    users = [
        name
        for name, path in SOURCES.items()
        if name.startswith("core/") and any(module.partition(".")[0] == library for module in imports(path))
    ]
    assert users == ["core/src/separata/verbs.py"]


def test_a_hook_module_imports_the_core_and_the_standard_library_only() -> None:
    import sys

    heavy = [
        f"{name} imports {module}"
        for name, path in SOURCES.items()
        if path.name == "_plugin.py"
        for module in imports(path)
        if module.partition(".")[0] not in {"separata", *sys.stdlib_module_names}
    ]
    assert heavy == []


def test_a_paper_imports_no_plugin_that_it_does_not_declare() -> None:
    import tomllib

    undeclared: list[str] = []
    for part in PARTS[2:]:
        if not (ROOT / part / "pyproject.toml").is_file():
            continue
        project = tomllib.loads((ROOT / part / "pyproject.toml").read_text())["project"]
        # An extra's kit is imported inside functions; the import blocker refuses it anywhere else.
        declared = str([project["dependencies"], project.get("optional-dependencies", {})])
        own = "separata_" + Path(part).name.replace("-", "_")
        undeclared += [
            f"{name} imports {module}"
            for name, path in SOURCES.items()
            if name.startswith(f"{part}/")
            for module in {found.partition(".")[0] for found in imports(path)}
            if module.startswith("separata_") and module != own and module.replace("_", "-") not in declared
        ]
    assert undeclared == []


@pytest.mark.parametrize("library", ["pickle", "dill", "joblib", "cloudpickle", "shelve", "marshal"])
def test_nothing_can_be_unpickled(library: str) -> None:
    assert [name for name, path in SOURCES.items() if library in imports(path)] == []


def test_foreign_checkpoints_are_read_as_weights_only() -> None:
    careless = [
        f"{name}:{call.lineno}"
        for name, path in SOURCES.items()
        for call in calls(path, "load")
        if ast.unparse(call.func) == "torch.load" and "weights_only=True" not in ast.unparse(call)
    ]
    assert careless == []


def test_arrays_are_never_read_with_objects_in_them() -> None:
    careless = [name for name, path in SOURCES.items() if "allow_pickle=True" in path.read_text("utf-8")]
    assert careless == []
