"""Whose turn it is on an environment: an evaluation that plays on the one that a collector stands in the middle of.

Seen while all calls of an entry are looked at. Functions take turns on an environment; where a guest resets it and plays, and the owner
then goes on without a reset, the owner must hold what the guest was handed last. That it does not is seen by the life of two
observations: the guest's newest one is gone, the owner's older one is still there.
"""

from __future__ import annotations

import sys
import weakref

from gyrecheck.hook import side

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

    from gyrecheck.hook.runtime import Runtime

    Frames = dict[tuple[int, int], FrameType]

MOST = 64
"""Environments that are followed."""
_FLAGS = frozenset(("bool", "bool_"))


class Turn:
    """Steps of one function on one environment, until another function makes one."""

    __slots__ = ("code", "ended", "frames", "last", "own", "place", "resets", "steps", "under")

    def __init__(self, frame: FrameType, *, own: bool) -> None:
        self.code, self.place = frame.f_code, side.place(frame)
        self.own = own
        """It began with a reset that this function made."""
        self.frames: set[tuple[int, int]] = set()
        """Which activations lay under it."""
        self.under = ""
        """The update that it runs in: an activation that has stepped an optimizer, and in which the turn before does not lie."""
        self.steps, self.resets = 0, int(own)
        self.ended = False
        """The episode was over after its last step."""
        self.last: weakref.ref[Any] | None = None
        """What it was handed last; None where that kind of observation has no weak references."""


class Played:
    """One environment."""

    __slots__ = ("before", "env", "now", "reset_by")

    def __init__(self, env: Any) -> None:
        self.env = weakref.ref(env)
        self.before: Turn | None = None
        self.now: Turn | None = None
        self.reset_by: CodeType | None = None
        """Who reset it since the last step."""


