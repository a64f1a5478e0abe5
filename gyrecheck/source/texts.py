"""The bytes of the files to check, with their hashes; a notebook's are those of its joined cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gyrecheck.model.errors import GyreError
from gyrecheck.source.cache import Cache, digest
from gyrecheck.source.files import SourceFile

if TYPE_CHECKING:
    from gyrecheck.model.facts import Unreadable


_MARK = 32
"""Characters of a hash."""


@dataclass(frozen=True, slots=True)
class Text:
    """One file as it was read: bytes (of the joined cells for a notebook), their hash, and the file's own bytes."""

    file: SourceFile
    data: bytes
    content: str
    raw: bytes


def read_texts(files: tuple[SourceFile, ...], cache: Cache) -> tuple[tuple[Text, ...], tuple[Unreadable, ...]]:
    """The bytes of every file; those that cannot be read are named. Cells of a known notebook come from the cache."""
    texts: list[Text] = []
    failed: list[Unreadable] = []
    for file in files:
        try:
            raw = file.path.read_bytes()
            data = _kept_cells(raw, cache) if file.shown.endswith(".ipynb") else raw
        except OSError as error:  # noqa: PERF203 - one bad file must not hide the others
            failed.append(_unread(file, 0, f"cannot be read: {error.strerror or error}"))
        except GyreError as error:
            failed.append(_unread(file, 1, error.message))
        else:
            texts.append(Text(file, data, digest(data), raw))
    return tuple(texts), tuple(failed)


def _unread(file: SourceFile, place: int, reason: str) -> Unreadable:
    from gyrecheck.model.facts import Unreadable  # only here: a run whose results are kept reads no facts

    return Unreadable(file.shown, place, place, reason)


def _kept_cells(raw: bytes, cache: Cache) -> bytes:
    name = digest(raw)
    kept = cache.load("cells", name) or b""
    if kept[:_MARK] == digest(kept[_MARK:]).encode():  # not torn
        return kept[_MARK:]
    cells = cells_of(raw)
    cache.save("cells", name, digest(cells).encode() + cells)
    return cells


def cells_of(data: bytes) -> bytes:
    """The Python of a notebook.

    Raises:
        GyreError: it is none.
    """
    from gyrecheck.source.notebooks import read_notebook

    return read_notebook(data).source
