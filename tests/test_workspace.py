"""The workspace tool: its parts, what they need, what changed, and whether the registry agrees with them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from separata import catalog, discovery, registry
from separata.testing import Site

TOOLS = Path(__file__).resolve().parents[1] / "tools"

PROJECT = """
[project]
name = "{name}"
version = "0.1.0"
dependencies = {dependencies}

[project.optional-dependencies]
{extras}
"""


def add_part(folder: Path, name: str, *dependencies: str, **extras: list[str]) -> None:
    folder.mkdir(parents=True)
    lines = "\n".join(f"{extra} = {json.dumps(listed)}" for extra, listed in extras.items())
    text = PROJECT.format(name=name, dependencies=json.dumps(dependencies), extras=lines)
    (folder / "pyproject.toml").write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace of core, command line, a kit, and papers of which one builds on another."""
    folder = tmp_path / "workspace"
    add_part(folder / "core", "separata", "attrs>=24", torch=["torch>=2.6", "accelerate"])
    add_part(folder / "cli", "separata-cli", "separata>=0.1", "typer>=0.26")
    add_part(
        folder / "plugins/kit-toys", "separata-kit-toys", "separata[torch]", "numpy", full=["a-heavy-one"]
    )
    add_part(folder / "plugins/ball", "separata-ball", "separata", "Separata_Kit.Toys>=0.1", "scipy")
    add_part(folder / "plugins/aball", "separata-aball", "separata", "separata-ball>=0.1")
    add_part(folder / "plugins/car", "separata-car", "separata", "attrs>=24")
    (folder / "docs").mkdir()
    (folder / "plugins/README.md").touch()
    return folder


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tool."""
    monkeypatch.syspath_prepend(str(TOOLS))
    import workspace

    return workspace


def test_parts_are_found_by_name_and_plugins_all_at_once(workspace: Any, root: Path) -> None:
    assert [part.name for part in workspace.parts(["core", "plugins"], root)] == [
        "core",
        "aball",
        "ball",
        "car",
        "kit-toys",
    ]


def test_one_plugin_is_a_part_too(workspace: Any, root: Path) -> None:
    assert [part.name for part in workspace.parts(["plugins/car"], root)] == ["car"]


def test_what_is_no_part_is_told(workspace: Any, root: Path) -> None:
    with pytest.raises(SystemExit, match="docs is no part of the workspace"):
        workspace.parts(["docs"], root)


def test_requirements_are_those_of_all_extras_but_full_without_the_workspaces_own(
    workspace: Any, root: Path
) -> None:
    assert list(workspace.requirements(["core", "cli", "plugins"], root)) == [
        "accelerate",
        "attrs>=24",
        "numpy",
        "scipy",
        "torch>=2.6",
        "typer>=0.26",
    ]


def test_requirements_of_one_part_are_its_own(workspace: Any, root: Path) -> None:
    assert list(workspace.requirements(["plugins/ball"], root)) == ["scipy"]


def test_requirements_are_printed_one_a_line(workspace: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert workspace.main(["requirements", "cli"]) == 0
    assert capsys.readouterr().out.splitlines() == list(workspace.requirements(["cli"]))


@pytest.fixture
def change(root: Path) -> Callable[[str], None]:
    """Commit the workspace, then change one of its files in a second commit."""

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)

    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message=first")

    def change(path: str, moved_to: str = "") -> None:
        file = root / path
        if moved_to:
            (root / moved_to).parent.mkdir(parents=True, exist_ok=True)
            file.rename(root / moved_to)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("changed")
        git("add", "--all")
        git("commit", "--quiet", "--message=second")

    return change


ALL = ["aball", "ball", "car", "kit-toys"]


@pytest.mark.parametrize(
    ("path", "slugs"),
    [
        ("plugins/car/src/new.py", ["car"]),
        ("plugins/aball/src/new.py", ["aball"]),
        ("plugins/ball/src/new.py", ["aball", "ball"]),
        ("plugins/kit-toys/src/new.py", ["aball", "ball", "kit-toys"]),
        ("plugins/car/src/größe.py", ALL),
        ("core/src/new.py", ALL),
        ("cli/src/new.py", ALL),
        ("tools/new.py", ALL),
        ("tox.ini", ALL),
        ("docs/new.md", []),
        ("plugins/README.md", []),
    ],
)
def test_a_change_reaches_the_plugins_that_it_can_have_touched(
    path: str, slugs: list[str], workspace: Any, root: Path, change: Callable[..., None]
) -> None:
    change(path)
    assert workspace.changed("HEAD~1", root) == slugs


def test_a_file_that_moves_to_another_plugin_changes_both(
    workspace: Any, change: Callable[..., None], root: Path
) -> None:
    (root / "plugins/car/method.py").write_text("long enough to be seen as the same file\n" * 9)
    change("docs/other.md")
    change("plugins/car/method.py", moved_to="plugins/aball/method.py")
    assert workspace.changed("HEAD~1", root) == ["aball", "car"]


def test_without_a_change_nothing_is_touched(workspace: Any, root: Path, change: Callable[..., None]) -> None:
    assert workspace.changed("HEAD", root) == []


COPY = "core/src/separata/_catalog.json"
HOOKS = """
@hookimpl
def separata_offers():
    yield Offer("kernel", "ball", "a:b", summary="A ball.", tags={"round", "cuda"})

@hookimpl
def separata_claims():
    yield Claim("bounces", says="It bounces.", paper="0.9", proof="a:b")

