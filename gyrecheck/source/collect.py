"""All files into facts: from the cache where the bytes are known, else parsed, in several processes where that pays."""

from __future__ import annotations

import gc
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import msgspec

from gyrecheck.model.errors import GyreError
from gyrecheck.model.facts import Module, Unreadable
from gyrecheck.source.cache import Cache, digest
from gyrecheck.source.files import SourceFile
from gyrecheck.source.read import read_source

_PAYS = 3_000_000
"""Bytes to parse above which a second process is worth its start."""
_CHUNK = 40


@dataclass(frozen=True, slots=True)
class Text:
    """One file as it was read: bytes (of the joined cells for a notebook), their hash, and the file's own bytes."""

    file: SourceFile
    data: bytes
    content: str
    raw: bytes


def read_texts(files: tuple[SourceFile, ...]) -> tuple[tuple[Text, ...], tuple[Unreadable, ...]]:
    """The bytes of every file; those that cannot be read are named."""
    texts: list[Text] = []
    failed: list[Unreadable] = []
    for file in files:
        try:
            raw = file.path.read_bytes()
            data = cells_of(raw) if file.shown.endswith(".ipynb") else raw
        except OSError as error:  # noqa: PERF203 - one bad file must not hide the others
            failed.append(Unreadable(file.shown, 0, 0, f"cannot be read: {error.strerror or error}"))
        except GyreError as error:
            failed.append(Unreadable(file.shown, 1, 1, error.message))
        else:
            texts.append(Text(file, data, digest(data), raw))
    return tuple(texts), tuple(failed)


def cells_of(data: bytes) -> bytes:
    """The Python of a notebook.

    Raises:
        GyreError: it is none.
    """
    from gyrecheck.source.notebooks import read_notebook

    return read_notebook(data).source


def collect(texts: tuple[Text, ...], cache: Cache, jobs: int = 0) -> tuple[tuple[Module, ...], tuple[Unreadable, ...]]:
    """Facts of all texts, in their order. `jobs` 0 decides by size; 1 stays in this process."""
    known: dict[int, Module | Unreadable] = {}
    todo: list[int] = []
    was = gc.isenabled()
    gc.disable()  # millions of tuples live to the end of the run; counting them again and again finds nothing
    try:
        for at, text in enumerate(texts):
            found = cache.module(text.content, text.file.shown)
            if found is None:
                todo.append(at)
            else:
                known[at] = found
        if not jobs:
            jobs = min(os.cpu_count() or 1, 8) if sum(len(texts[i].data) for i in todo) > _PAYS else 1
        if jobs > 1 and len(todo) > _CHUNK:
            _in_processes(texts, todo, jobs, cache, known)
        else:
            for at in todo:
                known[at] = read_source(texts[at].data, texts[at].file.shown)
                _keep(cache, texts[at], known[at])
    finally:
        if was:
            gc.enable()
    ordered = [known[at] for at in range(len(texts))]
    return tuple(m for m in ordered if isinstance(m, Module)), tuple(m for m in ordered if isinstance(m, Unreadable))


def _keep(cache: Cache, text: Text, found: Module | Unreadable) -> None:
    if isinstance(found, Module):
        cache.keep_module(text.content, found)


def _in_processes(texts: tuple[Text, ...], todo: list[int], jobs: int, cache: Cache, known: dict[int, Module | Unreadable]) -> None:
    chunks = [todo[i : i + _CHUNK] for i in range(0, len(todo), _CHUNK)]
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        batches = pool.map(_read_chunk, [[(texts[i].data, texts[i].file.shown) for i in chunk] for chunk in chunks])
        for chunk, encoded in zip(chunks, batches, strict=True):
            decoded = msgspec.msgpack.decode(encoded, type=list[tuple[Module | None, Unreadable | None]])
            for at, (module, failed) in zip(chunk, decoded, strict=True):
                known[at] = module if module is not None else failed or Unreadable(texts[at].file.shown, 1, 1, "does not parse")
                _keep(cache, texts[at], known[at])


def _read_chunk(chunk: list[tuple[bytes, str]]) -> bytes:
    gc.disable()
    found = [read_source(data, path) for data, path in chunk]
    return msgspec.msgpack.encode([(m, None) if isinstance(m, Module) else (None, m) for m in found])
