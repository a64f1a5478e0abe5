"""Starts the hook in a Python process of a run: cheap until a library that the table names has been imported.

A finder in front of `sys.meta_path` notices those imports; it finds nothing itself and takes nothing away: the module's own loader runs,
and afterwards what is to be wrapped is wrapped. The environment is left as it is, so children start the same way.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

PROCESSES = "processes.jsonl"
MODULES = "hooks.modules"
"""The names of the modules that the table of names speaks of, written by the launcher into the run folder."""
_STARTED: list[str] = []


def start(folder: str) -> None:
    """Hook this process into the run in `folder`; a second call does nothing."""
    if _STARTED or not os.path.isdir(folder):
        return
    _STARTED.append(folder)
    _sign(folder)
    try:
        with open(os.path.join(folder, MODULES), encoding="utf-8") as file:
            names = set(file.read().split())
    except OSError:
        return
    finder = Finder(names, lambda module: _loaded(folder, module))
    sys.meta_path.insert(0, finder)
    for name in sorted(names & set(sys.modules)):
        finder.fire(sys.modules[name])


def _sign(folder: str) -> None:
    """One line that says that this process was reached, before anything else can fail."""
    words = ",".join(_quoted(word) for word in sys.orig_argv[:12])
    python = sys.version.partition(" ")[0]
    line = f'{{"pid":{os.getpid()},"parent":{os.getppid()},"at":{time.time()!r},"python":"{python}","line":[{words}]}}'
    try:
        fd = os.open(os.path.join(folder, PROCESSES), os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            os.write(fd, line.encode() + b"\n")
        finally:
            os.close(fd)
    except OSError:
        pass  # the shard says it, where there is something to lose


def _quoted(word: str) -> str:
    """A word as a JSON string; `json` itself costs more than all the rest of a process's start."""
    return '"' + "".join(c if " " <= c <= "~" and c not in '"\\' else _escaped(ord(c)) for c in word) + '"'


def _escaped(code: int) -> str:
    if code > 0xFFFF:  # two units of UTF-16
        return _escaped(0xD800 + (code - 0x10000 >> 10)) + _escaped(0xDC00 + (code & 0x3FF))
    return f"\\u{code:04x}"


def _loaded(folder: str, module: ModuleType) -> None:
    from gyrecheck.hook.install import installed

    installed(folder).after_import(module)


class Finder:
    """Notices the import of named modules; `find_spec` answers with their true spec, whose loader also calls `then` once."""

    def __init__(self, names: set[str], then: Callable[[ModuleType], None]) -> None:
        self.names, self.then = names, then
        self.seen: set[str] = set()

    def fire(self, module: ModuleType) -> None:
        """The module is there."""
        if module.__name__ not in self.seen:
            self.seen.add(module.__name__)
            try:
                self.then(module)
            except Exception as error:
                sys.stderr.write(f"gyrecheck: {module.__name__} is not hooked: {type(error).__name__}: {error}\n")

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec that the other finders give, for a named module; None for all others."""
        if name not in self.names or name in self.seen:
            return None
        for other in tuple(sys.meta_path):
            if other is self or not hasattr(other, "find_spec"):
                continue
            spec = other.find_spec(name, path, target)
            if spec is not None:
                self._attend(spec)
                return spec
        return None

    def _attend(self, spec: ModuleSpec) -> None:
        """Call `then` after the loader has executed the module; the loader object stays the same and is put back as it was."""
        loader = spec.loader
        run = getattr(loader, "exec_module", None)
        if loader is None or run is None:
            return

        def exec_module(module: ModuleType) -> None:
            try:
                del loader.exec_module
            except AttributeError:
                pass
            run(module)
            self.fire(module)

        try:
            loader.exec_module = exec_module  # type: ignore[method-assign]
        except AttributeError:
            pass
