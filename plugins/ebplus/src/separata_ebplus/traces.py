"""Requests with their arrival and lengths: read, written, drawn."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from separata.files import atomic_file

from .errors import InvalidSetting, InvalidTrace

# Ours, those of Azure's LLM inference traces, and those of vidur.
COLUMNS = {
    "arrival": ("arrival", "TIMESTAMP", "arrived_at"),
    "prompt_tokens": ("prompt_tokens", "ContextTokens", "num_prefill_tokens"),
    "output_tokens": ("output_tokens", "GeneratedTokens", "num_decode_tokens"),
}
LENGTHS = ("geometric", "gamma", "lognormal")


def _floats(values: Any) -> NDArray[np.float64]:
    return np.asarray(values, np.float64)


def _whole(values: Any) -> NDArray[np.int64]:
    return np.asarray(values, np.int64)


@attrs.frozen(eq=False)
class Trace:
    """Requests in order of arrival.

    Args:
        arrival: Seconds, float64 of shape (requests,), rising.
        prompt_tokens: int64 of shape (requests,), at least 1.
        output_tokens: int64 of shape (requests,), at least 1.
    """

    arrival: NDArray[np.float64] = attrs.field(converter=_floats)
    prompt_tokens: NDArray[np.int64] = attrs.field(converter=_whole)
    output_tokens: NDArray[np.int64] = attrs.field(converter=_whole)

    def __attrs_post_init__(self) -> None:
        shapes = {self.arrival.shape, self.prompt_tokens.shape, self.output_tokens.shape}
        if len(shapes) != 1 or self.arrival.ndim != 1:
            raise InvalidTrace(f"the columns have shapes {shapes}", "give one value a request in each column")
        if not np.isfinite(self.arrival).all() or (np.diff(self.arrival) < 0).any():
            raise InvalidTrace("arrivals are not finite and rising", "sort the requests by arrival")
        if (self.prompt_tokens < 1).any() or (self.output_tokens < 1).any():
            raise InvalidTrace(
                "a length is below 1", "each request has a prompt and an output token at least"
            )

    def __len__(self) -> int:
        return len(self.arrival)

    @classmethod
    def saturated(cls, prompt_tokens: Any, output_tokens: Any) -> Self:
        """Requests that are all there from the beginning."""
        return cls(np.zeros(len(prompt_tokens)), prompt_tokens, output_tokens)


def read_trace(path: str | Path) -> Trace:
    """Read a JSONL or CSV file with arrival (seconds or a date), prompt and output tokens.

    Columns may be named as in Azure's LLM inference traces or in vidur. Requests are sorted by arrival.

    Raises:
        InvalidTrace: If the file can't be read, or a row lacks a column or holds a bad value; names the row.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidTrace(f"{path} can't be read: {error.strerror}", "give a .jsonl or .csv file") from error
    lines = text.splitlines()
    rows: Iterable[tuple[int, Any]]
    if path.suffix == ".csv":
        rows = enumerate(csv.DictReader(lines), 2)
    else:
        rows = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    found = sorted(_request(path, number, row) for number, row in rows)
    if not found:
        raise InvalidTrace(f"{path} holds no request", "write one request a line")
    arrival, prompt, output = zip(*found, strict=True)
    return Trace(np.asarray(arrival) - arrival[0], prompt, output)


def write_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace as JSONL, or as CSV if the file is named so."""
    path = Path(path)
    rows = zip(
        trace.arrival.tolist(), trace.prompt_tokens.tolist(), trace.output_tokens.tolist(), strict=True
    )
    with atomic_file(path) as temporary, temporary.open("w", newline="") as file:
        if path.suffix == ".csv":
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(rows)
        else:
            file.writelines(json.dumps(dict(zip(COLUMNS, row, strict=True))) + "\n" for row in rows)


def draw_lengths(kind: str, mean: float, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Lengths of at least 1 with a given mean.

    Args:
        kind: ``geometric`` (constant hazard), ``gamma`` of shape 2 (rising hazard) or ``lognormal`` of sigma 1.
        mean: Their mean in tokens, above 1.
        count: How many.
        generator: Where they are drawn from.
    """
    if kind not in LENGTHS or not mean > 1:
        raise InvalidSetting(
            f"lengths are {kind} of mean {mean}", f"one of {', '.join(LENGTHS)}, mean above 1"
        )
    if kind == "geometric":
        return generator.geometric(1 / mean, count)
    if kind == "gamma":
        drawn = generator.gamma(2.0, mean / 2, count)
    else:
        drawn = generator.lognormal(np.log(mean) - 0.5, 1.0, count)
    return np.maximum(np.rint(drawn), 1).astype(np.int64)


def _request(path: Path, number: int, row: Any) -> tuple[float, int, int]:
    try:
        fields: Mapping[str, Any] = json.loads(row) if isinstance(row, str) else row
        arrival, prompt, output = (_field(fields, names) for names in COLUMNS.values())
        request = _seconds(arrival), int(prompt), int(output)
        if not np.isfinite(request[0]) or request[1] < 1 or request[2] < 1:
            raise ValueError(f"it holds {request}")
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidTrace(
            f"{path}, row {number}: {error}",
            "columns are arrival, prompt_tokens and output_tokens (or Azure's or vidur's names), lengths from 1",
        ) from error
    return request


def _field(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        if row.get(name) not in (None, ""):
            return row[name]
    raise ValueError(f"there is no {names[0]}")


def _seconds(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        return (
            float(
                np.datetime64(str(value).replace(" ", "T").removesuffix("Z"))
                .astype("datetime64[ns]")
                .astype(np.int64)
            )
            / 1e9
        )
