"""Listeners: what people see, what machines read, and that none of them stops a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from separata.catalog import Catalogue
from separata.events import ClaimChecked, Preparing, RunEnded, RunStarted, StepEnded
from separata.registry import Registry
from separata_cli.listeners import Display, JsonLines, TensorBoard


def registry_with(*listeners: object) -> Registry:
    registry = Registry({}, known=Catalogue({}, frozenset()))
    for listener in listeners:
        registry.listen(listener)
    return registry


def test_the_display_says_what_is_prepared_once(capsys: pytest.CaptureFixture[str]) -> None:
    registry_with(Display()).emit(Preparing("inputs/smollm2"))
    assert capsys.readouterr().err == "preparing inputs/smollm2, once; it is kept for the next time\n"


def test_the_display_draws_no_bar_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    registry = registry_with(Display())
    registry.emit(StepEnded(1, total=2))
    registry.emit(RunEnded("toy", "train", seconds=1.0))
    assert capsys.readouterr().err == ""


def test_each_event_is_one_line_of_json(tmp_path: Path) -> None:
    registry = registry_with(JsonLines(tmp_path / "events.jsonl"))
    registry.emit(RunStarted("toy", "train", config={"ratio": 8.0}))
    registry.emit(ClaimChecked("toy", "holds", holds=True))
    rows = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [row["event"] for row in rows] == ["RunStarted", "ClaimChecked"]
    assert rows[0]["config"] == {"ratio": 8.0}
    assert rows[0]["time"] <= rows[1]["time"]


def test_tensorboard_gets_the_figures_of_each_step(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    registry = registry_with(TensorBoard(tmp_path))
    registry.emit(RunStarted("toy", "train"))
    registry.emit(StepEnded(1, metrics={"loss": 2.0}))
    registry.emit(StepEnded(2, metrics={"loss": 1.0}))
    registry.emit(RunEnded("toy", "train", seconds=1.0))
    found = EventAccumulator(str(tmp_path / "toy/train")).Reload()
    assert [(point.step, point.value) for point in found.Scalars("loss")] == [(1, 2.0), (2, 1.0)]


def test_a_log_that_can_not_be_written_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = registry_with(JsonLines(tmp_path / "no such folder/events.jsonl"))
    registry.emit(Preparing("one"))
    registry.emit(Preparing("two"))
    assert capsys.readouterr().err.count("is not reported again") == 1
