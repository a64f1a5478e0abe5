"""In which mode a network that acts is trained: layers that an evaluation switched off and nothing switched on again.

Only acting networks that hold such layers are watched, from their first sampling phase on; a look is one attribute of one layer a step.
"""

from __future__ import annotations

import weakref

from gyrecheck.hook import side

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any

    from gyrecheck.hook.runtime import Runtime


class Watched:
    """One network: how many steps it was trained in each mode."""

    __slots__ = ("names", "off", "on", "root", "site")

    def __init__(self, root: Any, names: Sequence[str]) -> None:
        self.root = weakref.ref(root)
        self.names = list(names)
        self.on = 0
        """Steps in training mode."""
        self.off = 0
        """Steps in a row, up to now, in evaluation mode after those."""
        self.site = ""
        """Where it was last put there from training mode."""


class Modes:
    """The watched networks of one process, by the number of their optimizer."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.watched: dict[int, Watched] = {}
        self.roots: set[int] = set()

    def watch(self, number: int, root: Any, names: Sequence[str]) -> None:
        """A network acts whose parameters optimizer `number` holds; `names` are those of its layers that depend on the mode."""
        if names and number not in self.watched:
            self.watched[number] = Watched(root, names)
            self.roots.add(id(root))

    def before_step(self, number: int, step: int) -> None:
        """Before a step of an optimizer."""
        watched = self.watched.get(number)
        root = watched.root() if watched is not None else None
        if watched is None or root is None:
            return
        if root.training:
            watched.on, watched.off = watched.on + 1, 0
            return
        if not watched.on:
            return
        watched.off += 1
        if watched.off & (watched.off - 1) == 0:
            self.runtime.events.write(
                "mode_left", i=number, n=watched.off, on=watched.on, step=step, module=type(root).__name__, layers=watched.names[:4],
                site=watched.site or side.caller(self.runtime.libraries, 4),
            )  # fmt: skip

    def switching(self, module: Any) -> None:
        """`module.eval()` is about to be called."""
        if id(module) in self.roots and module.training:
            frame: FrameType | None = side.calling(self.runtime.libraries, 3)
            for watched in self.watched.values():
                if watched.root() is module and frame is not None:
                    watched.site = side.place(frame)
