"""The words that put papers to the proof: prove and bench."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from separata.testing import Site

Separata = Callable[..., Any]

HOOKS = """
@hookimpl
def separata_claims():
    yield Claim("bounces", says="It bounces.", paper="0.9 (Table 1)", proof="separata_toy.claims:bounces")
    yield Claim("floats", says="It floats.", paper="1.0", proof="separata_toy.claims:floats")
    yield Claim("sinks", says="It sinks.", paper="1.0", proof="separata_toy.claims:sinks")
    yield Claim("flies", says="It flies.", paper="1.0", refuted="too heavy", proof="separata_toy.claims:floats")
    yield Claim("orbits", says="It orbits.", paper="1.0", proof="separata_toy.claims:orbits", scales=("full",))

@hookimpl
def separata_benchmarks():
    yield Benchmark("drop", says="A drop.", peer="stone", run="separata_toy.claims:drop")
"""
CLAIMS = """
from separata.claims import Evidence, Race, at_least

def bounces(trial):
    return Evidence(0.75, at_least(0.5), "m", peers={"stone": 0.1}, table=[{"ball": "red [x]"}], note="dry")

def floats(trial):
    import numpy
    return Evidence(numpy.float64(0.25), at_least(numpy.float64(0.5)), "m")

def sinks(trial):
    raise RuntimeError("no water")

def orbits(trial):
    return Evidence(1, at_least(1), f"{trial.scale} {trial.seed}")

def drop(trial):
    for size in (100, 1000):
        yield Race(size, lambda size=size: sum(range(size)), lambda size=size: sum(range(size)))
"""


@pytest.fixture
def prove(site: Site, separata: Separata) -> Separata:
    site.add("toy", HOOKS, files={"claims.py": CLAIMS})
    return lambda *arguments: separata("prove", "toy", *arguments)


def test_if_all_claims_hold_the_exit_code_is_0(prove: Separata) -> None:
    assert prove("bounces").code == 0


@pytest.mark.parametrize("claim", ["floats", "sinks"])
def test_if_a_claim_does_not_hold_the_exit_code_is_1(claim: str, prove: Separata) -> None:
    assert [prove("bounces", claim, *json).code for json in ([], ["--json"])] == [1, 1]


def test_a_claim_known_not_to_hold_is_shown_with_its_reason_and_does_not_count(prove: Separata) -> None:
    done = prove("flies")
    assert done.code == 0
    assert "flies: too heavy" in done.out
    assert "DOES NOT HOLD" in done.err


def test_a_claim_that_is_not_run_at_this_scale_does_not_count(prove: Separata) -> None:
    done = prove("orbits", "--json")
    assert (done.code, done.json[0]["holds"], done.json[0]["note"]) == (
        0,
        None,
        "not run: it needs --scale full",
    )


def test_json_is_the_list_of_verdicts_and_all_there_is_on_both_outputs(prove: Separata) -> None:
    done = prove("--json")
    assert [(row["claim"], row["holds"]) for row in done.json] == [
        ("bounces", True),
        ("floats", False),
        ("sinks", False),
        ("flies", False),
        ("orbits", None),
    ]
    assert done.err == ""


def test_scale_and_seed_reach_the_proof(prove: Separata) -> None:
    assert prove("orbits", "--scale", "full", "--seed", "7", "--json").json[0]["unit"] == "full 7"


def test_the_table_puts_the_papers_figure_ours_and_the_peers_side_by_side(prove: Separata) -> None:
    (line,) = [line for line in prove("bounces").out.splitlines() if "It bounces." in line]
    assert [cell.strip() for cell in line.split("  ") if cell.strip()] == [
        "It bounces.",
        "0.9 (Table 1)",
        "0.75 m",
        ">= 0.5",
        "stone 0.1",
        "yes",
    ]


def test_notes_follow_the_table(prove: Separata) -> None:
    out = prove().out
    assert "bounces: dry\n" in out
    assert "sinks: not proven: RuntimeError: no water\n" in out


@pytest.mark.parametrize(("options", "shown"), [([], False), (["--details"], True)])
def test_the_rows_behind_a_figure_are_shown_to_who_asks(
    options: list[str], shown: bool, prove: Separata
) -> None:
    assert ("red [x]" in prove("bounces", *options).out) is shown


def test_each_verdict_is_told_on_standard_error_as_soon_as_it_is_known(prove: Separata) -> None:
    lines = prove().err.splitlines()
    assert [line.partition(" (")[0] for line in lines] == [
        "toy bounces: holds",
        "toy floats: DOES NOT HOLD",
        "toy sinks: DOES NOT HOLD",
        "toy flies: DOES NOT HOLD",
        "toy orbits: not run",
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["bonces"], "did you mean bounces?"),
        (["--scale", "huge"], "the scales are small and full"),
    ],
)
def test_what_does_not_exist_is_wrong_use(arguments: list[str], says: str, prove: Separata) -> None:
    done = prove(*arguments)
    assert (done.code, says in done.err) == (2, True)


def test_a_plugin_without_claims_has_nothing_to_prove(site: Site, separata: Separata) -> None:
    site.add("toy")
    done = separata("prove", "toy")
    assert (done.code, done.out) == (0, "No claim was proved.\n")


def test_a_broken_plugin_exits_with_3(site: Site, separata: Separata) -> None:
    site.add("toy", "raise OSError")
    assert separata("prove", "toy").code == 3


def test_bench_as_json_has_a_row_a_size(prove: Separata, separata: Separata) -> None:
    rows = separata("bench", "toy", "--rounds", "1", "--json").json
    assert [(row["slug"], row["case"], row["size"]) for row in rows] == [
        ("toy", "drop", 100),
        ("toy", "drop", 1000),
    ]
    assert all(row["ratio"] == pytest.approx(row["peer_s"] / row["ours_s"]) for row in rows)


def test_bench_for_people_names_the_peer_and_the_growth(prove: Separata, separata: Separata) -> None:
    out = separata("bench", "toy", "drop", "--rounds", "1").out
    assert "toy drop: A drop." in out
    assert "peer: stone; time grows as size^" in out


def test_bench_of_a_plugin_without_benchmarks_says_so(site: Site, separata: Separata) -> None:
    site.add("toy")
    assert separata("bench", "toy").out == "toy has no benchmark.\n"


@pytest.mark.parametrize("arguments", [["toy", "dorp"], ["toy", "--rounds", "0"], ["nobody"]])
def test_bench_of_what_does_not_exist_is_wrong_use(
    arguments: list[str], prove: Separata, separata: Separata
) -> None:
    assert separata("bench", *arguments).code == 2


def test_a_benchmark_that_fails_is_two_lines(site: Site, separata: Separata) -> None:
    site.add("toy", HOOKS, files={"claims.py": "def drop(trial):\n    raise RuntimeError('no stone')"})
    done = separata("bench", "toy")
    assert (done.code, len(done.err.splitlines()), "no stone" in done.err) == (3, 2, True)
