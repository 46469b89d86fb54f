"""Faults that only a process of its own can have: signals, closed pipes, an optimising interpreter."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from separata.testing import Site

HOOKS = "@hookimpl\ndef separata_commands():\n    yield Command('separata_toy.cli:app', summary='Play.')\n"
CLI = """
import time
from pathlib import Path
import typer
from separata import verbs
from separata.files import atomic_file, atomic_folder

app = verbs.app("Play.")

@app.command()
def write(out: Path):
    with atomic_folder(out / "folder") as folder, atomic_file(out / "file") as file:
        file.write_text("half")
        (folder / "part").write_text("half")
        print("half", flush=True)
        time.sleep(60)

@app.command()
def flood():
    for number in range(100_000):
        typer.echo(f"line {number}")
"""
# A shell that starts jobs in the background lets them ignore Ctrl-C, and so would every process they start.
MAIN = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from separata_cli.main import main; main()"
)
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start `separata toy …` in a process of its own."""
    site = Site(tmp_path / "site")
    site.add("toy", HOOKS, files={"cli.py": CLI})

    def start(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, "toy", *arguments],
            env=site.environment(SEPARATA_CACHE=str(tmp_path / "cache")),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_exits_with_130_says_nothing_and_leaves_nothing(start: Start, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    process = start("write", str(tmp_path / "out"))
    assert process.stdout is not None
    assert process.stdout.readline() == "half\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err.strip()) == (130, "")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGPIPE")
def test_a_reader_that_has_seen_enough_is_no_fault(start: Start) -> None:
    process = start("flood")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "line 0\n"
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=60) == 1


def test_a_short_answer_that_nobody_reads_is_no_fault(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait(timeout=60)
