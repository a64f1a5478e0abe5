"""The pictures of a run so far, thinned evenly when there are too many: the first and the newest are always kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from gyrecheck.screen.view import View

LIMIT = 720


@dataclass(slots=True)
class Frames:
    """Pictures with a cursor. The cursor is at the newest one (`live`) until somebody steps back."""

    views: list[View] = field(default_factory=list)
    at: int | None = None
    """Index of the picture shown; None is the newest."""

    def add(self, view: View) -> None:
        """Keep a picture; beyond the limit every second old one is let go."""
        self.views.append(view)
        if len(self.views) > LIMIT:
            kept = self.views[: -LIMIT // 4 : 2]
            recent = self.views[-LIMIT // 4 :]
            if self.at is not None:
                self.at = min(self.at // 2, len(kept) + len(recent) - 1)
            self.views = kept + recent

    @property
    def shown(self) -> View:
        """The picture under the cursor; an empty one before the first."""
        if not self.views:
            return View()
        return self.views[-1] if self.at is None else self.views[self.at]

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
            if self.views[at].versions != self.views[at - 1].versions:
                self.put(at)
                return True
        return False

    def _search(self, start: int) -> bool:
        for at in range(start, len(self.views)):
            before = {v.code for v in self.views[at - 1].broken} if at else set()
            if {v.code for v in self.views[at].broken} - before:
                self.put(at)
                return True
        return False
