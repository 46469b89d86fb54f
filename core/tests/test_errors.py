"""Errors: two lines, an exit code, and what Python code expects to catch."""

from __future__ import annotations

import pickle

import pytest

from separata import errors
from separata.errors import PluginError, SeparataError

CLASSES = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, SeparataError)]


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_says_the_problem_on_one_line_and_the_remedy_on_the_next(cls: type[SeparataError]) -> None:
    assert str(cls("nu is -1", "nu is a positive number")) == "nu is -1\nnu is a positive number"


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_survives_the_way_back_from_a_worker_process(cls: type[SeparataError]) -> None:
    back = pickle.loads(pickle.dumps(cls("problem", "remedy")))
    assert (type(back), back.problem, back.remedy) == (cls, "problem", "remedy")


@pytest.mark.parametrize("cls", CLASSES)
def test_only_errors_of_plugins_have_the_exit_code_of_broken_plugins(cls: type[SeparataError]) -> None:
    assert cls.exit_code == (3 if issubclass(cls, PluginError) else 2)


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        (errors.InvalidRecord, ValueError),
        (errors.InvalidConfig, ValueError),
        (errors.UnknownName, LookupError),
    ],
)
def test_code_that_expects_a_builtin_error_catches_ours(
    cls: type[SeparataError], builtin: type[Exception]
) -> None:
    with pytest.raises(builtin, match="problem"):
        raise cls("problem", "remedy")
