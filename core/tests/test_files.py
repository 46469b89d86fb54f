"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from separata import files
from separata.errors import WriteFailed
from separata.files import atomic_file, atomic_folder, remove_partials

Atomic = Callable[[Path], AbstractContextManager[Path]]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB; it takes root to mount one."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(mounted)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small file system can't be mounted here")
    yield mounted
    subprocess.run(["umount", str(mounted)], check=True)


def fill(place: Path, text: str = "whole") -> None:
    """Write into the file or the folder that was given."""
    (place / "content" if place.is_dir() else place).write_text(text)


def fail_half_way(place: Path, failure: type[BaseException]) -> None:
    fill(place, "half")
    raise failure


def content(path: Path) -> str:
    return (path / "content" if path.is_dir() else path).read_text()


@pytest.fixture(params=[atomic_file, atomic_folder])
def atomic(request: pytest.FixtureRequest) -> Atomic:
    chosen: Atomic = request.param
    return chosen


def test_what_was_written_is_there_afterwards(atomic: Atomic, tmp_path: Path) -> None:
    with atomic(tmp_path / "new" / "result.json") as partial:
        fill(partial)
    assert content(tmp_path / "new" / "result.json") == "whole"


def test_until_then_nothing_is_there(atomic: Atomic, tmp_path: Path) -> None:
    with atomic(tmp_path / "result") as partial:
        fill(partial)
        assert not (tmp_path / "result").exists()


def test_only_the_result_is_left(atomic: Atomic, tmp_path: Path) -> None:
    with atomic(tmp_path / "result") as partial:
        fill(partial)
    assert [path.name for path in tmp_path.iterdir()] == ["result"]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_failure_in_the_middle_leaves_nothing(
    failure: type[BaseException], atomic: Atomic, tmp_path: Path
) -> None:
    with pytest.raises(failure), atomic(tmp_path / "result") as partial:
        fail_half_way(partial, failure)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_failure_in_the_middle_keeps_what_was_there(
    failure: type[BaseException], atomic: Atomic, tmp_path: Path
) -> None:
    with atomic(tmp_path / "result") as partial:
        fill(partial, "old")
    with pytest.raises(failure), atomic(tmp_path / "result") as partial:
        fail_half_way(partial, failure)
    assert content(tmp_path / "result") == "old"


def test_success_replaces_what_was_there(atomic: Atomic, tmp_path: Path) -> None:
    for text in ("old", "new"):
        with atomic(tmp_path / "result") as partial:
            fill(partial, text)
    assert content(tmp_path / "result") == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["result"]


def test_a_replaced_folder_keeps_no_file_of_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "result").mkdir()
    (tmp_path / "result" / "stale").touch()
    with atomic_folder(tmp_path / "result") as partial:
        fill(partial)
    assert [path.name for path in (tmp_path / "result").iterdir()] == ["content"]


def test_a_folder_that_can_not_be_put_in_place_leaves_the_old_one_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "result").mkdir()
    fill(tmp_path / "result", "old")
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if self.name.endswith(".partial"):
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "result") as partial:
        fill(partial, "new")
    assert content(tmp_path / "result") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["result"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
def test_the_result_has_the_rights_that_the_user_gives_new_files(atomic: Atomic, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic(tmp_path / "result") as partial:
            fill(partial)
    finally:
        os.umask(before)
    assert (tmp_path / "result").stat().st_mode & 0o777 == (0o750 if atomic is atomic_folder else 0o640)


def test_the_temporary_file_keeps_the_suffix_by_which_savers_choose_the_format(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "plot.png") as partial:
        assert partial.suffix == ".png"


def test_a_full_disk_is_told_and_leaves_nothing(atomic: Atomic, full_disk: Path) -> None:
    with pytest.raises(WriteFailed, match="the disk is full"), atomic(full_disk / "result") as partial:
        fill(partial, "x" * 200_000)
    assert list(full_disk.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_write_that_finds_no_space_is_told_as_such(number: int, atomic: Atomic, tmp_path: Path) -> None:
    with pytest.raises(WriteFailed, match="free some space"), atomic(tmp_path / "result"):
        raise OSError(number, os.strerror(number))


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_place_that_refuses_is_told_as_such(number: int, atomic: Atomic, tmp_path: Path) -> None:
    with pytest.raises(WriteFailed, match="can't be written"), atomic(tmp_path / "result") as partial:
        raise OSError(number, os.strerror(number), str(partial))


def test_a_refusal_to_read_something_else_is_not_taken_for_one_to_write(
    atomic: Atomic, tmp_path: Path
) -> None:
    with pytest.raises(PermissionError), atomic(tmp_path / "result"):
        raise PermissionError(errno.EACCES, "Permission denied", "/elsewhere/weights.bin")


def test_an_error_that_says_nothing_of_writing_is_left_alone(atomic: Atomic, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic(tmp_path / "result"):
        raise FileNotFoundError(errno.ENOENT, "No such file", str(tmp_path / "result" / "x"))


def test_a_folder_is_not_written_over_a_file(tmp_path: Path) -> None:
    (tmp_path / "result").write_text("mine")
    with pytest.raises(WriteFailed, match="is a file"), atomic_folder(tmp_path / "result"):
        pass
    assert (tmp_path / "result").read_text() == "mine"


def test_a_file_is_not_written_over_a_folder(tmp_path: Path) -> None:
    (tmp_path / "result").mkdir()
    with pytest.raises(WriteFailed, match="can't be written"), atomic_file(tmp_path / "result"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["result"]


def test_a_place_below_a_file_is_refused(atomic: Atomic, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WriteFailed, match="can't be written"), atomic(tmp_path / "file" / "result"):
        pass


HALF_WRITTEN = """
import sys, time
from pathlib import Path
from separata import files
with getattr(files, sys.argv[1])(Path(sys.argv[2])) as partial:
    (partial / "content" if partial.is_dir() else partial).write_text("half")
    print("half", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_a_killed_process_leaves_what_was_there(atomic: Atomic, tmp_path: Path) -> None:
    with atomic(tmp_path / "result") as partial:
        fill(partial, "old")
    command = [sys.executable, "-c", HALF_WRITTEN, atomic.__name__, str(tmp_path / "result")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        process.kill()
    assert content(tmp_path / "result") == "old"


def test_partials_of_one_path_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".result-abc.partial" / "deep").mkdir(parents=True)
    for other in ("result", ".results-abc.partial", ".other-abc.partial"):
        (tmp_path / other).mkdir()
    remove_partials(tmp_path / "result")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".other-abc.partial",
        ".results-abc.partial",
        "result",
    ]


def test_what_is_written_reaches_the_disk_before_it_has_its_name(
    atomic: Atomic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: list[bool] = []
    fsync = os.fsync

    def watched(handle: int) -> None:
        named.append((tmp_path / "result").exists())
        fsync(handle)

    monkeypatch.setattr(files.os, "fsync", watched)
    with atomic(tmp_path / "result") as partial:
        fill(partial)
    assert named == [False]
