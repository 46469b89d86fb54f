"""Claims: a bound holds or it doesn't, and a proof that fails is a claim that does not hold."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from separata import __version__, hookimpl
from separata.claims import Evidence, Verdict, at_least, at_most, close_to, prove
from separata.errors import BrokenPlugin, UnknownName
from separata.events import ClaimChecked
from separata.registry import Registry
from separata.testing import Site

Prove = Callable[..., list[Verdict]]
numbers = st.floats(allow_nan=False)

HOOKS = """
@hookimpl
def separata_claims():
    for name in ("holds", "fails", "exactly", "no-number", "refused", "crashes", "exits", "returns-a-number",
                 "returns-nothing"):
        yield Claim(name, says=f"It {name}.", paper="0.9 (Table 2)",
                    proof="separata_toy.claims:" + name.replace("-", "_"))
    for name in ("fails", "crashes"):
        yield Claim(f"refuted-{name}", says="It was refuted.", paper="1", refuted="too small here",
                    proof=f"separata_toy.claims:{name}")
    yield Claim("lost", says="It is lost.", paper="1", proof="separata_toy.claims:nowhere")
    yield Claim("huge", says="It is huge.", paper="1", proof="separata_toy.claims:huge", scales=("full",))
"""
PROOFS = """
import sys
from separata.claims import Evidence, at_least, at_most, close_to
from separata.errors import InputUnavailable

def holds(trial):
    return Evidence(0.8, at_least(0.6), "ratio", peers={"peer": 0.7}, table=[{"row": 1}], note="as is")

def fails(trial):
    return Evidence(0.5, at_least(0.6), "ratio")

def exactly(trial):
    return Evidence(trial.seed, close_to(3, 0), "seed")

def no_number(trial):
    return Evidence(float("nan"), at_most(1), "ratio")

def refused(trial):
    raise InputUnavailable("there is no data", "fetch it")

def crashes(trial):
    raise ZeroDivisionError("by\\nzero")

def exits(trial):
    sys.exit(0)

def returns_a_number(trial):
    return 0.9

def returns_nothing(trial):
    pass

def huge(trial):
    return Evidence(1, at_least(1), trial.scale)
