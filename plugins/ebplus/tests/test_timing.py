"""Step times are found again; profiles that can not be right are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from separata_ebplus import TimingModel
from separata_ebplus.errors import InvalidProfile, PoorFit

KNOWN = {"alpha_prefill": 30e-3, "beta_prefill": 3e-5, "alpha_decode": 12e-3, "beta_decode": 2e-5}


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


@pytest.mark.parametrize("name", ["alpha_decode", "beta_prefill", "beta_decode"])
@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan")])
def test_times_that_are_not_positive_are_refused(name: str, bad: float) -> None:
    with pytest.raises(InvalidProfile, match=name):
        TimingModel.from_constants(**(KNOWN | {name: bad}))


def test_a_row_that_can_not_be_read_is_named() -> None:
    with pytest.raises(InvalidProfile, match="row 1 "):
        TimingModel().fit([{"phase": "prefill", "tokens": "many", "seconds": 1}, *rows()])
