"""The pictures of a run (or of several) so far, thinned evenly when there are too many: the first and the newest are always kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Picture = TypeVar("Picture")
LIMIT = 720


@dataclass(slots=True)
class Frames(Generic[Picture]):
    """Pictures with a cursor. The cursor is at the newest one (`live`) until somebody steps back."""

    empty: Picture
    """What is shown before the first."""
    broken: Callable[[Picture], frozenset[Hashable]]
    """What is broken in a picture."""
    versions: Callable[[Picture], Hashable]
    """The policy versions of a picture."""
    lean: Callable[[Picture], Picture]
    """A picture without what its successors hold anyway: only the newest is kept whole."""
    views: list[Picture] = field(default_factory=list)
    at: int | None = None
    """Index of the picture shown; None is the newest."""

    def add(self, view: Picture) -> None:
        """Keep a picture; beyond the limit every second old one is let go."""
        if self.views:
            self.views[-1] = self.lean(self.views[-1])
        self.views.append(view)
        if len(self.views) > LIMIT:
            kept = self.views[: -LIMIT // 4 : 2]
            recent = self.views[-LIMIT // 4 :]
            if self.at is not None:
                self.at = min(self.at // 2, len(kept) + len(recent) - 1)
            self.views = kept + recent

    @property
    def shown(self) -> Picture:
        """The picture under the cursor; an empty one before the first."""
        if not self.views:
            return self.empty
        return self.views[-1] if self.at is None else self.views[self.at]

    @property
    def newest(self) -> Picture:
        """The last picture, whatever is shown."""
        return self.views[-1] if self.views else self.empty

    @property
    def live(self) -> bool:
        """True while the newest picture is shown."""
        return self.at is None

    def step(self, by: int) -> None:
        """Move the cursor; at the newest picture it is live again."""
        if self.views:
            now = len(self.views) - 1 if self.at is None else self.at
            self.put(now + by)

    def put(self, at: int) -> None:
        """Show one picture by index."""
        at = max(0, at)
        self.at = None if at >= len(self.views) - 1 else at

    def next_breach(self) -> bool:
        """Go to the next picture with more broken verdicts than the one before it; from the newest, search from the start."""
        start = 0 if self.at is None else self.at + 1
        return self._search(start)

    def first_breach(self) -> bool:
        """Go to the first picture in which a verdict is broken."""
        return self._search(0)

    def last_version(self) -> bool:
        """Go to the picture in which a policy version last changed."""
        for at in range(len(self.views) - 1, 0, -1):
            if self.versions(self.views[at]) != self.versions(self.views[at - 1]):
                self.put(at)
                return True
        return False

    def _search(self, start: int) -> bool:
        for at in range(start, len(self.views)):
            before = self.broken(self.views[at - 1]) if at else frozenset()
            if self.broken(self.views[at]) - before:
                self.put(at)
                return True
        return False
