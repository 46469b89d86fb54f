"""Names and import paths: what they may look like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from separata.names import IMPORT_PATH, NAME, RESERVED


@pytest.mark.parametrize("name", ["xkv", "kit-llm", "a", "a1", "select-chunks-2"])
def test_lower_case_words_joined_by_hyphens_are_names(name: str) -> None:
    assert NAME.fullmatch(name)


@pytest.mark.parametrize(
    "name", ["", "Xkv", "1a", "-a", "a-", "a--b", "a_b", "a.b", "a/b", "a b", "a\n", "é", "../a"]
)
def test_anything_else_is_no_name(name: str) -> None:
    assert not NAME.fullmatch(name)


@given(st.from_regex(NAME, fullmatch=True))
def test_every_name_makes_a_package_name(name: str) -> None:
    assert f"separata_{name.replace('-', '_')}".isidentifier()


@pytest.mark.parametrize("path", ["a:b", "a.b:c", "a.b.c:d.e", "_a:_b"])
def test_module_and_attribute_joined_by_a_colon_are_an_import_path(path: str) -> None:
    assert IMPORT_PATH.fullmatch(path)


@pytest.mark.parametrize("path", ["", "a", "a.b", ":b", "a:", "a.:b", "a:b:c", "a b:c", "1a:b", "a/b:c"])
def test_anything_else_is_no_import_path(path: str) -> None:
    assert not IMPORT_PATH.fullmatch(path)


def test_reserved_words_are_names_or_the_reservation_would_do_nothing() -> None:
    assert [word for word in RESERVED if not NAME.fullmatch(word)] == []
