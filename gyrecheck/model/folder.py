"""A run folder's own balance: what its files say, whatever the logs say."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FolderBalance:
    """The terms, in trajectories, and what does not add up by id."""

    path: str
    run_id: str = ""
    sampled: int = 0
    taken: int = 0
    dropped_stale: int = 0
    dropped_other: int = 0
    left: int = 0
    in_flight: int = 0
    twice: tuple[str, ...] = ()
    """Ids settled more than once."""
    unknown: tuple[str, ...] = ()
    """Ids settled that no journal produced."""
    missing: tuple[str, ...] = ()
    """Segments that a journal names and that are nowhere."""
    over_age: int = 0
    max_age: float | None = None
    ages: dict[int, int] = field(default_factory=dict)

    @property
    def residual(self) -> int:
        """Sampled minus the rest."""
        return self.sampled - self.taken - self.dropped_stale - self.dropped_other - self.left - self.in_flight
