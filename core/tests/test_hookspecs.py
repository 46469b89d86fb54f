"""Hooks: the example in each docstring is complete, and pluggy accepts it."""

from __future__ import annotations

import doctest
import inspect
from types import SimpleNamespace
from typing import Any

import pluggy
import pytest

import separata
from separata import hookspecs

HOOKS = [name for name in vars(hookspecs) if name.startswith("separata_")]


def example_of(hook: str) -> Any:
    """The implementation that the hook's docstring shows, made by running it."""
    shown: dict[str, Any] = {name: getattr(separata, name) for name in separata.__all__}
    test = doctest.DocTestParser().get_doctest(getattr(hookspecs, hook).__doc__, shown, hook, None, 0)
    assert test.examples, f"{hook} shows no example"
    failed = doctest.DocTestRunner(verbose=False).run(test, clear_globs=False).failed
    assert failed == 0
    return test.globs[hook]


@pytest.mark.parametrize("hook", HOOKS)
def test_the_example_in_the_docstring_is_an_implementation_that_pluggy_accepts(hook: str) -> None:
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(SimpleNamespace(**{hook: example_of(hook)}))
    manager.check_pending()
    assert len(getattr(manager.hook, hook).get_hookimpls()) == 1


@pytest.mark.parametrize(
    "hook", [hook for hook in HOOKS if not inspect.signature(getattr(hookspecs, hook)).parameters]
)
def test_the_example_in_the_docstring_declares_records(hook: str) -> None:
    declared = example_of(hook)()
    records = [declared] if hook == "separata_paper" else list(declared)
    assert [type(record).__module__ for record in records] == ["separata.records"]
