"""Counted callables: one store a call on the sampling side, everything else on the side that runs rarely.

A sampling wrapper adds one to its entry's cell, compares the count with the next one at which somebody wants to look, and calls through.
It is built with the parameters of the function it wraps, because passing `*args, **kwargs` on costs more than counting. Call sites
are told apart exactly for the first `EXACT` calls of an entry and on every `THIN`-th after that (each then stands for `THIN`).
"""

from __future__ import annotations

import sys

from gyrecheck.hook import side
from gyrecheck.hook.buffers import LOOKS

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any, ParamSpec, TypeVar

    from gyrecheck.hook.runtime import Entry, Runtime
    from gyrecheck.hook.shard import Cell
    from gyrecheck.hook.turns import Turn

    P = ParamSpec("P")
    R = TypeVar("R")

EXACT = 512
THIN = 1024
COROUTINE = 0x80
"""CO_COROUTINE of `inspect`, which is too dear to import here."""
_COPIED = ("__module__", "__name__", "__qualname__", "__doc__", "__defaults__")
_SIMPLE = 0x04 | 0x08 | 0x20 | COROUTINE | 0x200
"""Code flags (varargs, varkeywords, generators, coroutines) of functions that get the wrapper with `*args, **kwargs`."""
_TEMPLATE = """
def build(_g_fn, _g_cell, _g_slow, _g_stepped, _g_entry, _g_nested):
    def counted({parameters}):{nested}
        _g_entry.n = _g_n = _g_entry.n + 1
        _g_cell[0] = _g_n
        if _g_n >= _g_entry.look:
            _g_turn = _g_slow(_g_entry, ({arguments}), _g_n)
            if _g_turn is not None:
                _g_result = _g_fn({call})
                _g_stepped(_g_entry, _g_turn, _g_result)
                return _g_result
        return _g_fn({call})
    return counted
"""
_PASSED_ON = """
        if _g_nested():
            return _g_fn({call})"""
_NEVER = """
        if False: _g_nested"""
"""Both forms of a wrapper close over the same names, so that the code of one can take the place of the other's."""
_BUILT: dict[tuple[str, str, bool], CodeType] = {}


def sampling_wrapper(fn: Callable[P, R], runtime: Runtime, entry: Entry, *, outermost: bool = False) -> Callable[P, R]:
    """`fn`, counted as a sample call each time; a coroutine function opens its side for its whole run.

    With `outermost` a call made by another counted env step, or by a function it calls, is passed on uncounted (an env inside its wrapper).
    Whether that ever happens is seen at the first call of any entry, at the first after a reset and whenever a call is looked at; from then
    on each is asked.
    """
    remember(fn, runtime.sampling_codes)
    if getattr(getattr(fn, "__code__", None), "co_flags", 0) & COROUTINE:

        async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
            begin_sample(entry, args)
            token = side.OPEN.set(side.SAMPLING)
            try:
                return await fn(*args, **kwargs)  # type: ignore[misc]
            finally:
                side.OPEN.reset(token)

        return like(awaited, fn)
    counted: Any = _build(fn, entry, nested=False)
    remember(counted, runtime.sampling_codes)
    if outermost:
        remember(fn, runtime.step_codes)
        remember(counted, runtime.step_codes)
        entry.steps.append((counted, fn))
    return like(counted, fn)


def _build(fn: Callable[P, R], entry: Entry, *, nested: bool) -> Callable[P, R]:
    """The wrapper of a plain function; with `nested` it asks at each call whether another counted step made it."""
    parameters, call = _signature(fn)
    key = (parameters, call, nested)
    code = _BUILT.get(key)
    if code is None:
        plain = call.replace("**_g_kw", "").rstrip(", ")
        arguments = plain[1:] if plain.startswith("*") else f"{plain}," if plain else ""
        first = (_PASSED_ON if nested else _NEVER).format(call=call)
        text = _TEMPLATE.format(parameters=parameters, call=call, arguments=arguments, nested=first)
        code = _BUILT[key] = compile(text, "<gyrecheck count>", "exec")
    space: dict[str, Any] = {}
    exec(code, space)  # noqa: S102 - our own template, with parameter names of a function that already runs
    built: Callable[P, R] = space["build"](fn, entry.cell, slow_sample, stepped, entry, entry.runtime.nested)
    return built


