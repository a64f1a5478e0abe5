"""The keys a trainer's source reads, found statically: `__getitem__`, `collate_fn`, `batch["..."]`, attribute access, typed records.

The source is parsed with `ast` and never imported or run. What is not found is not claimed: a key built at run time stays unseen.
"""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

from gyrecheck.handoff.source_scope import Module, scan_module
from gyrecheck.handoff.source_walk import Walk
from gyrecheck.model.errors import GyreError
from gyrecheck.model.key_reads import ORDER, KeyRead, SourceKeys
from gyrecheck.rulebook.source_words import SourceWords, load_source_words

LEFT_OUT = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", "build", "dist", "site-packages"})


def read_source_keys(path: Path, words: SourceWords | None = None) -> SourceKeys:
    """All reads of the file, or of every `.py` file below the folder, in file and line order.

    Raises:
        GyreError: the path does not exist, holds no Python file, or none of its files can be parsed.
    """
    words = words or load_source_words()
    files = _python_files(path)
    modules: list[Module] = []
    unread: list[str] = []
    for file in files:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # invalid escapes in other people's strings
                tree = ast.parse(file.read_bytes(), filename=str(file))
        except (SyntaxError, ValueError, RecursionError, OSError) as error:
            line = getattr(error, "lineno", None)
            unread.append(f"{file}{f':{line}' if line else ''}: does not parse: {getattr(error, 'msg', None) or error}")
            continue
        modules.append(scan_module(str(file), tree, words))
    if not modules:
        raise GyreError(unread[0] if unread else f"{path}: holds no Python file", hint="give the trainer's .py file or its package folder")
    walk = Walk(modules, words)
    walk.run()
    reads = sorted(walk.reads, key=lambda read: (ORDER.index(read.stage), files.index(Path(read.path)), read.line))
    layout, reason = walk.layout
    return SourceKeys(
        files=tuple(module.path for module in modules),
        reads=_without_doubles(reads),
        produced=tuple((stage, key, tuple(dict.fromkeys(raw))) for (stage, key), raw in walk.produced.items()),
        computed=tuple(dict.fromkeys(walk.computed)),
        layout=layout,
        layout_reason=reason,
        unread=tuple(unread),
    )


def _python_files(path: Path) -> list[Path]:
    if not path.exists():
        raise GyreError(f"{path}: no such file")
    if path.is_file():
        return [path]
    found = (file for file in path.rglob("*.py") if not LEFT_OUT.intersection(file.relative_to(path).parts))
    return sorted(found)


def _without_doubles(reads: list[KeyRead]) -> tuple[KeyRead, ...]:
    """One entry a key, line and stage, the one that says most."""
    best: dict[tuple[str, str, int, str], KeyRead] = {}
    for read in reads:
        place = (read.key, read.path, read.line, read.stage)
        known = best.get(place)
        if known is None or (bool(read.dtype), len(read.axes)) > (bool(known.dtype), len(known.axes)):
            best[place] = read
    return tuple(best.values())
