"""What a project writes into its own code: which calls sample, which train, what the ledger says, which version is where.

Everything here counts in this process when no run folder is given, and never raises into the program.
"""

from __future__ import annotations

import time

from gyrecheck.hook import side
from gyrecheck.hook.count import begin_sample, begin_update, sampling_wrapper, training_wrapper
from gyrecheck.hook.runtime import MARKED, current
from gyrecheck.model.shard_layout import COUNTED, LEDGER

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Token
    from types import TracebackType
    from typing import Any, ParamSpec, TypeVar, overload

    from gyrecheck.hook.runtime import Runtime

    P = ParamSpec("P")
    R = TypeVar("R")

_SAMPLE_STEP = [0]
_TOTALS = {f"{name}_total": name for name in COUNTED}
"""Running totals by the names they are told under."""
_FELL: set[tuple[int, str]] = set()
"""Process and term of each fall that is written down."""


class _Scope:
    """A side as a context manager and as a decorator; one object may be entered by many threads and tasks."""

    _side = ""

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._tokens: list[Token[str]] = []

    def __call__(self, fn: Callable[P, R]) -> Callable[P, R]:
        label = self._name or f"{getattr(fn, '__module__', '?')}.{getattr(fn, '__qualname__', '?')}"
        runtime = current()
        if self._side == side.SAMPLING:
            return sampling_wrapper(fn, runtime, runtime.entry("S", MARKED, label))
        return training_wrapper(fn, runtime, runtime.entry("T", MARKED, label))

    def __enter__(self) -> None:
        runtime = current()
        try:
            letter = "S" if self._side == side.SAMPLING else "T"
            label = self._name or side.caller(skip=2).rpartition("/")[2]
            entry = runtime.entry(letter, MARKED, label)
            if letter == "S":
                begin_sample(entry, ())
            else:
                begin_update(entry, ())
        except Exception:
            pass
        self._tokens.append(side.OPEN.set(self._side))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            if self._side == side.TRAINING:
                current().unwant("update")
            side.OPEN.reset(self._tokens.pop())
        except Exception:  # left in another context than it was entered in
            side.OPEN.set("")


class _Sampling(_Scope):
    _side = side.SAMPLING


class _Training(_Scope):
    _side = side.TRAINING


if TYPE_CHECKING:

    @overload
    def sampling(name: str = "") -> _Sampling: ...
    @overload
    def sampling(name: Callable[P, R]) -> Callable[P, R]: ...
    def sampling(name: Any = "") -> Any:
        """Mark the sampling entry; see below."""

    @overload
    def training(name: str = "") -> _Training: ...
    @overload
    def training(name: Callable[P, R]) -> Callable[P, R]: ...
    def training(name: Any = "") -> Any:
        """Mark the update entry; see below."""

else:

    def sampling(name=""):  # noqa: ANN001, ANN201 - typed above
        """Mark the entry of the sampling side, as a decorator (with or without a name) or as a scope; each call or entry counts one."""
        return _Sampling(name) if isinstance(name, str) else _Sampling()(name)

    def training(name=""):  # noqa: ANN001, ANN201 - typed above
        """Mark the entry of the training side, as `sampling` does the other."""
        return _Training(name) if isinstance(name, str) else _Training()(name)


def ledger(**terms: int) -> None:
    """Say what became of samples since the last call: `sampled taken drawn dropped_stale dropped_other` are added to their totals.

    `left` and `in_flight` are levels: what is there now. `sampled_total=...` and its like give a running total instead; one that falls
    is written down as an event, and so is an unknown name. Nothing is raised. All terms of one call are published as one set: a reader
    never mixes two calls.
    """
    try:
        runtime = current()
        cells = runtime.cells
        unknown = [name for name in terms if name not in LEDGER and name not in _TOTALS]
        if unknown:
            runtime.events.write("unknown_term", names=unknown)
        cells["sequence"][0] += 1
        try:
            for name, value in terms.items():
                amount = int(value)
                if name in COUNTED:
                    cells[name][0] += amount
                    if amount < 0:
                        _fell(runtime, name, 0, amount)
                elif name in LEDGER:
                    cells[name][0] = amount
                elif name in _TOTALS:
                    cell = cells[_TOTALS[name]]
                    if amount < cell[0]:
                        _fell(runtime, name, cell[0], amount)
                    cell[0] = amount
            cells["ledger_calls"][0] += 1
        finally:
            cells["sequence"][0] += 1
    except Exception:
        pass


def _fell(runtime: Runtime, name: str, before: int, after: int) -> None:
    """Note, once a term and process, that what can only grow was told to be less."""
    if (runtime.pid, name) not in _FELL:
        _FELL.add((runtime.pid, name))
        runtime.events.write("total_fell", name=name, before=before, after=after, site=side.caller(skip=3))


def tag(policy_version: int | None = None, sample_step: int | None = None) -> dict[str, int | float]:
    """Tags for a record at the moment it is written: `sample_step`, `wall_clock` (seconds since the epoch), `policy_version`.

    Not given, the version is the newest that `load` was told (-1 before the first), the step counts the calls of `tag`.
    """
    _SAMPLE_STEP[0] += 1
    version = current().cells["loaded_version"][0] if policy_version is None else policy_version
    return {"sample_step": _SAMPLE_STEP[0] if sample_step is None else sample_step, "wall_clock": time.time(), "policy_version": version}


def publish(version: int, module: object = None) -> None:
    """The trainer hands out policy `version`; with its module, the weights' fingerprint is noted too."""
    _version("publish", "published", version, module)


def load(version: int, module: object = None) -> None:
    """The sampler has loaded policy `version`; with its module, the weights' fingerprint is noted too."""
    _version("loaded", "loaded", version, module)


def _version(event: str, cell: str, version: int, module: object) -> None:
    try:
        runtime = current()
        runtime.cells[cell][0] += 1
        runtime.cells[f"{cell}_version"][0] = int(version)
        print_of, form = "", ""
        if module is not None:
            from gyrecheck.hook.networks import fingerprint, parameters_of, shape_of

            tensors = parameters_of(module)
            print_of, form = fingerprint(tensors), shape_of(tensors)
        runtime.events.write(event, version=int(version), fp=print_of, form=form, site=side.caller())
    except Exception:
        pass


def log_calls(on: bool = True) -> None:
    """Also write `sample_call n=... args=...` and `update_call n=... args=...` through the logger `gyrecheck` at level INFO."""
    if on:
        current().want("log")
    else:
        current().unwant("log")
