"""Records: what a plugin may declare, and each refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from separata import Benchmark, Claim, Command, Input, Offer, Paper
from separata.errors import InvalidRecord
from separata.records import KINDS, SOURCES

SHA = "0" * 64


def offer(**changes: Any) -> Offer:
    fields: dict[str, Any] = {"kind": "kernel", "name": "twed", "object": "a.b:C", "summary": "S.", **changes}
    return Offer(fields.pop("kind"), fields.pop("name"), fields.pop("object"), **fields)


def claim(**changes: Any) -> Claim:
    return Claim(**{"name": "holds", "says": "S.", "paper": "1", "proof": "a:b", **changes})


def benchmark(**changes: Any) -> Benchmark:
    return Benchmark(**{"name": "pairs", "says": "S.", "peer": "p", "run": "a:b", **changes})


def named(**changes: Any) -> Input:
    return Input(**{"name": "prices", "licence": "CC0-1.0", **changes})


REFUSED: dict[str, tuple[Callable[[], object], str, str]] = {
    "kind": (lambda: offer(kind="kernal"), "'kernal'", "model, trainer, estimator, kernel, scheduler"),
    "offer name": (lambda: offer(name="Twed"), "Offer name is 'Twed'", "lower-case words"),
    "offer name with the slug": (lambda: offer(name="toy/twed"), "'toy/twed'", "lower-case words"),
    "offer name of another type": (lambda: offer(name=3), "Offer name is 3", "lower-case words"),
    "object": (lambda: offer(object="a.b.C"), "Offer object is 'a.b.C'", "package.module:attribute"),
    "config": (lambda: offer(config="Config"), "Offer config is 'Config'", "package.module:attribute"),
    "reference": (lambda: offer(reference=""), "Offer reference is ''", "package.module:attribute"),
    "example": (lambda: offer(example="a"), "Offer example is 'a'", "package.module:attribute"),
    "tags as one text": (lambda: offer(tags="cuda"), "tags are the text 'cuda'", "{'cuda'}"),
    "command": (lambda: Command("app", summary="S."), "Command object is 'app'", "package.module:attribute"),
    "claim name": (lambda: claim(name="two words"), "Claim name is 'two words'", "lower-case words"),
    "proof": (lambda: claim(proof="a.b"), "Claim proof is 'a.b'", "package.module:attribute"),
    "no scale": (lambda: claim(scales=()), "scales are ()", "small, full"),
    "scale that does not exist": (lambda: claim(scales=("smal",)), "'smal'", "small, full"),
    "scales as one text": (lambda: claim(scales="full"), "scales are 'full'", "small, full"),
    "benchmark name": (lambda: benchmark(name=""), "Benchmark name is ''", "lower-case words"),
    "run": (lambda: benchmark(run="a"), "Benchmark run is 'a'", "package.module:attribute"),
    "input name": (lambda: named(name="a.b", file="x"), "Input name is 'a.b'", "lower-case words"),
    "no source": (lambda: named(), "names 0 sources (none)", "exactly one of wheel, sdist"),
    "two sources": (lambda: named(file="x", hub="y"), "2 sources (hub, file)", "exactly one of"),
    "no hash": (lambda: named(wheel="a==1"), "has the sha256 ''", "64 hexadecimal digits"),
    "short hash": (lambda: named(npm="a@1", sha256="abc"), "has the sha256 'abc'", "64 hexadecimal digits"),
    "upper-case hash": (lambda: named(debian="a", sha256="A" * 64), "AAAA", "64 hexadecimal digits"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_be_is_refused_with_what_was_given_and_what_is_accepted(case: str) -> None:
    build, given, accepted = REFUSED[case]
    with pytest.raises(InvalidRecord) as caught:
        build()
    assert given in caught.value.problem
    assert accepted in caught.value.remedy


@pytest.mark.parametrize("kind", KINDS)
def test_each_protocol_is_a_kind(kind: str) -> None:
    assert offer(kind=kind).kind == kind


def test_tags_are_a_set_whatever_they_were_given_as() -> None:
    assert offer(tags=["b", "a", "b"]).tags == frozenset({"a", "b"})


def test_a_claim_is_proved_at_both_scales_unless_it_says_otherwise() -> None:
    assert claim().scales == ("small", "full")


@pytest.mark.parametrize("source", SOURCES)
def test_an_input_knows_its_source_and_what_that_calls_it(source: str) -> None:
    record = named(**{source: "thing==1"}, sha256=SHA)
    assert (record.source, record.origin) == (source, "thing==1")


@pytest.mark.parametrize("source", ["hub", "file"])
def test_what_is_not_one_archive_needs_no_hash(source: str) -> None:
    assert named(**{source: "x"}).sha256 == ""


@pytest.mark.parametrize("record", [offer(), Command("a:b", summary="S."), claim(), benchmark(), Paper("T")])
def test_a_record_can_not_be_changed(record: Any) -> None:
    first = attrs.fields(type(record))[0].name
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(record, first, "other")


@pytest.mark.parametrize(
    "build",
    [
        lambda: Offer("kernel", "a", "a:b", "Summary."),  # type: ignore[misc]
        lambda: Command("a:b", "Summary."),  # type: ignore[misc]
        lambda: Claim("a", "Says.", "1", "a:b"),  # type: ignore[misc]
        lambda: Benchmark("a", "Says.", "peer", "a:b"),  # type: ignore[misc]
        lambda: Input("a", "w==1"),  # type: ignore[misc]
        lambda: Paper("Title", "ICML"),  # type: ignore[misc]
    ],
)
def test_whatever_is_not_the_identity_is_given_by_name(build: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="positional"):
        build()