def ask_each_call(entry: Entry) -> None:
    """From now on the steps of `entry` ask at each call whether another counted step made it: one was seen to do so."""
    entry.nested = True
    for counted, fn in entry.steps:
        counted.__code__ = _build(fn, entry, nested=True).__code__
        for codes in (entry.runtime.sampling_codes, entry.runtime.step_codes):
            codes.add(id(counted.__code__))
        _KEPT.append(counted.__code__)


def _signature(fn: object) -> tuple[str, str]:
    """The parameter list to define the wrapper with, and the argument list to call through with."""
    code = getattr(fn, "__code__", None)
    if code is None or code.co_flags & _SIMPLE or code.co_kwonlyargcount or hasattr(fn, "__wrapped__"):
        return "*_g_args, **_g_kw", "*_g_args, **_g_kw"
    names = code.co_varnames[: code.co_argcount]
    if any(name.startswith((".", "_g_")) for name in names):
        return "*_g_args, **_g_kw", "*_g_args, **_g_kw"
    optional = len(getattr(fn, "__defaults__", None) or ())
    shown = [f"{name}=None" if place >= len(names) - optional else name for place, name in enumerate(names)]
    if code.co_posonlyargcount:
        shown.insert(code.co_posonlyargcount, "/")
    return ", ".join(shown), ", ".join(names)


def begin_sample(entry: Entry, args: tuple[object, ...]) -> None:
    """Count a sample call of a scope or coroutine, and look at what is due."""
    entry.n = n = entry.n + 1
    entry.cell[0] = n
    if n >= entry.look:
        slow_sample(entry, args, n, 3)


def slow_sample(entry: Entry, args: tuple[object, ...], n: int, skip: int = 2) -> Turn | None:
    """What only some sample calls do: note the call site, write the human line, and see whether an update lies under the call.

    For an env step that is followed: whose turn it is, to be given back with the step's result.
    """
    turn: Turn | None = None
    try:
        runtime = entry.runtime
        frame = sys._getframe(skip)
        if (
            frame.f_code is entry.caller
            and frame.f_lineno == entry.line
            and getattr(frame.f_back, "f_code", None) is entry.below
            and not runtime.due
            and n < EXACT
            and n & (n - 1)
        ):  # from where the last one came, and nobody wants to look
            entry.site[0] += 1
            entry.look = n + 1
            return runtime.turns.step(args[0], frame) if entry.steps and not runtime.turns.over else None
        if entry.steps and runtime.nested(skip + 1):  # it was made by another counted step, which counts for both
            entry.n = n - 1
            entry.cell[0] = n - 1
            if not entry.nested:
                ask_each_call(entry)
            return None
        if entry.thin == 0 and entry not in runtime.active:
            runtime.active.append(entry)
            runtime.look_again()  # steps that are inside this one from now on
        exact = n < EXACT
        if not n & (n - 1) or (not exact and n >= entry.thin):
            runtime.again()
        if n == EXACT:  # the calls since the newest look were all counted where they belong
            entry.thin = n + THIN - 1
        if exact or n >= entry.thin:
            entry.thin = n + THIN
            entry.site = runtime.called_from("S", frame, entry.role)
            entry.site[0] += 1 if exact else THIN
            entry.caller, entry.line, entry.below = frame.f_code, frame.f_lineno, getattr(frame.f_back, "f_code", None)
        if n in LOOKS and entry.role == "env.step":
            runtime.buffers.look(args, n)
        for word in tuple(runtime.due):
            if word == "log":
                say("sample_call", n, args)
            elif word == "update":
                sample_under_update(runtime, entry.label)
            elif word in runtime.watchers:
                runtime.watchers[word](args)
        entry.look = n + 1 if exact or runtime.due else entry.thin
        if entry.steps and not runtime.turns.over:
            if exact:
                turn = runtime.turns.step(args[0], frame)
            else:
                runtime.turns.end()
    except Exception:
        pass
    return turn


