"""Whether a thread that acts stands in the middle of a rollout while another one steps an optimizer.

Looked at before a step, in programs whose sampling was seen in a thread that does not train. A thread that waits for a task or a signal
at that moment (a pool between two rounds, a worker behind a barrier) is not in the middle of anything.
"""

from __future__ import annotations

import sys
from _thread import get_ident

from gyrecheck.hook import side

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from types import CodeType, FrameType

WAITS = ("threading.py", "queue.py", "concurrent/futures/thread.py", "selectors.py", "multiprocessing/connection.py")
"""Ends of the files in which a thread waits for others."""


class Threads:
    """The threads of one process that act and do not train."""

    def __init__(self) -> None:
        self.acting: dict[int, dict[int, CodeType]] = {}
        """By thread, the code (by identity) of the program's functions that lay under its sample calls."""
        self.inside: set[int] = set()
        """Those that were in one of these functions during a step since they were last asked about."""

    def acts(self, libraries: tuple[str, ...], skip: int = 2) -> bool:
        """The calling thread makes a sample call; whether it was in the middle of sampling at a step since the last time."""
        codes = self.acting.setdefault(get_ident(), {})
        frame = side.calling(libraries, skip + 1)
        for _ in range(side.DEPTH):
            if frame is None:
                break
            if not frame.f_code.co_filename.endswith(WAITS):
                codes[id(frame.f_code)] = frame.f_code
            frame = frame.f_back
        within = get_ident() in self.inside
        self.inside.discard(get_ident())
        return within

    def at_step(self) -> None:
        """The calling thread is about to step an optimizer."""
        frames = sys._current_frames()
        for thread, codes in tuple(self.acting.items()):
            frame: FrameType | None = frames.get(thread) if thread != get_ident() else None
            if frame is None or frame.f_code.co_filename.endswith(WAITS):
                continue
            for _ in range(side.DEPTH):
                if frame is None:
                    break
                if id(frame.f_code) in codes:
                    self.inside.add(thread)
                    break
                frame = frame.f_back
