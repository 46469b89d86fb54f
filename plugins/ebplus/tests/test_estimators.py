"""Hazards and step times are found again; bad data are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from separata_ebplus import HazardEstimator, TimingModel, read_trace
from separata_ebplus.errors import AllCensored, InvalidProfile, InvalidTrace, PoorFit
from separata_ebplus.traces import Trace, write_trace

KNOWN = {"alpha_prefill": 30e-3, "beta_prefill": 3e-5, "alpha_decode": 12e-3, "beta_decode": 2e-5}


def test_censoring_is_accounted_for() -> None:
    lengths = np.random.default_rng(0).geometric(0.02, 20000)
    cut = np.minimum(lengths, 40)
    found = HazardEstimator().fit(cut, lengths > 40)
    assert found.p0_ == pytest.approx(0.02, rel=0.05)
    assert 1 / cut.mean() > 0.03  # what ignoring it would give


def test_a_rising_hazard_is_seen() -> None:
    lengths = np.ceil(np.random.default_rng(0).gamma(4.0, 25.0, 5000))
    found = HazardEstimator().fit(lengths)
    assert found.eta_ > 3 * found.eta_std_error_
    assert found.trend_p_ < 0.01


def test_a_falling_hazard_is_held_level_unless_allowed() -> None:
    generator = np.random.default_rng(0)
    lengths = np.concatenate([generator.geometric(0.1, 3000), generator.geometric(0.005, 3000)])
    assert HazardEstimator().fit(lengths).eta_ == 0
    assert HazardEstimator(allow_decreasing=True).fit(lengths).eta_ < 0


def test_all_censored_warns() -> None:
    with pytest.warns(AllCensored):
        found = HazardEstimator().fit([5, 6, 7], [True] * 3)
    assert found.p0_ == 1e-5


def rows() -> list[dict[str, object]]:
    known = TimingModel.from_constants(**KNOWN)
    return [
        {
            "phase": phase,
            "tokens": n,
            "decode_share": share,
            "seconds": known.seconds(n - int(share * n), int(share * n)),
        }
        for phase, share in (("prefill", 0.0), ("decode", 1.0), ("mixed", 0.5))
        for n in (100, 200, 800)
    ]


def test_lines_are_found_again_and_survive_a_file(tmp_path: Path) -> None:
    TimingModel().fit(rows()).save(tmp_path / "t.json")
    found = TimingModel.load(tmp_path / "t.json")
    assert found.alpha_prefill_ == pytest.approx(30e-3)
    assert found.beta_decode_ == pytest.approx(2e-5)
    assert found.seconds(50, 50) == pytest.approx(12e-3 + 2.5e-5 * 100)


def test_a_profile_of_one_phase_or_of_negative_times_is_refused() -> None:
    with pytest.raises(InvalidProfile, match="decode"):
        TimingModel().fit([row for row in rows() if row["phase"] == "prefill"])
    with pytest.raises(InvalidProfile):
        TimingModel.from_constants(**(KNOWN | {"beta_decode": -1.0}))


def test_steps_that_are_no_line_warn() -> None:
    bent = rows() + [{"phase": "decode", "tokens": n, "seconds": s} for n, s in ((10, 0.3), (1000, 0.35))]
    with pytest.warns(PoorFit):
        TimingModel().fit(bent)


@pytest.mark.parametrize("name", ["trace.csv", "trace.jsonl"])
def test_a_trace_survives_a_file(tmp_path: Path, name: str) -> None:
    made = Trace(np.array([0.0, 1.5, 2.0]), np.array([3, 4, 5]), np.array([6, 7, 8]))
    write_trace(made, tmp_path / name)
    assert read_trace(tmp_path / name).output_tokens.tolist() == [6, 7, 8]


def test_azures_columns_and_dates_are_read(tmp_path: Path) -> None:
    file = tmp_path / "azure.csv"
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n2023-11-16 18:15:50.95,396,109\n"
    file.write_text(text)
    assert read_trace(file).arrival.tolist() == pytest.approx([0, 4.27], abs=1e-6)


def test_a_bad_row_is_named(tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("arrival,prompt_tokens,output_tokens\n0,3,4\n1,,5\n")
    with pytest.raises(InvalidTrace, match="row 3: there is no prompt_tokens"):
        read_trace(file)
