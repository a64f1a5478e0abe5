"""Wraps what the table of names asks for, once its module has been imported; what this version lacks is left out and noted."""

from __future__ import annotations

import atexit
import os
import sys

from gyrecheck.hook import runtime as runtimes
from gyrecheck.hook import side
from gyrecheck.hook.count import like, remember
from gyrecheck.hook.environments import Environments
from gyrecheck.hook.loads import due, loaded, loads_of
from gyrecheck.hook.networks import fingerprint, parameters_of
from gyrecheck.hook.phases import Phases
from gyrecheck.hook.rates import rate_of
from gyrecheck.hook.updates import Updates

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable
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
        self.phases: Phases | None = None
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
            if self.phases is not None:
                self.phases.end()
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
                    if self.phases is not None:
                        self.phases.after_update()
                except Exception:
                    pass

            register(after)
        elif role == "policy.forward":
            self.phases = updates.phases = Phases(self.runtime, updates, register, self.libraries)
            self.phases.glance = environments.look
            self.phases.moody = tuple(self.table.get("moody", ()))
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
        wrapper = {
            "optimizer.make": self._making,
            "optimizer.load": self._restoring,
            "optimizer.zero_grad": self._clearing,
            "module.zero_grad": self._clearing_module,
            "module.eval": self._switching,
            "weights.load": self._loading,
            "loss.backward": self._backward,
            "grad.clip": self._clipping,
            "scheduler.step": self._scheduling,
            "policy.act": self._drawing,
        }[role](fn)
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

    def _making(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def make(self_: Any, *args: Any, **kwargs: Any) -> None:
            fn(self_, *args, **kwargs)
            try:
                self.environments.look(deep=True)
                self.updates.made(self_)
            except Exception:
                pass

        return make

    def _restoring(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def load_state_dict(self_: Any, *args: Any, **kwargs: Any) -> Any:
            before = None
            try:
                before = rate_of(self_)
            except Exception:
                pass
            result = fn(self_, *args, **kwargs)
            try:
                self.updates.loaded(self_, before)
            except Exception:
                pass
            return result

        return load_state_dict

    def _clearing(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        updates, cell = self.updates, self.runtime.cells["zero_grad_calls"]

        def zero_grad(self_: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                if updates.calm and not updates.loose and not updates.left:  # whatever is cleared was used
                    cell[0] += 1
                else:
                    updates.cleared(self_)
            except Exception:
                pass
            return fn(self_, *args, **kwargs)

        return zero_grad

    def _clearing_module(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def zero_grad(self_: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                self.updates.module_cleared(self_)
            except Exception:
                pass
            return fn(self_, *args, **kwargs)

        return zero_grad

    def _switching(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        modes = self.updates.modes

        def eval(self_: Any) -> Any:  # noqa: A001 - the method of that name
            try:
                modes.switching(self_)
            except Exception:
                pass
            return fn(self_)

        return eval

    def _loading(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def load_state_dict(self_: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            loads = before = None
            try:
                if self.phases is not None:
                    loads = loads_of(self.phases, self_)
                    if due(loads):
                        before = fingerprint(parameters_of(self_))
            except Exception:
                pass
            result = fn(self_, state_dict, *args, **kwargs)
            try:
                if self.phases is not None and loads is not None:
                    loaded(self.phases, self_, loads, before, result, state_dict)
            except Exception:
                pass
            return result

        return load_state_dict

    def _backward(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        runtime, updates = self.runtime, self.updates

        cell = runtime.cells["backward_calls"]

        def backward(*args: Any, **kwargs: Any) -> Any:
            if updates.calm and runtime.turns.over and not updates.left:
                updates.loose += 1
                updates.backwards += 1
                cell[0] += 1
                return fn(*args, **kwargs)
            try:
                updates.before_backward()
                if self.phases is not None and self.phases.handle is not None:
                    self.phases.before_backward()
            except Exception:
                pass
            if updates.calm or "update" in runtime.due:  # inside an optimizer's step, which watches already
                return fn(*args, **kwargs)
            token = side.OPEN.set(side.TRAINING)
            runtime.want("update")
            try:
                return fn(*args, **kwargs)
            finally:
                runtime.unwant("update")
                side.OPEN.reset(token)

        remember(backward, runtime.update_codes)
        return backward

    def _clipping(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        updates = self.updates

        def clip(*args: Any, **kwargs: Any) -> Any:
            if not updates.calm:
                try:
                    updates.clipped()
                except Exception:
                    pass
            return fn(*args, **kwargs)

        return clip

    def _scheduling(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        horizons = self.table.get("horizons", {})

        def step(self_: Any, *args: Any, **kwargs: Any) -> Any:
            result = fn(self_, *args, **kwargs)
            try:
                self.updates.schedules.advanced(self_, horizons)
            except Exception:
                pass
            return result

        return step

    def _drawing(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        runtime = self.runtime

        def sample(self_: Any, *args: Any, **kwargs: Any) -> Any:
            if "phase" in runtime.due and self.phases is not None:
                try:
                    self.phases.before_draw()
                except Exception:
                    pass
            return fn(self_, *args, **kwargs)

        return sample


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