class Turns:
    """The followed environments of one process."""

    def __init__(self, runtime: Runtime, words: frozenset[str] = frozenset()) -> None:
        self.runtime = runtime
        self.words = words
        """Names of methods that hand a step or a reset on: whose turn it is says who called them."""
        self.played: dict[int, Played] = {}
        self.updating: set[tuple[int, int]] = set()
        """Activations that lay under the newest optimizer step."""
        self.found: dict[tuple[CodeType, CodeType], dict[str, Any]] = {}
        """What is known of each pair of owner and guest."""
        self.over = False
        """Calls are no longer all looked at."""
        self.stepping: set[int] = set()
        """Code (by identity) of functions that step an environment."""
        self.training: set[int] = set()
        """Those of them that an optimizer's step ran in."""
        self.passed: tuple[int, int] | None = None
        """The activation of such a function that the newest backward pass ran in, until it steps again."""
        self.passes: dict[int, dict[str, Any]] = {}
        """Of each function the backward passes between two of its steps."""

    def step(self, env: Any, frame: FrameType) -> Turn | None:
        """Before a step made by `frame`: whose turn it is; None where the environment cannot be followed."""
        played = self.played.get(id(env))
        now = played.now if played is not None and played.reset_by is None and played.env() is env else None
        if now is not None and now.code is frame.f_code and self.passed is None and not self.over:  # the same once more
            now.steps += 1
            return now
        played = self._of(env)
        if played is None:
            return None
        frame = self._caller(frame)
        if self.passed is not None and self.passed == (id(frame), id(frame.f_code)):
            self._between(id(frame.f_code))
        self.stepping.add(id(frame.f_code))
        now = played.now
        if now is None or now.code is not frame.f_code:
            now = self._turn(played, frame)
        elif played.reset_by is not None:
            now.resets += 1
        played.reset_by = None
        now.steps += 1
        return now

    def stepped(self, turn: Turn, result: Any) -> None:
        """After the step."""
        turn.ended = False
        if isinstance(result, tuple):
            for part in result[2:4]:
                if type(part).__name__ in _FLAGS and part:
                    turn.ended = True
        turn.last = _reference(result)

    def reset(self, env: Any, frame: FrameType, result: Any) -> None:
        """After a reset made by `frame`."""
        played = self._of(env)
        if played is None:
            return
        frame = self._caller(frame)
        played.reset_by = frame.f_code
        if played.now is not None and played.now.code is frame.f_code:  # its own next episode
            played.now.ended = False
            played.now.last = _reference(result)

    def update(self) -> None:
        """Before an optimizer step."""
        if self.played and not self.over:
            self.updating = set(_below(sys._getframe(2)))
            self.training.update(code for _, code in self.updating if code in self.stepping)
            self.passed = None

    def backward(self) -> None:
        """Before a backward pass."""
        if not self.stepping or self.over:
            return
        frame = side.find_under(self.stepping, 3)
        if frame is not None:
            self.passed = (id(frame), id(frame.f_code))
            if id(frame.f_code) not in self.passes:
                self.passes[id(frame.f_code)] = {"n": 0, "path": side.path_to(frame, 3, self.runtime.libraries)}

    def end(self) -> None:
        """Nothing more is looked at; what is known is written."""
        if self.over:
            return
        self.over = True
        for played in self.played.values():
            self._over(played)
        self.played.clear()
        for known in self.found.values():
            if known["times"]:
                self.runtime.events.write("env_taken", **known)
        for code, passes in self.passes.items():
            if passes["n"]:
                self.runtime.events.write("rollout_backward", trains=code in self.training, **passes)

    def _between(self, code: int) -> None:
        """A backward pass lay between two steps of one function, and no optimizer's step."""
        passes = self.passes[code]
        self.passed = None
        passes["n"] += 1
        if not passes["n"] & (passes["n"] - 1):
            self.runtime.events.write("rollout_backward", trains=code in self.training, **passes)

    def _caller(self, frame: FrameType) -> FrameType:
        """The nearest activation that is no method by which a class of the program's own hands on."""
        while frame.f_code.co_name in self.words and frame.f_back is not None:
            frame = frame.f_back
        return frame

    def _of(self, env: Any) -> Played | None:
        if self.over:
            return None
        played = self.played.get(id(env))
        if played is None or played.env() is not env:
            if played is None and len(self.played) >= MOST:
                return None
            played = self.played[id(env)] = Played(env)
        return played

    def _turn(self, played: Played, frame: FrameType) -> Turn:
        """Another function steps from now on."""
        owner, guest = played.before, played.now
        self._over(played)
        if owner is not None and guest is not None and owner.code is frame.f_code and played.reset_by is None and _lost(owner, guest):
            known = self.found[owner.code, guest.code]
            known["times"] += 1
            if not known["times"] & (known["times"] - 1):
                self.runtime.events.write("env_taken", **known)
        turn = Turn(frame, own=played.reset_by is frame.f_code)
        below = _below(frame)
        turn.frames = set(below)
        if guest is not None:
            inside = [activation for key, activation in below.items() if key in self.updating and key not in guest.frames]
            turn.under = side.place(inside[0]) if inside else ""
        if not turn.under:
            self.updating = set()  # activations come and go, and another may take the place of one in memory
        played.before, played.now = guest, turn
        return turn

    def _over(self, played: Played) -> None:
        """A turn has ended: what it did is its guest's part of what is known of the two."""
        owner, guest = played.before, played.now
        if owner is None or guest is None or not guest.own:
            return
        known = self.found.setdefault(
            (owner.code, guest.code),
            {
                "env": type(getattr(played.env(), "unwrapped", played.env())).__name__,
                "owner": owner.place,
                "guest": guest.place,
                "under": "",
                "times": 0,
            }
            | dict.fromkeys(("turns", "steps", "resets", "inside"), 0),
        )
        known["turns"] += 1
        known["steps"] += guest.steps
        known["resets"] += guest.resets
        known["inside"] += bool(guest.under)
        known["under"] = guest.under or known["under"]


def _lost(owner: Turn, guest: Turn) -> bool:
    """Whether the owner goes on from an observation of its own unfinished episode, after the guest's."""
    if not guest.own or owner.ended:
        return False
    if owner.last is None or guest.last is None:
        return guest.ended
    return owner.last() is not None and guest.last() is None and (guest.ended or bool(guest.under))


def _below(frame: FrameType | None) -> Frames:
    """The activations from a frame down, each by its place in memory and its code."""
    found: Frames = {}
    for _ in range(side.DEPTH):
        if frame is None:
            break
        found[id(frame), id(frame.f_code)] = frame
        frame = frame.f_back
    return found


def _reference(result: Any) -> weakref.ref[Any] | None:
    seen = result[0] if isinstance(result, tuple) and result else result
    if isinstance(seen, dict) and seen:
        seen = next(iter(seen.values()))
    try:
        return weakref.ref(seen)
    except TypeError:
        return None
