"""The cache: folders made once, by one process, and kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from separata import cache


def build(folder: Path) -> None:
    (folder / "content").write_text("made")


def never(folder: Path) -> None:
    raise AssertionError("made again")


def test_a_folder_is_made_and_filled() -> None:
    assert (cache.keep("a/b", "key", build) / "content").read_text() == "made"


def test_it_stands_below_the_cache_folder_under_its_name(tmp_path: Path) -> None:
    assert cache.keep("a/b", "key", build).parent == tmp_path / "cache" / "a" / "b"


def test_the_second_time_it_is_not_made_again() -> None:
    assert cache.keep("a", "key", build) == cache.keep("a", "key", never)


@pytest.mark.parametrize(("name", "key"), [("a", "other"), ("b", "key")])
def test_another_key_or_name_is_another_folder(name: str, key: str) -> None:
    assert cache.keep("a", "key", build) != cache.keep(name, key, build)


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_what_fails_is_not_kept_and_can_be_made_later(failure: type[BaseException]) -> None:
    def fail(folder: Path) -> None:
        build(folder)
        raise failure

    with pytest.raises(failure):
        cache.keep("a", "key", fail)
    assert (cache.keep("a", "key", build) / "content").exists()


def test_the_environment_moves_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEPARATA_CACHE", "~/elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.root() == tmp_path / "elsewhere"


def test_without_it_the_cache_is_where_the_platform_keeps_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEPARATA_CACHE")
    assert cache.root().name == "separata"


KEEP = """
import os, sys, time
from pathlib import Path
from separata import cache

def build(folder):
    with open(sys.argv[1], "a") as log:
        log.write(f"{os.getpid()}\\n")
    (folder / "content").write_text("half")
    print("half", flush=True)
    time.sleep(float(sys.argv[2]))
    (folder / "content").write_text("whole")

print((cache.keep("a", "key", build) / "content").read_text(), flush=True)
"""


def process(log: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", KEEP, str(log), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_that_ask_at_once_get_one_folder_made_by_one_of_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    both = [process(log, 1.0) for _ in range(2)]
    answers = [one.communicate(timeout=60)[0].splitlines()[-1] for one in both]
    assert answers == ["whole", "whole"]
    assert len(log.read_text().splitlines()) == 1


def test_after_a_kill_the_next_attempt_makes_it_whole_and_clears_what_was_left(tmp_path: Path) -> None:
    killed = process(tmp_path / "log", 60)
    with killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "half\n"
        killed.kill()
    folder = cache.keep("a", "key", build)
    assert (folder / "content").read_text() == "made"
    assert [path.name for path in folder.parent.iterdir() if path.suffix == ".partial"] == []