@hookimpl
def separata_inputs():
    yield Input("floor", file="floor", licence="")
"""
REGISTRY = """# Kept by hand.
[registry]
schema = 1
reserved = ["toy", "car"]

[plugins.toy]
dist = "separata-toy"  # a remark
title = "Toys"
summary = "A plugin for tests."
"""


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The catalogue tool in a workspace with one plugin, which is installed."""
    site = Site(tmp_path / "site")
    site.add("toy", HOOKS)
    monkeypatch.syspath_prepend(str(site.folder))
    monkeypatch.syspath_prepend(str(TOOLS))
    monkeypatch.setattr(discovery, "scan", site.installed)
    monkeypatch.setattr(registry, "catalogue", lambda: catalog.Catalogue({}, frozenset()))
    monkeypatch.delenv("SEPARATA_PLUGINS", raising=False)
    registry.default.cache_clear()
    import catalogue

    add_part(tmp_path / "plugins/toy", "separata-toy")
    (tmp_path / "registry.toml").write_text(REGISTRY)
    for name, path in list(vars(catalogue).items()):
        # Every file that it knows is moved, so that the test can't write into this repository.
        if isinstance(path, Path):
            moved = tmp_path / path.relative_to(TOOLS.parent)
            moved.parent.mkdir(parents=True, exist_ok=True)
            monkeypatch.setattr(catalogue, name, moved)
    yield catalogue
    registry.default.cache_clear()
    for name in [name for name in sys.modules if name.startswith("separata_toy")]:
        del sys.modules[name]


@pytest.fixture
def refused(catalogue: Any, capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """What the check says when it exits with 1."""

    def refused() -> str:
        capsys.readouterr()
        assert catalogue.check() == 1
        return capsys.readouterr().err

    return refused


def test_the_copy_has_what_is_written_by_hand_and_what_plugins_declare(catalogue: Any) -> None:
    assert catalogue.write() == 0
    entry = catalog.parse(catalogue.COPY.read_text()).plugins["toy"]
    assert (entry.title, entry.claims, entry.inputs) == ("Toys", ("bounces",), ("floor",))
    assert entry.offers == (
        catalog.CatalogueOffer("kernel", "ball", "A ball.", frozenset({"round", "cuda"})),
    )


def test_writing_keeps_what_people_wrote_as_they_wrote_it(catalogue: Any) -> None:
    catalogue.write()
    assert catalogue.REGISTRY.read_text().startswith(REGISTRY)


def test_writing_twice_changes_nothing(catalogue: Any) -> None:
    catalogue.write()
    first = catalogue.REGISTRY.read_text(), catalogue.COPY.read_text()
    catalogue.write()
    assert (catalogue.REGISTRY.read_text(), catalogue.COPY.read_text()) == first


def test_what_was_just_written_is_in_order(catalogue: Any) -> None:
    catalogue.write()
    assert catalogue.check() == 0


def test_a_copy_that_was_never_written_is_out_of_date(catalogue: Any, refused: Callable[[], str]) -> None:
    catalogue.write()
    catalogue.COPY.unlink()
    assert refused() == f"{COPY} is out of date: run python tools/workspace.py catalogue\n"


def test_a_row_that_was_edited_puts_the_copy_out_of_date(catalogue: Any, refused: Callable[[], str]) -> None:
    catalogue.write()
    catalogue.REGISTRY.write_text(catalogue.REGISTRY.read_text().replace('"Toys"', '"More toys"'))
    assert f"{COPY} is out of date: run python tools/workspace.py catalogue" in refused().splitlines()


def test_a_plugin_that_declares_something_else_puts_registry_and_copy_out_of_date(
    catalogue: Any, refused: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue.write()
    declared = catalogue.declared
    monkeypatch.setattr(catalogue, "declared", lambda slug: {**declared(slug), "claims": ["floats"]})
    assert {"registry.toml", COPY} <= {line.split()[0] for line in refused().splitlines()}


def test_a_plugin_without_a_row_is_named(catalogue: Any, refused: Callable[[], str], tmp_path: Path) -> None:
    catalogue.write()
    add_part(tmp_path / "plugins/car", "separata-car")
    assert refused() == "plugins/car has no row in registry.toml\n"


def test_a_row_without_a_plugin_is_named(catalogue: Any, refused: Callable[[], str]) -> None:
    catalogue.write()
    with catalogue.REGISTRY.open("a") as file:
        file.write('\n[plugins.car]\ndist = "separata-car"\ntitle = "Cars"\nsummary = "Drive."\n')
    assert refused() == "registry.toml names car, and there is no plugins/car\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[registry", "can't be read"),
        ("[registry]\nschema = \n", "at line 2"),
        ("[registry]\nreserved = []\n", "has no [plugins.SLUG]"),
        (None, "No such file"),
    ],
)
@pytest.mark.parametrize("word", ["check", "write"])
def test_a_registry_that_can_not_be_read_is_told_and_nothing_is_written(
    word: str, text: str | None, says: str, catalogue: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue.REGISTRY.unlink() if text is None else catalogue.REGISTRY.write_text(text)
    assert getattr(catalogue, word)() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("registry.toml ")
    assert says in line
    assert not catalogue.COPY.exists()


def test_a_plugin_that_is_not_installed_is_told_with_the_way_to_install_it(
    catalogue: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(discovery, "scan", dict)
    assert catalogue.write() == 1
    assert capsys.readouterr().err.startswith("toy can't be asked what it declares: ")
