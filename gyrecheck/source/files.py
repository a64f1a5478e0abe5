"""Which files are checked: Python files and notebooks below the given paths, in name order, each once, without following loops."""

from __future__ import annotations

import difflib
import os
import stat
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from gyrecheck.model.errors import GyreError
from gyrecheck.model.visible import decodable

SUFFIXES = (".py", ".pyi", ".ipynb")
_LEFT_OUT = frozenset({
    ".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__",
    "site-packages", ".mypy_cache", ".ruff_cache", ".pytest_cache",
    ".ipynb_checkpoints", ".eggs", "__pypackages__", ".direnv",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read; `shown` is its path relative to the working directory with POSIX slashes."""

    path: Path
    shown: str


def find_files(paths: tuple[Path, ...], exclude: tuple[str, ...] = ()) -> tuple[SourceFile, ...]:
    """The files below `paths`; a file that is named itself is taken whatever its suffix.

    Raises:
        GyreError: a path does not exist, or no Python file is found.
    """
    here = Path.cwd()
    base = str(here)
    found: dict[str, SourceFile] = {}
    for given in paths:
        if not given.exists():
            raise GyreError(f"{given}: no such file or directory", hint=_near(given))
        folder, start = given.is_dir(), f"{given}{os.sep}"
        outside = f"{given}/" if folder and os.sep == "/" and shown_path(given, here) == str(given) else ""
        for path in _walk(str(given), exclude) if folder else [str(given)]:
            whole = os.path.normpath(os.path.join(base, path))  # noqa: PTH118 - strings: an object a path is a tenth of a warm run
            if os.sep == "/" and whole.startswith(f"{base}/"):
                shown = whole[len(base) + 1 :]
            elif outside and path.startswith(start):
                shown = path
            else:
                shown = shown_path(Path(path), here)
            if exclude and folder and _excluded(shown, exclude):
                continue
            if whole not in found:
                found[whole] = SourceFile(Path(path), decodable(shown))
    if not found:
        named = ", ".join(f"`{p}`" for p in paths)
        raise GyreError(
            f"no Python files in {named}", hint=_near(paths[0]) or "nothing checked is no success: name a folder that holds .py files"
        )
    return tuple(sorted(found.values(), key=lambda f: f.shown))


def _walk(folder: str, exclude: tuple[str, ...]) -> list[str]:
    out: list[str] = []
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(
            f for f in folders if f not in _LEFT_OUT and not f.endswith(".egg-info") and not (exclude and _excluded(f, exclude))
        )
        named = (f"{at}{os.sep}{name}" for name in files if name.endswith(SUFFIXES) and not name.endswith(".pyi"))
        out.extend(path for path in named if not _waits(path))
    return out


def _waits(path: str) -> bool:
    """A pipe, a socket, a device or a folder: reading it would wait or fail; a broken link is told when it is read."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - as above
    except OSError:
        return False


def _excluded(shown: str, exclude: tuple[str, ...]) -> bool:
    pure = PurePosixPath(shown)
    return any(fnmatch(shown, e) or fnmatch(shown, f"{e.rstrip('/')}/*") or any(fnmatch(part, e) for part in pure.parts) for e in exclude)


def is_left_out(tail: str, shown: str, exclude: tuple[str, ...]) -> bool:
    """Whether the walk would pass over a file at `tail` below the folder it was given; an empty `tail` is a file named itself."""
    folders = PurePosixPath(tail).parts[:-1]
    if not tail:
        return False
    return (
        _excluded(shown, exclude)
        or any(f in _LEFT_OUT or f.endswith(".egg-info") or _excluded(f, exclude) for f in folders)
        or tail.endswith(".pyi")
    )


def shown_path(path: Path, here: Path) -> str:
    """The path as the report names it: relative to `here` where it lies below, with POSIX slashes."""
    try:
        relative = os.path.relpath(os.path.abspath(path), here)  # noqa: PTH100 - links stay links
    except ValueError:  # another drive
        return decodable(path.as_posix())
    return decodable(path.as_posix() if relative.startswith("..") else Path(relative).as_posix())


def _near(path: Path) -> str:
    parent = path.parent
    try:
        names = [p.name + ("/" if p.is_dir() else "") for p in parent.iterdir()]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.6)
    near = [n for n in near if n.rstrip("/") != path.name]
    return f"did you mean `{(parent / near[0]).as_posix()}{'/' if near[0].endswith('/') else ''}`?" if near else ""
