from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from separata.errors import InputUnavailable
from separata_kit_llm import TEXTS, read_text
from separata_kit_llm.errors import SourceNotFound, UnreadableText


def test_python_topics_are_long_english_prose() -> None:
    text = read_text("python-topics")
    assert len(text) > 300_000
    assert text.count(" the ") > 1000


@pytest.mark.parametrize("name", ["note.txt", "note.md", "note.rst"])
def test_a_file_is_read_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("Grüße\n", encoding="utf-8")
    assert read_text(tmp_path / name) == "Grüße\n"


def test_a_file_goes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shakespeare").write_text("mine")
    assert read_text("shakespeare") == "mine"


def test_gz_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "note.txt.gz").write_bytes(gzip.compress(b"tide"))
    assert read_text(tmp_path / "note.txt.gz") == "tide"


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_jsonl_gives_one_field_of_each_line(tmp_path: Path, suffix: str) -> None:
    data = "\n".join(json.dumps({"text": text, "title": "T"}) for text in ("one", "two")) + "\n\n"
    path = tmp_path / f"pages{suffix}"
    path.write_bytes(gzip.compress(data.encode()) if suffix.endswith("gz") else data.encode())
    assert read_text(path) == "one\n\ntwo"
    assert read_text(path, field="title") == "T\n\nT"


@pytest.mark.parametrize("line", ["{", "[1]", '{"body": "x"}', '{"text": 3}'])
def test_bad_jsonl_names_the_file_and_the_place(tmp_path: Path, line: str) -> None:
    path = tmp_path / "pages.jsonl"
    path.write_text('{"text": "fine"}\n' + line)
    with pytest.raises(UnreadableText, match=r"pages\.jsonl.* 2"):
        read_text(path)


@pytest.mark.parametrize(
    ("name", "data"), [("a.txt", b"\xff\xfe\xff"), ("a.gz", b"no gzip"), ("b.gz", b"\x1f\x8b")]
)
def test_undecodable_files_are_refused(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UnreadableText):
        read_text(tmp_path / name)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(SourceNotFound) as caught:
        read_text("moby-dick")
    assert all(name in str(caught.value) for name in TEXTS)


@pytest.mark.inputs
def test_shakespeare_is_complete() -> None:
    try:
        text = read_text("shakespeare")
    except InputUnavailable as error:
        pytest.skip(str(error))
    assert len(text) == 5_020_475
    assert "To be or not to be that is the question" in text
