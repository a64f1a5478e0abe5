"""The cache is only a shortcut: same answer with and without, torn entries are misses, an unwritable folder is no error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gyrecheck.model.errors import GyreError
from gyrecheck.model.facts import Module
from gyrecheck.source.cache import Cache, digest
from gyrecheck.source.collect import collect, gather
from gyrecheck.source.fact_store import FactStore, Row, module_of, row_of
from gyrecheck.source.files import find_files
from gyrecheck.source.read import read_source
from gyrecheck.source.texts import read_texts

TEXT = b"def f(env):\n    obs, reward, done, info = env.step(1)\n    return [obs for obs in reward if done]\n"


def test_facts_come_back_whole(tmp_path: Path) -> None:
    """What is kept is what was read, under the name that is asked for."""
    module = read_source(TEXT, "a.py")
    assert isinstance(module, Module)
    store = FactStore(tmp_path)
    store.keep([row_of(digest(TEXT), module)])
    kept = store.data([digest(TEXT), digest(b"other")])
    assert list(kept) == [digest(TEXT)]
    assert module_of(kept[digest(TEXT)], "b.py", 3) == module._replace(path="b.py")


def test_torn_entry_is_a_miss(tmp_path: Path) -> None:
    """Half an entry is read as nothing, and so is a database that is none; the next run starts it anew."""
    store = FactStore(tmp_path)
    store.keep([Row(digest(TEXT), "mark", 3, b"\x93half")])
    assert module_of(store.data([digest(TEXT)])[digest(TEXT)], "a.py", 3) is None
    (tmp_path / "facts.sqlite").write_bytes(b"no database" * 1000)
    assert store.marks([digest(TEXT)]) == {}
    store.keep([Row(digest(TEXT), "mark", 3, b"")])
    assert store.marks([digest(TEXT)]) == {digest(TEXT): ("mark", 3)}


def test_what_is_the_same_has_one_mark(tmp_path: Path) -> None:
    """A comment or a blank at the end changes no mark, a moved or changed statement does."""

    def marks(text: bytes) -> tuple[str, ...]:
        (tmp_path / "a.py").write_bytes(text)
        return gather(read_texts(find_files((tmp_path / "a.py",)), Cache(None))[0], Cache(tmp_path / "cache"), jobs=1).marks

    assert marks(TEXT) == marks(TEXT + b"\n\n# a word\n")
    assert marks(TEXT) != marks(b"\n" + TEXT)
    assert marks(TEXT) != marks(TEXT.replace(b"step", b"walk"))


def test_lost_facts_are_read_again(tmp_path: Path) -> None:
    """A folder emptied between two questions costs time, nothing else."""
    (tmp_path / "a.py").write_bytes(TEXT)
    texts, _ = read_texts(find_files((tmp_path / "a.py",)), Cache(None))
    first = collect(texts, Cache(tmp_path / "cache"), jobs=1)
    known = gather(texts, Cache(tmp_path / "cache"), jobs=1)
    assert known.found == {}
    next((tmp_path / "cache").rglob("facts.sqlite")).unlink()
    assert known.all() == first


def test_unwritable_folder_is_no_error(tmp_path: Path) -> None:
    """A folder that is a file keeps nothing and says nothing."""
    (tmp_path / "file").write_text("x")
    cache = Cache(tmp_path / "file")
    cache.save("facts", "abcd", b"x")
    assert cache.load("facts", "abcd") is None


def test_processes_and_one_agree(tmp_path: Path) -> None:
    """Two processes give the facts that one gives, in the same order."""
    for at in range(90):
        (tmp_path / f"m{at:02}.py").write_text(f"x = {at}\ndef f{at}(env):\n    env.step({at})\n")
    (tmp_path / "bad.py").write_text("def (:\n")
    texts, failed = read_texts(find_files((tmp_path,)), Cache(None))
    assert failed == ()
    one, broken = collect(texts, Cache(None), jobs=1)
    two, broken_too = collect(texts, Cache(None), jobs=2)
    assert one == two
    assert [b.path for b in broken] == [b.path for b in broken_too] == [next(t.file.shown for t in texts if "bad" in t.file.shown)]


def test_files_are_found_once_and_loops_are_not_followed(tmp_path: Path) -> None:
    """Hidden and foreign folders are left out, a directory named x.py is walked, a link to its own parent ends."""
    for name in ("a.py", "x.py/inner.py", ".venv/lib.py", "build_it/c.py", "note.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    found = [f.path.name for f in find_files((tmp_path, tmp_path / "a.py"))]
    assert found == ["a.py", "c.py", "inner.py"]
    assert [f.path.name for f in find_files((tmp_path,), ("build_*",))] == ["a.py", "inner.py"]


def test_no_files_is_an_error(tmp_path: Path) -> None:
    """An empty folder and a missing one both raise, the latter with the nearest name."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(GyreError, match="no Python files"):
        find_files((tmp_path / "empty",))
    with pytest.raises(GyreError, match="no such file") as caught:
        find_files((tmp_path / "emptyy",))
    assert "empty/" in caught.value.hint


def test_cells_of_a_known_notebook_are_kept_and_a_torn_entry_is_read_anew(tmp_path, monkeypatch):
    """A notebook is parsed once; its cells come from the cache after that, unless the entry is cut short."""
    from gyrecheck.source import texts as module

    book = tmp_path / "a.ipynb"
    book.write_text(json.dumps({"cells": [{"cell_type": "code", "source": ["x = 1\n", "y = 2"]}], "metadata": {}, "nbformat": 4}))
    parsed = []
    cells_of = module.cells_of
    monkeypatch.setattr(module, "cells_of", lambda raw: parsed.append(1) or cells_of(raw))
    files, cache = find_files((book,)), Cache(tmp_path / "cache")
    first, _ = read_texts(files, cache)
    again, _ = read_texts(files, cache)
    assert first == again
    assert b"x = 1\ny = 2\n" in first[0].data
    assert len(parsed) == 1
    (entry,) = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    entry.write_bytes(entry.read_bytes()[:-3])
    assert read_texts(files, cache)[0] == first
    assert len(parsed) == 2
