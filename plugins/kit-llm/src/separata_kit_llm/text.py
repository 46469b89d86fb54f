"""Real text by name or from a file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from separata import inputs

from ._plugin import SHAKESPEARE
from .errors import SourceNotFound, UnreadableText

TEXTS = {
    "python-topics": "Python's own help topics: English reference prose, 0.5 million characters, always there.",
    "shakespeare": "The complete works of Shakespeare without punctuation, 5 million characters, fetched once.",
}
FIELDS = ("text", "content", "input", "prompt")


def read_text(source: str | Path, *, field: str | None = None) -> str:
    """The whole of a named text or of a file.

    Args:
        source: A name in ``TEXTS``, or a path: ``.jsonl`` gives one field of each line, joined by blank lines;
            every other file is read as UTF-8 (``.txt``, ``.md``, ``.rst``, ...). A further ``.gz`` is unpacked.
            A path that exists goes before a name.
        field: The field of a ``.jsonl`` file; its ``text``, ``content``, ``input`` or ``prompt`` if not given.

    Raises:
        SourceNotFound: If there is no such name or file.
        UnreadableText: If the file is no UTF-8, or lacks the field.

    >>> read_text("python-topics").startswith("The \\"assert\\" statement")
    True
    """
    path = Path(source).expanduser()
    if not path.is_file():
        named = str(source)
        if named == "python-topics":
            return _python_topics()
        if named == "shakespeare":
            return _decoded(inputs.locate(SHAKESPEARE))
        raise SourceNotFound(
            f"there is no text {named!r}",
            f"name a .txt, .md, .jsonl or .gz file, or one of {', '.join(TEXTS)}",
        )
    text = _decoded(path)
    stem = path.name.removesuffix(".gz")
    return _lines(path, text, field) if stem.endswith((".jsonl", ".ndjson")) else text


def records(path: str | Path) -> list[dict[str, Any]]:
    """The objects of a JSONL file, one a line; a further ``.gz`` is unpacked.

    Raises:
        SourceNotFound: If there is no such file.
        UnreadableText: If a line is no JSON object.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise SourceNotFound(f"there is no file {path}", "name a .jsonl file, one JSON object a line")
    return _records(path, _decoded(path))


def _python_topics() -> str:
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name].strip() for name in sorted(topics))


def _decoded(path: Path) -> str:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return data.decode("utf-8-sig")
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError) as error:
        raise UnreadableText(f"{path} can't be decoded: {error}", "save it as UTF-8 text") from error


def _records(path: Path, text: str) -> list[dict[str, Any]]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise UnreadableText(f"{path}, line {number}, is no JSON object", "write one JSON object a line")
        found.append(record)
    return found


def _lines(path: Path, text: str, field: str | None) -> str:
    parts = []
    for number, record in enumerate(_records(path, text), 1):
        name = field or next((name for name in FIELDS if name in record), None)
        if name is None or not isinstance(record.get(name), str):
            raise UnreadableText(
                f"{path}, object {number}, has no text under {name or ' or '.join(FIELDS)!r}",
                f"name one of its fields: {', '.join(record)}",
            )
        parts.append(record[name])
    return "\n\n".join(parts)
