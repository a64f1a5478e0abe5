"""Wraps what the table of names asks for, once its module has been imported; what this version lacks is left out and noted."""

from __future__ import annotations

import atexit
import os
import sys

from gyrecheck.hook import runtime as runtimes
from gyrecheck.hook.count import like, remember
from gyrecheck.hook.environments import Environments
from gyrecheck.hook.phases import Phases
from gyrecheck.hook.updates import Updates
from gyrecheck.hook.wrappers import Wrappers

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_INSTALLED: list[Hooks] = []


class Hooks:
    """Everything that is wrapped in one process."""

    def __init__(self, folder: str) -> None:
        self.table: dict[str, Any] = dict(runtimes.load_table(folder))
        self.runtime = runtimes.open_in(folder, os.environ.get(runtimes.RUN_ID, ""))
        self.libraries = self.runtime.libraries = tuple(self.table.get("libraries", ()))
        self.environments = Environments(self.runtime, self.table.get("environments", {"step": [], "reset": []}))
        self.updates = Updates(self.runtime, self.libraries)
        self.wrappers = Wrappers(self.runtime, self.updates, self.environments, self.table.get("horizons", {}))
        atexit.register(self.end)

    def after_import(self, module: ModuleType) -> None:
        """Wrap the targets inside `module`."""
        name = module.__name__
        fired: list[str] = []
        lacking: list[str] = []
        for kind, act in (("registers", self._register), ("wraps", self._wrap), ("fetches", self._fetch), ("bases", self._base)):
            for row in self.table.get(kind, ()):
                if row["module"] == name:
                    holder, last = _holder(module, row["target"])
                    known = holder is not None and act(holder, last, row["role"])
                    (fired if known else lacking).append(row["target"])
        self.runtime.events.write("hooked", module=name, version=str(getattr(module, "__version__", "?")), fired=fired, lacking=lacking)
        self.environments.look()

    def end(self) -> None:
        """At a normal end of the process: totals, and what was loaded but is out of the hook's reach."""
        try:
            if self.updates.phases is not None:
                self.updates.phases.end()
            self.runtime.turns.end()
            self.updates.summary()
            foreign = [name for name in self.table.get("unhooked", {}) if name in sys.modules]
            self.runtime.events.write("end", unhooked=foreign)
        except Exception:
            pass

    def _register(self, holder: Any, last: str, role: str) -> bool:
        register = getattr(holder, last, None)
        if register is None:
            return False
        updates, environments = self.updates, self.environments
        if role == "optimizer.step.before":

            def before(optimizer: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
                try:
                    if not updates.calm or named or not updates.counted(optimizer, given):
                        updates.before_step(optimizer, given, named)
                except Exception:
                    pass

            register(before)
        elif role == "optimizer.step.after":

            def after(optimizer: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
                if updates.passed:
                    updates.passed = False
                    return
                del given, named
                try:
                    state = updates.states.get(id(optimizer))
                    if state is None or not state.quick:
                        updates.after_step(optimizer)
                    if updates.phases is not None:
                        updates.phases.after_update()
                except Exception:
                    pass

            register(after)
        elif role == "policy.forward":
            updates.phases = Phases(self.runtime, updates, register, self.libraries)
            updates.phases.glance = environments.look
            updates.phases.moody = tuple(self.table.get("moody", ()))
        elif role == "model.make":

            def made(module: Any, name: str, parameter: Any) -> None:
                del module, name, parameter
                try:
                    environments.look()
                except Exception:
                    pass

            register(made)
        return True

    def _wrap(self, holder: Any, last: str, role: str) -> bool:
        fn = holder.__dict__.get(last)
        if fn is None or not callable(fn):
            return False
        wrapper = self.wrappers.by_role[role](fn)
        setattr(holder, last, like(wrapper, fn))
        return True

    def _fetch(self, holder: Any, last: str, role: str) -> bool:
        fn = getattr(holder, last, None)
        if fn is None:
            return False
        remember(fn, self.runtime.update_codes)
        self.runtime.fetches = True
        return bool(role)

    def _base(self, holder: Any, last: str, role: str) -> bool:
        base = getattr(holder, last, None)
        if not isinstance(base, type):
            return False
        self.environments.follow(base)
        return bool(role)


def _holder(module: Any, path: str) -> tuple[Any, str]:
    """The object that holds the last name of a dotted path, and that name; None when the path breaks off.

    A step that is no attribute is looked for among the loaded modules: packages delete the names of their parts.
    """
    *middle, last = path.split(".")
    holder, dotted = module, module.__name__
    for name in middle:
        dotted = f"{dotted}.{name}"
        holder = getattr(holder, name, None) or sys.modules.get(dotted)
        if holder is None:
            return None, last
    return (holder, last) if hasattr(holder, last) else (None, last)


def installed(folder: str) -> Hooks:
    """The hooks of this process, made on first use."""
    if not _INSTALLED:
        _INSTALLED.append(Hooks(folder))
    return _INSTALLED[0]
