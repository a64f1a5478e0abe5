"""Finds the environments of a program: classes of known libraries by their base, the program's own by their methods.

The program's own classes are looked for whenever something that comes before sampling happens (a parameter is made, an optimizer is made,
a network is called): there is no event for "a class was defined" that a program could not feel.
"""

from __future__ import annotations

import sys

from gyrecheck.hook.count import like, sampling_wrapper

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from typing import Any

    from gyrecheck.hook.runtime import Runtime

_REQUIRED = 2
"""`self` and the action: what an optimizer's or a scheduler's `step` does not ask for."""


class Environments:
    """The counted environment classes of one process."""

    def __init__(self, runtime: Runtime, words: dict[str, list[str]]) -> None:
        self.runtime = runtime
        self.steps, self.resets = tuple(words["step"]), tuple(words["reset"])
        runtime.turns.words = frozenset((*self.steps, *self.resets))
        self.never = tuple(words.get("never", ()))
        self.sizes: dict[str, int] = {}
        self.loaded = 0
        self.known: set[str] = set()
        """Names of loaded modules that were looked at."""
        self.mine: dict[str, None] = {}
        """Those that are the program's own, in the order in which they were seen."""
        self.roots: dict[str, bool] = {}
        """Of each package, by the first part of its modules' names, whether all of it is foreign."""
        self.classes: set[int] = set()
        self.forbidden: tuple[type, ...] = ()
        self.subclasses = 0
        self.foreign = (sys.base_prefix, sys.prefix, "<frozen")

    def look(self, *, deep: bool = False) -> None:
        """Wrap what has been defined since the last look in the program's own modules; `deep` also finds classes inside functions."""
        if len(sys.modules) != self.loaded:
            self.loaded = len(sys.modules)
            for name in sys.modules.keys() - self.known:
                self.known.add(name)
                if name == "__main__" or (not self._is_foreign(name) and self._own(sys.modules.get(name))):
                    self.mine[name] = None
        for name in tuple(self.mine):
            space = getattr(sys.modules.get(name), "__dict__", None)
            if space is None or self.sizes.get(name) == len(space):
                continue
            self.sizes[name] = len(space)
            for value in tuple(space.values()):
                if isinstance(value, type) and getattr(value, "__module__", None) == name:
                    self.consider(value)
        if deep:
            for value in object.__subclasses__():
                if getattr(value, "__module__", "") in self.mine:
                    self.consider(value)

    def consider(self, kind: type) -> None:
        """Count the steps of a class if it is an environment; its bases too, where they are the program's own."""
        if id(kind) in self.classes:
            return
        self.classes.add(id(kind))
        try:
            if self._is_environment(kind):
                self.wrap(kind)
        except Exception:
            pass

    def follow(self, base: type) -> None:
        """Count the steps of every class below a library's base, now and when it is defined."""
        for kind in _below(base):
            self.wrap(kind)
        given = base.__dict__.get("__init_subclass__")
        wrap, above = self.wrap, super

        def __init_subclass__(cls: type, **named: Any) -> None:  # noqa: N807 - the method of that name
            if given is not None:
                given.__get__(None, cls)(**named)
            else:
                above(base, cls).__init_subclass__(**named)
            wrap(cls)

        try:
            base.__init_subclass__ = classmethod(__init_subclass__)  # type: ignore[assignment, arg-type]
        except Exception:
            pass

    def wrap(self, kind: type) -> None:
        """Count `step` and `reset` where the class itself defines them."""
        try:
            for name in self.steps:
                fn = kind.__dict__.get(name)
                code = getattr(fn, "__code__", None)
                if code is None or id(code) in self.runtime.step_codes:
                    continue
                entry = self.runtime.entry("S", "env.step", f"{kind.__module__}.{kind.__qualname__}.{name}")
                setattr(kind, name, sampling_wrapper(fn, self.runtime, entry, outermost=True))  # type: ignore[arg-type]
            for name in self.resets:
                fn = kind.__dict__.get(name)
                if getattr(fn, "__code__", None) is not None and not hasattr(fn, "__gyrecheck__"):
                    setattr(kind, name, self._reset(fn))
        except Exception:
            pass

    def _reset(self, fn: Any) -> Any:
        runtime = self.runtime
        cell = runtime.cells["reset_calls"]

        def reset(*args: Any, **kwargs: Any) -> Any:
            cell[0] += 1
            runtime.look_again()
            result = fn(*args, **kwargs)
            if not runtime.turns.over:
                try:
                    runtime.turns.reset(args[0], sys._getframe(1), result)
                except Exception:
                    pass
            return result

        reset.__gyrecheck__ = True  # type: ignore[attr-defined]
        return like(reset, fn)

    def _is_environment(self, kind: type) -> bool:
        if not self.forbidden:
            self.forbidden = tuple(found for found in (_resolve(name) for name in self.never) if isinstance(found, type))
        if self.forbidden and issubclass(kind, self.forbidden):
            return False
        if not any(callable(getattr(kind, name, None)) for name in self.resets):
            return False
        for name in self.steps:
            code = getattr(kind.__dict__.get(name), "__code__", None)
            if code is None:
                continue
            optional = len(getattr(kind.__dict__[name], "__defaults__", None) or ())
            if code.co_argcount - optional >= _REQUIRED:
                return True
        return False

    def _is_foreign(self, name: str) -> bool:
        """Whether a module lies in a package whose own file is an installed one: its thousands of parts need not be asked for theirs."""
        root = name.partition(".")[0]
        known = self.roots.get(root)
        if known is None:
            package = sys.modules.get(root)
            known = self.roots[root] = isinstance(getattr(package, "__file__", None), str) and not self._own(package)
        return known

    def _own(self, module: Any) -> bool:
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or file.startswith(self.foreign):
            return False
        return "site-packages" not in file and "/gyrecheck/hook/" not in file


def _below(base: type) -> list[type]:
    found: list[type] = []
    queue: list[type] = [base]
    while queue:
        below: list[type] = queue.pop().__subclasses__()
        for kind in below:
            if kind not in found:
                found.append(kind)
                queue.append(kind)
    return found


def _resolve(path: str) -> object:
    module, _, name = path.rpartition(".")
    return getattr(sys.modules.get(module), name, None)
