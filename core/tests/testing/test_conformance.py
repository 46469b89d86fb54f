"""The kit as a whole: what it counts, what it excuses, and what each plugin-wide check catches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from separata.registry import Registry
from separata.testing import Site, conformance
from separata.testing.checks import Check, CheckFailed, NotOffered
from separata.testing.conformance import FLOORS, Case, Outcome, Report

CLI = '''
from typing import Annotated
import typer
from separata import verbs
app = verbs.app("A toy.")
@app.command()
def double(number: Annotated[int, typer.Argument(help="Any.")]) -> None:
    """Double a number.

    Example: separata {slug} double 3
    """
    typer.echo(2 * number)
'''
CONFIG = """
import attrs
@attrs.frozen(kw_only=True)
class DoubleConfig:
    factor: float = attrs.field(default=2.0, metadata={"help": "By how much."})
"""
METHOD = """
def double(x):
    return 2 * x
def example():
    import torch
    from separata.testing import KernelExample
    return KernelExample(
        inputs=lambda generator, dtype: (torch.randn(3, generator=generator, dtype=torch.float64).to(dtype),),
        empty=lambda dtype: (torch.empty(0, dtype=dtype),),
    )
"""
HOOKS = """
@hookimpl
def separata_offers():
    yield Offer("kernel", "double", "separata_{slug}.method:double", summary="Doubles a tensor.",
                reference="separata_{slug}.method:double", example="separata_{slug}.method:example"{config})
@hookimpl
def separata_commands():
    yield Command("separata_{slug}.cli:app", summary="Double numbers.")
"""


@pytest.fixture
def plugin(isolated_registry: Site) -> Any:
    """Adds a plugin that keeps every rule, but for the changes asked for."""

    def add(slug: str, **changes: Any) -> None:
        config = f', config="separata_{slug}.config:DoubleConfig"'
        texts = {
            "hooks": HOOKS.replace("{config}", config),
            "cli.py": CLI,
            "config.py": CONFIG,
            "method.py": METHOD,
        }
        texts |= {name: changes.pop(name) for name in list(changes) if name in texts}
        texts = {name: text.replace("{slug}", slug) for name, text in texts.items()}
        given = {"requires": ("separata", "torch", "attrs"), "summary": "Doubles.", **changes}
        isolated_registry.add(slug, texts.pop("hooks"), files=texts, **given)

    return add


def failed(slug: str, site: Site, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    # The probes ask in processes of their own, which see the site through PYTHONPATH.
    monkeypatch.setenv("PYTHONPATH", str(site.folder))
    report = conformance.check(slug, registry=Registry(site.installed()))
    return [outcome.case.check.name for outcome in report.outcomes if outcome.state == "failed"]


@pytest.mark.parametrize(
    ("slug", "changes", "caught"),
    [
        ("toyright", {}, []),
        ("toydist", {"dist": "other-toydist"}, ["slug-and-distribution-agree"]),
        ("toyheavy", {"hooks": "import torch\n" + HOOKS.replace("{config}", "")}, ["hook-module-is-light"]),
        (
            "toyundeclared",
            {"method.py": "import hypothesis\n" + METHOD, "requires": ("separata", "torch", "attrs")},
            ["imports-are-declared"],
        ),
        ("toylong", {"summary": "x" * 80 + "."}, ["summaries-are-one-sentence"]),
        (
            "toyconfig",
            {
                "config.py": CONFIG
                + "    # not in the file\n    scale: object = attrs.field(default=print, metadata={'help': 'x'})\n"
            },
            ["configs-round-trip"],
        ),
        (
            "toymute",
            {"cli.py": CLI.replace("Example: separata {slug} double 3", "")},
            ["verbs-show-an-example"],
        ),
        (
            "toybare",
            {"hooks": HOOKS.replace(', example="separata_{slug}.method:example"{config}', "")},
            ["offers-have-examples"],
        ),
    ],
)
def test_a_fault_fails_exactly_its_check(
    slug: str,
    changes: dict[str, Any],
    caught: list[str],
    plugin: Any,
    isolated_registry: Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugin(slug, **changes)
    assert failed(slug, isolated_registry, monkeypatch) == caught


def test_a_path_that_leads_nowhere_is_caught(
    plugin: Any, isolated_registry: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = HOOKS.replace(
        'reference="separata_{slug}.method:double"', 'reference="separata_{slug}.method:gone"'
    )
    plugin("toygone", hooks=hooks.replace("{config}", ""))
    # The kernel can't be tried without its reference, which is the second failure.
    assert failed("toygone", isolated_registry, monkeypatch) == ["names-resolve", "gives-an-example"]


def test_a_package_that_imports_its_method_is_caught(
    plugin: Any, isolated_registry: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin("toyeager")
    (isolated_registry.folder / "separata_toyeager/__init__.py").write_text("import torch\n")
    assert failed("toyeager", isolated_registry, monkeypatch) == ["package-is-light"]


def outcome_of(run: Any, excuse: str = "") -> Outcome:
    return Case("kernel", "toy/one", Check("rule", "A rule.", run), None, excuse).run()


def fails(_: object) -> None:
    raise CheckFailed("it is wrong")


def does_not_apply(_: object) -> None:
    raise NotOffered("nothing is promised")


def test_an_excused_failure_is_expected() -> None:
    assert outcome_of(fails, "known fault").state == "expected failure"


def test_an_excused_check_that_passes_fails() -> None:
    found = outcome_of(lambda _: None, "known fault")
    assert (found.state, "remove" in found.reason) == ("failed", True)


def test_any_exception_is_a_failure_with_its_type() -> None:
    def crashes(_: object) -> None:
        raise RuntimeError("no\nmore")

    assert outcome_of(crashes).reason == "RuntimeError: no more"


def test_too_few_checks_do_not_hold() -> None:
    outcomes = (outcome_of(lambda _: None), *[outcome_of(does_not_apply)] * 9)
    report = Report("toy", outcomes)
    assert not report.holds
    assert report.missing == [f"toy/one: 1 checks ran, a kernel has at least {FLOORS['kernel']}"]


def test_a_report_counts_its_outcomes() -> None:
    report = Report("toy", (outcome_of(fails), outcome_of(lambda _: None), outcome_of(does_not_apply)))
    assert report.as_json()["counts"] == {"failed": 1, "passed": 1, "not offered": 1}


def test_floors_are_reachable() -> None:
    from importlib import import_module

    for kind, floor in FLOORS.items():
        assert 0 < floor <= len(import_module(f"separata.testing.{kind}s").CHECKS)


def test_pytest_runs_one_case_a_check(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(site.folder))
    site.add("toypytest", summary="Does nothing.")
    pytester.makepyfile(
        """
        from separata.testing import conformance_tests
        test_conformance = conformance_tests("toypytest")
        """
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=8, skipped=2)


pytest_plugins = ["pytester"]
