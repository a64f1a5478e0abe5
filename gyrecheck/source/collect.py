"""All files into facts: from the cache where the bytes are known, else parsed, in several processes where that pays."""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass

import msgspec

from gyrecheck.model.facts import Module, Unreadable
from gyrecheck.source.cache import Cache, digest
from gyrecheck.source.fact_store import FactStore, Row, module_of, row_of
from gyrecheck.source.texts import Text
from gyrecheck.source.uncounted import uncounted

_PAYS = 3_000_000
"""Bytes to parse above which a second process is worth its start."""
_CHUNK = 40


@dataclass(slots=True)
class Facts:
    """The facts of all texts in their order; those that were known before are decoded only when somebody reads them."""

    texts: tuple[Text, ...]
    found: dict[int, Module | Unreadable]
    """What was read in this run, by the text's number."""
    marks: tuple[str, ...]
    """One a text: equal marks, equal analysis. Empty without a cache."""
    lines: tuple[int, ...]
    """One a text; 0 for one that does not parse."""
    _store: FactStore
    _jobs: int

    def all(self) -> tuple[tuple[Module, ...], tuple[Unreadable, ...]]:
        """Every module and every file that is none."""
        known = [at for at in range(len(self.texts)) if at not in self.found]
        data = self._store.data([self.texts[at].content for at in known]) if known else {}
        lost = []
        for at in known:
            text = self.texts[at]
            module = module_of(data[text.content], text.file.shown, self.lines[at]) if text.content in data else None
            if module is None:  # somebody emptied the folder meanwhile
                lost.append(at)
            else:
                self.found[at] = module
        _read(self.texts, lost, self._jobs, self.found)
        ordered = [self.found[at] for at in range(len(self.texts))]
        return tuple(m for m in ordered if isinstance(m, Module)), tuple(m for m in ordered if isinstance(m, Unreadable))


def gather(texts: tuple[Text, ...], cache: Cache, jobs: int = 0) -> Facts:
    """Facts of all texts: known ones by their mark alone, the others read now and kept. `jobs` 0 decides by size; 1 stays here."""
    store = FactStore(cache.facts)
    marks = store.marks([t.content for t in texts])
    todo = [at for at, text in enumerate(texts) if text.content not in marks]
    found: dict[int, Module | Unreadable] = {}
    _read(texts, todo, jobs, found)
    if cache.facts is None:
        counts = tuple(m.lines if isinstance(m, Module) else 0 for m in (found[at] for at in range(len(texts))))
        return Facts(texts, found, (), counts, store, jobs)
    rows: dict[str, Row] = {}
    for at in todo:
        read, name = found[at], texts[at].content
        if isinstance(read, Module):
            rows[name] = row = row_of(name, read)
            marks[name] = (row.mark, row.lines)
        else:
            marks[name] = (digest(repr(read[1:]).encode()), 0)
    if rows:
        store.keep(rows.values())
    said = [marks[text.content] for text in texts]
    return Facts(texts, found, tuple(mark for mark, _ in said), tuple(lines for _, lines in said), store, jobs)


def collect(texts: tuple[Text, ...], cache: Cache, jobs: int = 0) -> tuple[tuple[Module, ...], tuple[Unreadable, ...]]:
    """Facts of all texts, in their order."""
    return gather(texts, cache, jobs).all()


def _read(texts: tuple[Text, ...], todo: list[int], jobs: int, found: dict[int, Module | Unreadable]) -> None:
    if not todo:
        return
    from gyrecheck.source.read import read_source

    with uncounted():
        if not jobs:
            jobs = min(os.cpu_count() or 1, 8) if sum(len(texts[i].data) for i in todo) > _PAYS else 1
        if jobs > 1 and len(todo) > _CHUNK:
            _in_processes(texts, todo, jobs, found)
        else:
            for at in todo:
                found[at] = read_source(texts[at].data, texts[at].file.shown)


def _in_processes(texts: tuple[Text, ...], todo: list[int], jobs: int, found: dict[int, Module | Unreadable]) -> None:
    from concurrent.futures import ProcessPoolExecutor

    chunks = [todo[i : i + _CHUNK] for i in range(0, len(todo), _CHUNK)]
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        batches = pool.map(_read_chunk, [[(texts[i].data, texts[i].file.shown) for i in chunk] for chunk in chunks])
        for chunk, encoded in zip(chunks, batches, strict=True):
            decoded = msgspec.msgpack.decode(encoded, type=list[tuple[Module | None, Unreadable | None]])
            for at, (module, failed) in zip(chunk, decoded, strict=True):
                found[at] = module if module is not None else failed or Unreadable(texts[at].file.shown, 1, 1, "does not parse")


def _read_chunk(chunk: list[tuple[bytes, str]]) -> bytes:
    from gyrecheck.source.read import read_source

    gc.disable()
    found = [read_source(data, path) for data, path in chunk]
    return msgspec.msgpack.encode([(m, None) if isinstance(m, Module) else (None, m) for m in found])