def stepped(entry: Entry, turn: Turn, result: object) -> None:
    """An env step that is followed has returned."""
    try:
        entry.runtime.turns.stepped(turn, result)
    except Exception:
        pass


def sample_under_update(runtime: Runtime, label: str) -> None:
    """Record a sample call that an open update reaches: by its frames, or by an open `training()` scope of this context."""
    under = side.find_under(runtime.update_codes, 3)
    if under is not None or side.OPEN.get() == side.TRAINING:
        runtime.events.write("crossing", inner="sampling", entry=label, path=side.path_to(under, 3, runtime.libraries))


def update_under_sample(runtime: Runtime, label: str, skip: int = 3) -> bool:
    """Record an update that a sample call reaches, and say whether it is one."""
    under = side.find_under(runtime.sampling_codes, skip) if runtime.sampling_codes else None
    if under is not None or side.OPEN.get() == side.SAMPLING:
        runtime.events.write("crossing", inner="training", entry=label, path=side.path_to(under, skip, runtime.libraries))
        return True
    return False


def begin_update(entry: Entry, args: tuple[object, ...], libraries: tuple[str, ...] = ()) -> Cell | None:
    """Count an update call: exact call site, turn, crossing, human line; one within another is counted as nested too.

    Gives the cell of its call site, or None where the next call must be looked at again.
    """
    again = True
    site: Cell | None = None
    entry.n = n = entry.n + 1
    entry.cell[0] = n
    try:
        runtime = entry.runtime
        if side.OPEN.get() == side.TRAINING:
            runtime.cells["nested_updates"][0] += 1
        runtime.turn(entry.role)
        site = runtime.called_from("T", side.calling(libraries), entry.role)
        site[0] += 1
        again = update_under_sample(runtime, entry.label, 4)
        if "log" in runtime.due:
            say("update_call", n, args)
            again = True
        runtime.want("update")
    except Exception:
        pass
    return None if again else site


def training_wrapper(fn: Callable[P, R], runtime: Runtime, entry: Entry) -> Callable[P, R]:
    """`fn`, counted as an update call each time, its side open while it runs."""
    remember(fn, runtime.update_codes)
    if getattr(getattr(fn, "__code__", None), "co_flags", 0) & COROUTINE:

        async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
            begin_update(entry, args)
            token = side.OPEN.set(side.TRAINING)
            try:
                return await fn(*args, **kwargs)  # type: ignore[misc]
            finally:
                side.OPEN.reset(token)
                runtime.unwant("update")

        return like(awaited, fn)

    def counted(*args: P.args, **kwargs: P.kwargs) -> R:
        begin_update(entry, args)
        token = side.OPEN.set(side.TRAINING)
        try:
            return fn(*args, **kwargs)
        finally:
            side.OPEN.reset(token)
            runtime.unwant("update")

    return like(counted, fn)


def like(wrapper: Any, fn: Callable[P, R]) -> Callable[P, R]:
    """`wrapper` under the name and signature of `fn`; compiler attributes of `fn` are not copied."""
    for name in _COPIED:
        try:
            if name != "__defaults__" or wrapper.__code__.co_argcount:
                setattr(wrapper, name, getattr(fn, name))
        except Exception:  # noqa: S112 - a callable object may lack any of these
            continue
    wrapper.__wrapped__ = fn
    return wrapper  # type: ignore[no-any-return]


def remember(fn: object, codes: set[int]) -> None:
    """Note the code object of a function and of what it wraps, so that a stack walk knows it."""
    for _ in range(8):
        code = getattr(fn, "__code__", None)
        if code is not None:
            codes.add(id(code))
            _KEPT.append(code)
        fn = getattr(fn, "__wrapped__", None)
        if fn is None:
            return


_KEPT: list[object] = []
"""Code objects that are known by identity must not die, or another could take their place."""


def say(what: str, n: int, args: tuple[object, ...]) -> None:
    """The human line of a call, through `logging`."""
    import logging

    words = []
    for value in args[:4]:
        shape = getattr(value, "shape", None)
        words.append(f"{type(value).__name__}{tuple(shape)}" if shape is not None else type(value).__name__)
    logging.getLogger("gyrecheck").info("%s n=%d args=%s", what, n, ",".join(words))
