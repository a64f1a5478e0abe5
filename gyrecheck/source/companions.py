"""First-party files that bear on checked files and that nobody named: what they import, who imports them, and what all those import in turn.

A name is looked up as Python would find it: in the file's own folder, then in the folders around it up to the project's root (or, where
nothing marks a root, up to the parent of its outermost package), and in `src`, `lib` and `python` below that root. Only exact paths count,
installed packages never do. Importers are looked for in the outermost package (or the folder) of the checked file. The rest is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gyrecheck.model.facts import Import, Module
from gyrecheck.source.cache import Cache
from gyrecheck.source.collect import collect
from gyrecheck.source.files import SourceFile, shown_path
from gyrecheck.source.texts import Text, read_texts

_ROOT = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_BELOW = ("src", "lib", "python")
_LARGEST = 400
"""Files that are judged together: a verdict on one file must stay quick."""
_SEARCHED = 2000
"""Files that are looked through for an import of the checked one."""


def companions(texts: tuple[Text, ...], cache: Cache) -> tuple[Text, ...]:
    """The files around `texts`, without `texts` themselves; unreadable ones are left out."""
    here = Path.cwd()
    known = {_whole(t.file.path) for t in texts}
    out = list(_importers(known, cache))
    known |= {_whole(t.file.path) for t in out}
    wave = (*texts, *out)
    while wave:
        modules = {m.path: m for m in collect(wave, cache)[0]}
        found: dict[Path, SourceFile] = {}
        for text in wave:
            module, own = modules.get(text.file.shown), _whole(text.file.path)
            for path in (*_packages_of(own), *(_imported(module, own) if module is not None else ())):
                if path not in known and len(known) < _LARGEST:
                    known.add(path)
                    found[path] = SourceFile(path, shown_path(path, here))
        wave = read_texts(tuple(found.values()), cache)[0]
        out.extend(wave)
    return tuple(out)


def _importers(known: set[Path], cache: Cache) -> Iterator[Text]:
    """Files of the same package that import one of the known ones; a file is parsed only when it holds the name."""
    here = Path.cwd()
    folders = {_outermost(path) for path in known}
    stems = {(path.parent.name if path.stem == "__init__" else path.stem).encode("utf-8", "surrogateescape") for path in known}
    near = [p for folder, deep in sorted(folders) for p in sorted(folder.rglob("*.py") if deep else folder.glob("*.py"))]
    asked = tuple(SourceFile(p, shown_path(p, here)) for p in near[:_SEARCHED] if p not in known)
    holding = tuple(t for t in read_texts(asked, cache)[0] if any(stem in t.data for stem in stems))
    modules = {m.path: m for m in collect(holding, cache)[0]}
    for text in holding:
        module = modules.get(text.file.shown)
        if module is not None and any(path in known for path in _imported(module, text.file.path)):
            yield text


def _outermost(path: Path) -> tuple[Path, bool]:
    """The folder of the outermost package around a file, or its own folder; and whether it is a package."""
    folder = path.parent
    package = _is_file(folder / "__init__.py")
    while package and _is_file(folder.parent / "__init__.py"):
        folder = folder.parent
    return folder, package


def missing_first_party(text: Text, cache: Cache) -> bool:
    """Whether a file imports by dots, or by its own package's name, what is not beside it: part of its project is not here."""
    path = _whole(text.file.path)
    own = {init.parent.name for init in _packages_of(path)}
    for module in collect((text,), cache)[0]:
        for entry in module.imports:
            ours = entry.level > 0 or entry.module.partition(".")[0] in own
            if ours and not entry.type_only and not entry.guarded and not any(True for _ in _files_of(entry, path)):
                return True
    return False


def _whole(path: Path) -> Path:
    return Path.cwd().joinpath(path).resolve()


def _packages_of(path: Path) -> Iterator[Path]:
    """The `__init__.py` of every package that a file lies in: they say what the file is called."""
    for folder in path.parents:
        init = folder / "__init__.py"
        if not _is_file(init):
            return
        yield init


def _imported(module: Module, path: Path) -> Iterator[Path]:
    for entry in module.imports:
        yield from _files_of(entry, path)


def _files_of(entry: Import, path: Path) -> Iterator[Path]:
    """The files that an import reads: the module's own, that of a submodule it names, and the packages on the way."""
    parts = [p for p in entry.module.split(".") if p]
    if entry.level:
        folder = path.parent
        for _ in range(entry.level - 1):
            folder = folder.parent
        starts = [folder]
    else:
        starts = list(_starts(path))
    for start in starts:
        found = list(_files_below(start, parts, entry))
        if found:
            yield from found
            return


def _files_below(start: Path, parts: list[str], entry: Import) -> Iterator[Path]:
    at = start
    for part in parts[:-1]:
        at /= part
        if _is_file(at / "__init__.py"):
            yield at / "__init__.py"
    goal = at / parts[-1] if parts else at
    if _is_file(goal / "__init__.py"):
        yield goal / "__init__.py"
    elif parts and _is_file(goal.with_suffix(".py") if not goal.suffix else goal.parent / f"{goal.name}.py"):
        yield goal.parent / f"{goal.name}.py"
    if entry.kind == "from" and goal.is_dir():
        for inner in (goal / f"{entry.name}.py", goal / entry.name / "__init__.py"):
            if _is_file(inner):
                yield inner


def _starts(path: Path) -> Iterator[Path]:
    """Folders that modules are looked up in, nearest first."""
    folders = [path.parent]
    package = _is_file(path.parent / "__init__.py")
    root = next((f for f in path.parents if any((f / mark).exists() for mark in _ROOT)), None)
    while folders[-1] != root and folders[-1].parent != folders[-1] and (root is not None or package):
        package = package and _is_file(folders[-1] / "__init__.py")
        if root is None and not package:
            break
        folders.append(folders[-1].parent)
    yield from folders
    for name in _BELOW:
        if (folders[-1] / name).is_dir():
            yield folders[-1] / name


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False
