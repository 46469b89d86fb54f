"""Logs that make an experiment, and every one that makes none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from separata_tpg import errors, make_log, read_table


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_files_come_back_as_they_were(suffix: str, log: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / f"log{suffix}"
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="an extra")
        log.to_parquet(path)
    else:
        log.to_csv(path, index=False)
    found = make_log(read_table(path), p=0.5, time="time")
    np.testing.assert_allclose(found.outcomes, log["outcome"])
    np.testing.assert_array_equal(found.arms, log["arm"])


def test_rows_are_sorted_with_a_notice(log: pd.DataFrame) -> None:
    with pytest.warns(errors.TPGNotice, match="sorted by time"):
        found = make_log(log[::-1], p=0.5, time="time")
    np.testing.assert_array_equal(found.outcomes, log["outcome"])


@pytest.mark.parametrize("block", [10, "10min"])
def test_a_block_becomes_a_step(block: int | str, log: pd.DataFrame) -> None:
    coins = np.repeat(np.random.default_rng(0).integers(0, 2, 200), 10)
    found = make_log(log.assign(arm=coins), p=0.5, time="time", block=block)
    np.testing.assert_allclose(found.outcomes, log["outcome"].to_numpy().reshape(-1, 10).mean(1))
    np.testing.assert_array_equal(found.arms, coins[::10])


def test_a_block_of_one_is_no_block(log: pd.DataFrame) -> None:
    one, none = (make_log(log, p=0.5, block=block) for block in (1, None))
    np.testing.assert_array_equal(one.outcomes, none.outcomes)


def test_chances_come_from_a_column_with_a_notice(log: pd.DataFrame) -> None:
    chances = np.where(np.arange(2000) % 2, 0.4, 0.6)
    with pytest.warns(errors.TPGNotice, match="derivative"):
        found = make_log(log.assign(chance=chances), p="chance")
    np.testing.assert_array_equal(found.chances, chances)


def test_a_missing_outcome_is_the_last_one_seen(log: pd.DataFrame) -> None:
    holes = log.assign(outcome=log["outcome"].mask(log.index == 5))
    with pytest.raises(errors.InvalidLog, match="lacks 1 outcomes"):
        make_log(holes, p=0.5)
    found = make_log(holes, p=0.5, impute="zero-effect")
    assert found.outcomes[5] == log["outcome"][4]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"p": 1.0}, "p is 1"),
        ({"chance": 0.0}, {"p": "chance"}, "column 'chance' is 0"),
        ({}, {"p": "nope"}, "no column 'nope'"),
        ({}, {"outcome": "nope"}, "no column 'nope'"),
        ({"arm": "A"}, {}, "column 'arm' holds A"),
        ({"arm": 2}, {}, "column 'arm' holds 2"),
        ({"arm": 0}, {}, "holds only 0"),
        ({"outcome": "much"}, {}, "are no numbers"),
        ({"time": 1}, {"time": "time"}, "times twice"),
        ({"time": None}, {"time": "time"}, "2000 empty times"),
        ({"time": "noon-ish"}, {"time": "time"}, "holds no times"),
        ({}, {"block": 0}, "block is 0"),
        ({}, {"block": "60min"}, "without a column of dates"),
        ({}, {"block": "an hour", "time": "time"}, "block is 'an hour'"),
    ],
)
def test_a_log_that_makes_no_experiment_is_refused(
    change: dict[str, object], options: dict[str, object], message: str, log: pd.DataFrame
) -> None:
    with pytest.raises(errors.InvalidLog, match=message):
        make_log(log.assign(**change), **{"p": 0.5, **options})  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::separata_tpg.errors.TPGNotice")
@pytest.mark.parametrize(
    ("arms", "options", "message"),
    [
        (lambda log: log["arm"], {"p": 0.7}, "does not match p"),
        (lambda log: np.arange(2000) // 20 % 2, {}, "give the switchback's blocks"),
        (lambda log: np.arange(2000) // 20 % 2, {"block": 20}, "a coin of its own"),
        (lambda log: log["arm"], {"block": 10}, "change inside a block"),
    ],
)
def test_arms_that_were_drawn_otherwise_are_refused(
    arms: object, options: dict[str, object], message: str, log: pd.DataFrame
) -> None:
    with pytest.raises(errors.AssignmentMismatch, match=message):
        make_log(log.assign(arm=arms(log)), **{"p": 0.5, **options})  # type: ignore[operator, arg-type]


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidLog, match="there is no file"):
        read_table(tmp_path / "nowhere.csv")


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="an extra")
    (tmp_path / "log.parquet").write_text("no parquet")
    with pytest.raises(errors.InvalidLog, match="is no table"):
        read_table(tmp_path / "log.parquet")
