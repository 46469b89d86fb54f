"""Start-up: what each command imports, among 57 plugins and 200 other distributions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import attrs
import pytest

from separata.testing import Site

PLUGINS = 57
OTHERS = 200
HEAVY = {"torch", "numpy", "accelerate", "transformers", "safetensors"}

HOOKS = """
@hookimpl
def separata_offers():
    yield Offer("kernel", "ball", "separata_{slug}.things:Ball", summary="A ball.")

@hookimpl
def separata_commands():
    yield Command("separata_{slug}.cli:app", summary="Play.")
"""
CLI = """
from separata import verbs

app = verbs.app("Play.")

@app.command()
def bounce():
    import torch
"""
COMMAND = """
import json, sys
from separata_cli.main import run
code = run(sys.argv[1:])
print("\\0" + json.dumps([code, sorted(sys.modules)]))
"""


@attrs.frozen
class Started:
    """What a process printed and what it had imported at its end."""

    out: str
    code: int
    modules: frozenset[str]

    @property
    def packages(self) -> set[str]:
        return {name.partition(".")[0] for name in self.modules}

    @property
    def plugins(self) -> set[str]:
        return {name for name in self.packages if name.startswith("separata_")} - {"separata_cli"}


def add_plugins(site: Site, count: int = PLUGINS) -> None:
    for number in range(count):
        slug = f"toy{number:02}"
        files = {"cli.py": CLI, "things.py": "class Ball: pass\n"}
        site.add(slug, HOOKS.format(slug=slug), summary=f"Toy number {number}.", files=files)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Started]:
    """Start Python with code and arguments where many plugins are installed; each combination once."""
    site = Site(tmp_path_factory.mktemp("startup") / "site")
    add_plugins(site)
    for number in range(OTHERS):
        site.add_metadata(f"other-{number:03}", summary="No plugin.", requires=["numpy", "torch>=2"])

    @cache
    def start(code: str, *arguments: str, **variables: str) -> Started:
        environment = site.environment(SEPARATA_CACHE=str(site.folder / "cache"), **variables)
        environment.pop("SEPARATA_PLUGINS", None)
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert "\0" in done.stdout, done.stderr
        out, _, found = done.stdout.rpartition("\0")
        exit_code, modules = json.loads(found)
        return Started(out, exit_code, frozenset(modules))

    return start


@pytest.fixture(scope="module")
def separata(start: Callable[..., Started]) -> Callable[..., Started]:
    return lambda *arguments, **variables: start(COMMAND, *arguments, **variables)


COMPLETION = {"_SEPARATA_COMPLETE": "complete_bash", "COMP_WORDS": "separata toy", "COMP_CWORD": "1"}
# What each touches: arguments and variables.
NAMES_ONLY = {
    "--help": (["--help"], {}),
    "completion": ([], COMPLETION),
    "list": (["list"], {}),
    "find": (["find", "ball"], {}),
}


@pytest.mark.parametrize("case", NAMES_ONLY)
def test_what_shows_names_imports_no_plugin(case: str, separata: Callable[..., Started]) -> None:
    arguments, variables = NAMES_ONLY[case]
    assert separata(*arguments, **variables).plugins == set()


@pytest.mark.parametrize("case", NAMES_ONLY)
def test_what_shows_names_imports_nothing_heavy(case: str, separata: Callable[..., Started]) -> None:
    arguments, variables = NAMES_ONLY[case]
    assert separata(*arguments, **variables).packages & HEAVY == set()


@pytest.mark.parametrize("case", ["--help", "completion"])
def test_help_and_completion_do_without_rich_and_without_configs(
    case: str, separata: Callable[..., Started]
) -> None:
    arguments, variables = NAMES_ONLY[case]
    assert separata(*arguments, **variables).packages & {"rich", "cattrs", "pydantic", "packaging"} == set()


def test_help_shows_every_plugin_all_the_same(separata: Callable[..., Started]) -> None:
    out = separata("--help").out
    assert [number for number in range(PLUGINS) if f"Toy number {number}." not in out] == []


def test_completion_offers_every_plugin_all_the_same(separata: Callable[..., Started]) -> None:
    offered = separata(**COMPLETION).out.split()
    assert offered == [f"toy{number:02}" for number in range(PLUGINS)]


def test_list_shows_every_plugin_all_the_same(separata: Callable[..., Started]) -> None:
    out = separata("list").out
    assert [number for number in range(PLUGINS) if f"toy{number:02}" not in out] == []


def test_a_plugins_help_imports_that_plugin_and_nothing_heavy(separata: Callable[..., Started]) -> None:
    done = separata("toy30", "--help")
    assert "bounce" in done.out
    assert done.plugins == {"separata_toy30"}
    assert done.packages & HEAVY == set()


MODULES = "\nimport json, sys\nprint('\\0' + json.dumps([0, sorted(sys.modules)]))"


def test_importing_the_core_imports_neither_the_heavy_libraries_nor_the_command_lines(
    start: Callable[..., Started],
) -> None:
    done = start("import separata" + MODULES)
    assert done.packages & (HEAVY | {"typer", "click", "rich", "attrs", "cattrs", "pluggy"}) == set()


@pytest.mark.parametrize(
    "code",
    [
        "from separata import hookimpl, Offer, Claim, Command, Input, Paper",
        "separata.plugins()",
        "separata.find('x')",
    ],
)
def test_what_hook_modules_and_searches_need_imports_nothing_heavy(
    code: str, start: Callable[..., Started]
) -> None:
    done = start(f"import separata\n{code}{MODULES}")
    assert done.packages & (HEAVY | {"typer", "click", "rich"}) == set()
    assert done.plugins == set()


def test_getting_one_offer_imports_that_plugin_only(start: Callable[..., Started]) -> None:
    done = start("import separata\nseparata.get('kernel', 'toy30/ball')" + MODULES)
    assert done.plugins == {"separata_toy30"}
    assert done.packages & (HEAVY | {"typer", "rich"}) == set()


def test_getting_one_offer_imports_of_its_plugin_what_it_names(start: Callable[..., Started]) -> None:
    done = start("import separata\nseparata.get('kernel', 'toy30/ball')" + MODULES)
    assert {name for name in done.modules if name.startswith("separata_toy30.")} == {
        "separata_toy30._plugin",
        "separata_toy30.things",
    }


def test_the_start_up_benchmark_measures_what_it_says(tmp_path: Path) -> None:
    tool = Path(__file__).resolve().parents[1] / "tools" / "startup_benchmark.py"
    command = [sys.executable, str(tool), "--plugins", "2", "--others", "1", "--rounds", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    rows = json.loads(done.stdout)
    assert (rows[0]["case"], rows[0]["ratio"]) == ("python -c 'import typer'", 1)
    assert all(row["cpu_s"] > 0 for row in rows)
