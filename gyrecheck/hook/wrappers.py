"""The wrappers of what a table of names asks for, one maker a role: each tells the training side what happens, and calls through.

Whatever goes wrong on our side is swallowed; what the wrapped function gives or raises is the program's.
"""

from __future__ import annotations

from gyrecheck.hook import side
from gyrecheck.hook.count import remember
from gyrecheck.hook.loads import due, loaded, loads_of
from gyrecheck.hook.networks import fingerprint, parameters_of
from gyrecheck.hook.rates import rate_of

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gyrecheck.hook.environments import Environments
    from gyrecheck.hook.runtime import Runtime
    from gyrecheck.hook.updates import Updates


class Wrappers:
    """The makers of wrappers of one process, by role."""

    def __init__(self, runtime: Runtime, updates: Updates, environments: Environments, horizons: dict[str, str]) -> None:
        self.runtime, self.updates, self.environments, self.horizons = runtime, updates, environments, horizons
        self.by_role: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
            "optimizer.make": self.making,
            "optimizer.load": self.restoring,
            "optimizer.zero_grad": self.clearing,
            "module.zero_grad": self.clearing_module,
            "module.eval": self.switching,
            "weights.load": self.loading,
            "loss.backward": self.backward,
            "grad.clip": self.clipping,
            "scheduler.step": self.scheduling,
            "policy.act": self.drawing,
        }

    def making(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """An optimizer's constructor: it is known from then on, and so are the environments defined before it."""

        def make(self_: Any, *args: Any, **kwargs: Any) -> None:
            fn(self_, *args, **kwargs)
            try:
                self.environments.look(deep=True)
                self.updates.made(self_)
            except Exception:
                pass

        return make

    def restoring(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """An optimizer's `load_state_dict`."""

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

    def clearing(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """An optimizer's `zero_grad`."""
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

    def clearing_module(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """A module's `zero_grad`."""

        def zero_grad(self_: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                self.updates.module_cleared(self_)
            except Exception:
                pass
            return fn(self_, *args, **kwargs)

        return zero_grad

    def switching(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """A module's `eval`."""
        modes = self.updates.modes

        def eval(self_: Any) -> Any:  # noqa: A001 - the method of that name
            try:
                modes.switching(self_)
            except Exception:
                pass
            return fn(self_)

        return eval

    def loading(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """A module's `load_state_dict`."""

        def load_state_dict(self_: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            loads = before = None
            try:
                if self.updates.phases is not None:
                    loads = loads_of(self.updates.phases, self_)
                    if due(loads):
                        before = fingerprint(parameters_of(self_))
            except Exception:
                pass
            result = fn(self_, state_dict, *args, **kwargs)
            try:
                if self.updates.phases is not None and loads is not None:
                    loaded(self.updates.phases, self_, loads, before, result, state_dict)
            except Exception:
                pass
            return result

        return load_state_dict

    def backward(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """A backward pass: the training side is open while it runs."""
        runtime, updates = self.runtime, self.updates

        cell = runtime.cells["backward_calls"]

        def backward(*args: Any, **kwargs: Any) -> Any:
            if updates.calm and not updates.left:
                updates.loose += 1
                updates.backwards += 1
                cell[0] += 1
                return fn(*args, **kwargs)
            try:
                updates.before_backward()
                if self.updates.phases is not None and self.updates.phases.handle is not None:
                    self.updates.phases.before_backward()
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

    def clipping(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """A clip of gradients."""
        updates = self.updates

        def clip(*args: Any, **kwargs: Any) -> Any:
            if not updates.calm:
                try:
                    updates.clipped()
                except Exception:
                    pass
            return fn(*args, **kwargs)

        return clip

    def scheduling(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """A schedule's `step`."""
        horizons = self.horizons

        def step(self_: Any, *args: Any, **kwargs: Any) -> Any:
            result = fn(self_, *args, **kwargs)
            try:
                self.updates.schedules.advanced(self_, horizons)
            except Exception:
                pass
            return result

        return step

    def drawing(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """A draw from a distribution: who acts, where nothing else tells."""
        runtime = self.runtime

        def sample(self_: Any, *args: Any, **kwargs: Any) -> Any:
            if "phase" in runtime.due and self.updates.phases is not None:
                try:
                    self.updates.phases.before_draw()
                except Exception:
                    pass
            return fn(self_, *args, **kwargs)

        return sample