"""
# Scripts rely on them.
KEYS = [
    "slug",
    "claim",
    "says",
    "paper",
    "measured",
    "bound",
    "unit",
    "holds",
    "refuted",
    "peer",
    "table",
    "note",
    "seconds",
    "seed",
    "versions",
]


@pytest.fixture
def put(site: Site, registry_of: Callable[..., Registry]) -> Prove:
    site.add("toy", HOOKS, files={"claims.py": PROOFS}, version="0.4")
    registry = registry_of()

    def run(*names: str, **options: Any) -> list[Verdict]:
        return list(prove("toy", names, registry=registry, **options))

    return run


@given(numbers, numbers)
def test_at_most_holds_up_to_its_value(measured: float, value: float) -> None:
    assert at_most(value).holds(measured) is (measured <= value)


@given(numbers, numbers)
def test_at_least_holds_from_its_value_on(measured: float, value: float) -> None:
    assert at_least(value).holds(measured) is (measured >= value)


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.floats(-1e9, 1e9))
def test_close_to_holds_within_its_tolerance(value: float, tolerance: float, measured: float) -> None:
    assert close_to(value, tolerance).holds(measured) is (abs(measured - value) <= tolerance)


@pytest.mark.parametrize("bound", [at_most(math.inf), at_least(-math.inf), close_to(0, math.inf)], ids=str)
def test_no_bound_holds_for_what_is_no_number(bound: Any) -> None:
    assert bound.holds(math.nan) is False


@pytest.mark.parametrize(
    ("bound", "text"),
    [(at_most(0.6), "<= 0.6"), (at_least(2), ">= 2"), (close_to(1, 0.01), "= 1 ± 0.01")],
    ids=["at most", "at least", "close to"],
)
def test_a_bound_is_written_as_it_is_read(bound: Any, text: str) -> None:
    assert str(bound) == text


def test_figures_of_other_libraries_become_plain_numbers() -> None:
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    found = Evidence(torch.tensor(0.5), at_most(1), "ratio", peers={"peer": numpy.float32(0.25)})
    assert (type(found.measured), type(found.peers["peer"])) == (float, float)


@pytest.mark.parametrize("bound", [at_most(1.0), at_least(1.0), close_to(1.0, 0.1)], ids=str)
def test_a_verdict_on_a_numpy_figure_is_a_plain_truth_value(bound: Any) -> None:
    numpy = pytest.importorskip("numpy")
    assert type(bound.holds(numpy.float64(7.0))) is bool


@pytest.mark.parametrize(
    ("name", "holds"), [("holds", True), ("fails", False), ("exactly", False), ("no-number", False)]
)
def test_a_claim_holds_if_its_figure_keeps_its_bound(name: str, holds: bool, put: Prove) -> None:
    assert [verdict.holds for verdict in put(name)] == [holds]


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("refused", "not proven: there is no data; fetch it"),
        ("crashes", "not proven: ZeroDivisionError: by zero"),
        ("exits", "not proven: SystemExit: 0"),
        ("returns-a-number", "not proven: TypeError: the proof returned 0.9; a proof returns Evidence"),
        ("returns-nothing", "not proven: TypeError: the proof returned None; a proof returns Evidence"),
        ("lost", "not proven: plugin 'toy' names separata_toy.claims:nowhere, which does not load"),
    ],
)
def test_a_proof_that_fails_is_a_claim_that_does_not_hold(name: str, note: str, put: Prove) -> None:
    (verdict,) = put(name)
    assert verdict.holds is False
    assert verdict.note.startswith(note)


@pytest.mark.parametrize("name", ["refused", "crashes", "returns-a-number", "lost"])
def test_a_proof_that_fails_has_no_figure(name: str, put: Prove) -> None:
    (verdict,) = put(name)
    row = verdict.as_json()
    assert [row[key] for key in ("measured", "bound", "unit", "peer", "table")] == [None, None, None, {}, []]


@pytest.mark.parametrize(
    ("name", "failed"),
    [("holds", False), ("fails", True), ("refuted-fails", False), ("refuted-crashes", True), ("huge", False)],
)
def test_a_claim_known_not_to_hold_fails_only_if_its_proof_does_not_run(
    name: str, failed: bool, put: Prove
) -> None:
    (verdict,) = put(name)
    assert verdict.failed is failed


def test_a_refuted_claim_is_measured_all_the_same(put: Prove) -> None:
    (verdict,) = put("refuted-fails")
    assert verdict.holds is False
    assert verdict.as_json()["refuted"] == "too small here"


def test_the_user_who_interrupts_a_proof_is_obeyed(site: Site, registry_of: Callable[..., Registry]) -> None:
    site.add("toy", HOOKS, files={"claims.py": "def holds(trial):\n    raise KeyboardInterrupt"})
    with pytest.raises(KeyboardInterrupt):
        list(prove("toy", ["holds"], registry=registry_of()))


def test_a_claim_that_needs_the_full_scale_is_not_run_at_the_small_one(put: Prove) -> None:
    (verdict,) = put("huge")
    assert (verdict.holds, verdict.evidence, verdict.note) == (None, None, "not run: it needs --scale full")


def test_the_proof_is_told_the_scale(put: Prove) -> None:
    (verdict,) = put("huge", scale="full")
    assert verdict.evidence is not None
    assert (verdict.holds, verdict.evidence.unit) == (True, "full")


def test_the_proof_is_told_the_seed(put: Prove) -> None:
    assert [verdict.holds for seed in (3, 4) for verdict in put("exactly", seed=seed)] == [True, False]


def test_without_names_every_claim_is_put_to_the_proof_in_order(put: Prove) -> None:
    names = [verdict.claim.name for verdict in put()]
    assert names[:2] + names[-2:] == ["holds", "fails", "lost", "huge"]


def test_verdicts_come_one_by_one(site: Site, registry_of: Callable[..., Registry]) -> None:
    site.add("toy", HOOKS, files={"claims.py": PROOFS})
    first = next(iter(prove("toy", ["holds", "crashes"], registry=registry_of())))
    assert first.claim.name == "holds"


def test_an_unknown_claim_is_answered_with_the_closest_ones(put: Prove) -> None:
    with pytest.raises(UnknownName, match=r"no claim of toy named 'hold'\ndid you mean holds\?"):
        put("hold")


def test_claims_of_a_broken_plugin_can_not_be_put_to_the_proof(
    site: Site, registry_of: Callable[..., Registry]
) -> None:
    site.add("toy", "raise OSError")
    with pytest.raises(BrokenPlugin):
        list(prove("toy", registry=registry_of()))


def test_the_verdict_as_json_has_these_keys_and_no_others(put: Prove) -> None:
    assert [list(verdict.as_json()) for verdict in put()] == [KEYS] * 13


def test_the_verdict_as_json_tells_the_figure_and_what_it_was_held_against(put: Prove) -> None:
    (verdict,) = put("holds", seed=5)
    row = verdict.as_json()
    versions, seconds = row.pop("versions"), row.pop("seconds")
    assert row == {
        "slug": "toy",
        "claim": "holds",
        "says": "It holds.",
        "paper": "0.9 (Table 2)",
        "measured": 0.8,
        "bound": ">= 0.6",
        "unit": "ratio",
        "holds": True,
        "refuted": "",
        "peer": {"peer": 0.7},
        "table": [{"row": 1}],
        "note": "as is",
        "seed": 5,
    }
    assert versions["separata"] == __version__
    assert 0 <= seconds < 60


def test_json_has_no_word_for_what_is_no_number_so_it_is_left_out(put: Prove) -> None:
    (verdict,) = put("no-number")
    assert json.dumps(verdict.as_json(), allow_nan=False)
    assert verdict.as_json()["measured"] is None


def test_listeners_hear_of_every_claim_that_was_put_to_the_proof(
    site: Site, registry_of: Callable[..., Registry]
) -> None:
    heard: list[ClaimChecked] = []

    class Listener:
        @hookimpl
        def separata_event(self, event: ClaimChecked) -> None:
            heard.append(event)

    site.add("toy", HOOKS, files={"claims.py": PROOFS})
    registry = registry_of()
    registry.listen(Listener())
    list(prove("toy", ["holds", "fails", "huge"], registry=registry))
    assert heard == [ClaimChecked("toy", "holds", holds=True), ClaimChecked("toy", "fails", holds=False)]
