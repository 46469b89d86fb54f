"""Logs of experiments: read, checked, and cut into switchback blocks."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import attrs
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from separata.errors import PackageMissing

from .errors import AssignmentMismatch, InvalidLog, InvalidSetting, TPGNotice

Array = NDArray[np.float64]
LARGEST_Z = 5.0


@attrs.frozen(eq=False)
class Log:
    """One experiment in order of time: outcome, arm and chance of arm 1 of each step, each of shape (T,)."""

    outcomes: Array
    arms: Array
    chances: Array

    def __len__(self) -> int:
        return len(self.outcomes)


def read_table(path: Path | str) -> pd.DataFrame:
    """Read a table from CSV (compressed or not) or Parquet.

    Raises:
        InvalidLog: If there is no such file, or it is no such table.
        PackageMissing: If Parquet is read without pyarrow.
    """
    path = Path(path)
    reader = pd.read_parquet if path.suffix == ".parquet" else pd.read_csv
    if not path.is_file():
        raise InvalidLog(f"there is no file {path}", "give a .csv or .parquet file")
    try:
        return reader(path)
    except ImportError as error:
        raise PackageMissing.extra("pyarrow", "separata-tpg[parquet]") from error
    except (ValueError, OSError) as error:
        raise InvalidLog(f"{path} is no table: {error}", "give a .csv or .parquet file") from None


def make_log(
    table: pd.DataFrame,
    *,
    p: float | str,
    outcome: str = "outcome",
    arm: str = "arm",
    time: str | None = None,
    block: int | str | None = None,
    impute: str | None = None,
    placebo: bool = False,
) -> Log:
    """Check a table and make a log of it.

    Args:
        table: One row for each step.
        p: Chance of arm 1, or the column that holds it.
        outcome: Column of outcomes.
        arm: Column of arms, 0 or 1.
        time: Column to sort by; rows are in order if None.
        block: Switchback: steps, or a length of time such as ``60min``, that share one coin; a block becomes a step.
        impute: ``zero-effect`` fills a missing outcome with the last one seen, whatever the arm.
        placebo: Leave arms and their checks out; arms are 0.

    Raises:
        InvalidLog: If columns, values or times make no experiment.
        InvalidSetting: If impute is neither None nor ``zero-effect``.
        AssignmentMismatch: If the arms can't have been drawn with chance p, each block by itself.
    """
    if impute not in (None, "zero-effect"):
        raise InvalidSetting(f"impute is {impute!r}", "it is None or zero-effect")
    columns = [
        outcome,
        *([] if placebo else [arm]),
        *([time] if time else []),
        *([p] if isinstance(p, str) else []),
    ]
    for column in columns:
        if column not in table.columns:
            raise InvalidLog(
                f"there is no column {column!r}", f"name one of {', '.join(map(str, table.columns))}"
            )
    table = _sorted(table, time, ties=isinstance(block, str)) if time else table
    outcomes = _outcomes(table[outcome], impute)
    arms = np.zeros(len(table)) if placebo else _arms(table[arm])
    chances = _chances(table, p)
    if len(table) < 10:
        raise InvalidLog(f"there are {len(table)} steps", "give at least 10; hundreds for a sensible error")
    log = Log(outcomes, arms, chances)
    if block is not None:
        log = _blocks(log, _block_numbers(table, time, block))
    if not placebo:
        _check_assignment(log, given=block is not None)
    return log


def _sorted(table: pd.DataFrame, time: str, *, ties: bool) -> pd.DataFrame:
    times = table[time]
    if times.isna().any():
        raise InvalidLog(
            f"column {time!r} has {int(times.isna().sum())} empty times", "fill or drop these rows"
        )
    if not pd.api.types.is_numeric_dtype(times):
        try:
            times = pd.to_datetime(times, utc=True, format="mixed")
        except (ValueError, TypeError):
            raise InvalidLog(f"column {time!r} holds no times", "give numbers or dates") from None
    if not ties and times.duplicated().any():
        raise InvalidLog(
            f"column {time!r} has {int(times.duplicated().sum())} times twice",
            "give each step its own time, or --block to average over a length of time",
        )
    if not times.is_monotonic_increasing:
        warnings.warn(f"rows are sorted by {time}", TPGNotice, stacklevel=4)
    table = table.assign(**{time: times})
    return table.sort_values(time, kind="stable")


def _numbers(values: pd.Series, what: str) -> Array:
    try:
        return np.asarray(values.to_numpy(np.float64, na_value=np.nan))
    except (ValueError, TypeError):
        raise InvalidLog(f"column {values.name!r} holds {what} that are no numbers", "give numbers") from None


def _outcomes(values: pd.Series, impute: str | None) -> Array:
    found = _numbers(values, "outcomes")
    missing = ~np.isfinite(found)
    if not missing.any():
        return found
    if impute is None or missing.all():
        raise InvalidLog(
            f"column {values.name!r} lacks {int(missing.sum())} outcomes",
            "fill them, or take impute=zero-effect (--impute zero-effect): the last one seen, whatever the arm",
        )
    filled = pd.Series(np.where(missing, np.nan, found)).ffill().bfill()
    return np.asarray(filled.to_numpy())


def _arms(values: pd.Series) -> Array:
    kinds = sorted(map(str, values.unique()))
    try:
        found = values.to_numpy(np.float64, na_value=np.nan)
    except (ValueError, TypeError):
        found = np.full(len(values), np.nan)
    if not np.isin(found, (0, 1)).all():
        raise InvalidLog(
            f"column {values.name!r} holds {', '.join(kinds[:5])}",
            "map arms to 0 for control and 1 for treatment",
        )
    if len(kinds) < 2:
        raise InvalidLog(f"column {values.name!r} holds only {kinds[0]}", "give a log with both arms")
    return np.asarray(found)


def _chances(table: pd.DataFrame, p: float | str) -> Array:
    found = _numbers(table[p], "chances") if isinstance(p, str) else np.full(len(table), float(p))
    name = f"column {p!r}" if isinstance(p, str) else "p"
    if not ((found > 0) & (found < 1)).all():
        wrong = found[~((found > 0) & (found < 1))][0]
        raise InvalidLog(f"{name} is {wrong:g}", "chances of arm 1 lie strictly between 0 and 1")
    if abs(found - 0.5).max() > 1e-9:
        text = f"{name} is not 0.5: the estimate is a derivative at p, and the effect's curvature adds a bias"
        warnings.warn(text, TPGNotice, stacklevel=4)
    return found


def _block_numbers(table: pd.DataFrame, time: str | None, block: int | str) -> NDArray[np.int64]:
    if isinstance(block, int) or block.isdigit():
        if int(block) < 1:
            raise InvalidLog(
                f"block is {block}", "give steps of at least 1, or a length of time such as 60min"
            )
        return np.arange(len(table)) // int(block)
    if time is None or pd.api.types.is_numeric_dtype(table[time]):
        raise InvalidLog(f"block is {block!r} without a column of dates", "name it by time, or give steps")
    try:
        floors = table[time].dt.floor(block)
    except (ValueError, TypeError):
        raise InvalidLog(
            f"block is {block!r}", "give steps, or a fixed length of time such as 60min"
        ) from None
    return np.asarray(np.unique(floors.to_numpy(), return_inverse=True)[1])


def _blocks(log: Log, numbers: NDArray[np.int64]) -> Log:
    frame = pd.DataFrame({"block": numbers, "outcome": log.outcomes, "arm": log.arms, "chance": log.chances})
    grouped = frame.groupby("block")
    if (grouped[["arm", "chance"]].nunique() > 1).any(axis=None):
        raise AssignmentMismatch(
            "arms or their chances change inside a block", "give the blocks for which coins were tossed"
        )
    means = grouped.mean()
    return Log(*(means[name].to_numpy() for name in ("outcome", "arm", "chance")))


def _check_assignment(log: Log, *, given: bool) -> None:
    """Neighbours against independence, and the share of treated steps against p, both as z scores."""
    spread = log.chances * (1 - log.chances)
    score = (log.arms - log.chances) / np.sqrt(spread)
    share = (log.arms - log.chances).sum() / math.sqrt(spread.sum())
    # Around their own mean, so that a wrong p is not taken for blocks.
    around = score - score.mean()
    z = float(around[1:] @ around[:-1] / (around @ around)) * math.sqrt(len(score))
    if abs(z) > LARGEST_Z:
        raise AssignmentMismatch(
            f"neighbouring steps share their arm {'more' if z > 0 else 'less'} often than by chance (z = {z:.1f})",
            "each block needs a coin of its own"
            if given
            else "give the switchback's blocks with --block or block=",
        )
    if abs(share) > LARGEST_Z:
        raise AssignmentMismatch(
            f"assignment does not match p: {log.arms.mean():.3f} treated, {log.chances.mean():.3f} expected",
            "give the chance with which arms were drawn, or the column that holds it",
        )
