"""Buffers that an environment writes anew at each step while the program goes on holding what it was handed before.

Seen by the count of references to an array that is an attribute of the environment: it grows with the steps, and the array's values
change. Looked at a few times in a process's life, before a step; nothing is kept but numbers.
"""

from __future__ import annotations

import sys
import zlib

from gyrecheck.hook import side
from gyrecheck.hook.networks import fingerprint

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from typing import Any

    from gyrecheck.hook.runtime import Runtime

LOOKS = frozenset((32, 64, 128, 256, 512))
"""Sample calls of one entry at which its environment's arrays are looked at."""
MOST = 1 << 20
"""Bytes of an array above which it is not looked at."""
_DEEP = 8


class Buffers:
    """What was seen of the arrays of environments, by identity of the environment and name of the attribute."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.seen: dict[tuple[int, str], tuple[int, int, str, int]] = {}
        """The array's identity, its references, its values' fingerprint, and the sample call of the last look."""

    def look(self, given: tuple[Any, ...], n: int) -> None:
        """Before sample call `n` with these arguments, the environment first."""
        env = given[0] if given else None
        for _ in range(_DEEP):
            space = getattr(env, "__dict__", None)
            if space is None:
                return
            for name in tuple(space):
                if type(space[name]).__name__ in {"ndarray", "Tensor"}:
                    self._compare(env, name, space, n)
            env = space.get("env")

    def _compare(self, env: Any, name: str, space: dict[str, Any], n: int) -> None:
        held = sys.getrefcount(space[name])
        values = _values(space[name])
        now = (id(space[name]), held, values, n)
        before = self.seen.get((id(env), name))
        self.seen[id(env), name] = now
        if before is None or not values or before[0] != now[0] or before[2] == values:
            return
        more, steps = held - before[1], n - before[3]
        if more >= steps // 2:
            place = side.caller(self.runtime.libraries)
            self.runtime.events.write("live_buffer", env=type(env).__name__, name=name, more=more, steps=steps, site=place)


def _values(array: Any) -> str:
    if type(array).__name__ == "Tensor":
        return fingerprint([array])
    return f"{zlib.crc32(array):08x}" if array.nbytes <= MOST and array.flags.c_contiguous else ""
