"""What hears the events of a run: a display for people, a log for machines, a tracker for training."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import attrs

from separata import hookimpl
from separata.events import Event, Preparing, RunEnded, RunStarted, StepEnded


class Display:
    """Shows on standard error what takes long: what is being prepared, and how far a run is."""

    def __init__(self) -> None:
        self._bar: Any = None

    @hookimpl
    def separata_event(self, event: Event) -> None:
        """Say what is prepared once; move the bar with each step."""
        if isinstance(event, Preparing):
            print(f"preparing {event.what}, once; it is kept for the next time", file=sys.stderr)
        elif sys.stderr.isatty():
            self._show(event)

    def _show(self, event: Event) -> None:
        if isinstance(event, StepEnded):
            if self._bar is None:
                from rich.console import Console
                from rich.progress import Progress

                self._bar = Progress(console=Console(stderr=True), transient=True)
                self._bar.add_task("", total=event.total)
                self._bar.start()
            figures = " ".join(f"{name} {value:.4g}" for name, value in event.metrics.items())
            self._bar.update(0, completed=event.step, total=event.total, description=figures)
        elif isinstance(event, RunEnded) and self._bar is not None:
            self._bar.stop()
            self._bar = None


class JsonLines:
    """Appends each event to a file, one JSON object a line with its time and name.

    Args:
        file: Where to; it is created.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    @hookimpl
    def separata_event(self, event: Event) -> None:
        """Write the event at once, so that a killed run leaves what it did."""
        row = {"time": time.time(), "event": type(event).__name__, **attrs.asdict(event)}
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, default=str) + "\n")


class TensorBoard:
    """Writes each step's figures where TensorBoard reads them.

    Args:
        folder: The log folder; each run gets one below it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: Any = None

    @hookimpl
    def separata_event(self, event: Event) -> None:
        """Open a run, write its figures, close it."""
        if isinstance(event, RunStarted):
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._folder / event.slug / event.what))
        elif isinstance(event, StepEnded) and self._writer is not None:
            for name, value in event.metrics.items():
                self._writer.add_scalar(name, value, event.step)
        elif isinstance(event, RunEnded) and self._writer is not None:
            self._writer.close()
            self._writer = None
