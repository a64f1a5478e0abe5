"""Which side is open, and what lies under a call.

The side is a ContextVar, so that an asyncio task which trains while another awaits a sample is no crossing. The stack is walked on the
rare side only, by identity of code objects, at most `DEPTH` frames; names are made for frames only when a crossing was seen.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

DEPTH = 64
_WALK = range(DEPTH)
SAMPLING, TRAINING = "sampling", "training"
OPEN: ContextVar[str] = ContextVar("gyrecheck_side", default="")
"""The innermost open side of this context: empty, `sampling` or `training`."""
_OWN = __file__.rpartition("/")[0]
_FOREIGN: dict[tuple[str, ...], dict[str, bool]] = {}
"""By parts of paths, of each file whether it is ours, no file, or a library's: asked of every frame of every update."""


def find_under(codes: set[int], skip: int = 2) -> FrameType | None:
    """The nearest frame below the caller whose code is one of `codes` (identities); None within `DEPTH` frames otherwise."""
    frame: Any = sys._getframe(skip)
    try:
        for _ in _WALK:
            if id(frame.f_code) in codes:
                return frame  # type: ignore[no-any-return]
            frame = frame.f_back
    except AttributeError:  # the outermost frame has none below it: cheaper than to ask at each
        pass
    return None


def path_to(stop: FrameType | None, skip: int = 2, libraries: tuple[str, ...] = ()) -> list[str]:
    """`file:line function` from `stop` (or the outermost frame within reach) up to the caller: the shortest path.

    Frames of ours and of files whose path contains one of `libraries` are left out, `stop` itself excepted.
    """
    names: list[str] = []
    frame: FrameType | None = sys._getframe(skip)
    for _ in range(DEPTH):
        if frame is None:
            break
        file = frame.f_code.co_filename
        if frame is stop and frame.f_back is not None and file.startswith(_OWN):
            stop = frame = frame.f_back  # ours stands in for what it wraps
            continue
        if frame is stop or not (file.startswith((_OWN, "<gyrecheck")) or any(part in file for part in libraries)):
            names.append(place(frame))
        if frame is stop:
            break
        frame = frame.f_back
    return list(reversed(names[-24:]))


def caller(libraries: tuple[str, ...] = (), skip: int = 2) -> str:
    """`file:line function` of the nearest frame that is neither ours nor in a path that contains one of `libraries`."""
    frame = calling(libraries, skip + 1)
    return place(frame) if frame is not None else "?"


def calling(libraries: tuple[str, ...] = (), skip: int = 2) -> FrameType | None:
    """The frame that `caller` names."""
    frame: FrameType | None = sys._getframe(skip)
    known = _FOREIGN.setdefault(libraries, {})
    for _ in _WALK:
        if frame is None:
            break
        file = frame.f_code.co_filename
        foreign = known.get(file)
        if foreign is None:
            foreign = known[file] = file.startswith((_OWN, "<")) or any(part in file for part in libraries)
        if not foreign:
            return frame
        frame = frame.f_back
    return None


def place(frame: FrameType) -> str:
    """`file:line function` of a frame."""
    return f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}"
