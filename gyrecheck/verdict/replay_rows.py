"""The columns a ratio judgement needs: one element a step (classic) or a token (language model), as parallel numpy arrays.

Elements with a NaN or +inf log-prob on either side never enter a mean; they are counted. Imports numpy: import this module inside the
function that calls it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from gyrecheck.model.errors import GyreError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
WeightsUsed = Literal["recorded", "trainer", "unknown"]


@dataclass(frozen=True, slots=True, eq=False)
class ReplayRows:
    """Parallel columns of N elements. Optional columns are None when the file does not carry them."""

    recorded: Floats
    """[N] log-prob in nats as the sampler wrote it."""
    replayed: Floats
    """[N] log-prob of the same action, computed again."""
    record: Ints
    """[N] 1-based record each element stands in; elements of one record are in their own order."""
    mask: Bools | None = None
    """[N] True where the loss counts the element."""
    version: Ints | None = None
    """[N] policy version the sampler recorded."""
    trainer_version: Ints | None = None
    """[N] version of the weights that replayed, when the file says so."""
    action: Floats | None = None
    """[N, A] continuous or discrete actions; None for tokens."""
    discrete: bool = False
    """Actions are indices, so they have no bounds."""
    first: Bools | None = None
    """[N] first step of an episode, or first counted token of a record."""
    last: Bools | None = None
    """[N] last step of an episode, or last counted token of a record."""
    temperature: Floats | None = None
    """[N] sampling temperature the file records."""
    unit: str = "step"
    """What one element is: step or token."""
    weights: WeightsUsed = "unknown"
    """Whose weights replayed: the recorded version's (age is then 0), the trainer's current ones, or not said."""

    def __post_init__(self) -> None:
        """Refuse columns of unlike length with their names."""
        size = self.recorded.shape[0]
        for name in ("replayed", "record", "mask", "version", "trainer_version", "action", "first", "last", "temperature"):
            column = getattr(self, name)
            if column is not None and column.shape[0] != size:
                raise GyreError(f"replay: column `{name}` has {column.shape[0]} elements, `recorded` has {size}")

    @property
    def size(self) -> int:
        """N."""
        return int(self.recorded.shape[0])

    @property
    def age(self) -> Ints | None:
        """[N] trainer's version - recorded version; zeros when the recorded version's weights replayed; None when unknown."""
        if self.weights == "recorded":
            return np.zeros(self.size, dtype=np.int64)
        if self.version is None or self.trainer_version is None:
            return None
        return self.trainer_version - self.version

    @property
    def usable(self) -> Bools:
        """[N] both numbers say something: recorded finite, replayed finite or -inf (impossible on replay)."""
        known = np.isfinite(self.recorded) & ~np.isnan(self.replayed) & ~np.isposinf(self.replayed)
        return np.asarray(known, dtype=np.bool_)

    def only(self, keep: Bools) -> ReplayRows:
        """The elements where `keep` is True, all columns alike."""

        def cut_bools(column: Bools | None) -> Bools | None:
            return None if column is None else column[keep]

        def cut_ints(column: Ints | None) -> Ints | None:
            return None if column is None else column[keep]

        def cut_floats(column: Floats | None) -> Floats | None:
            return None if column is None else column[keep]

        return ReplayRows(
            recorded=self.recorded[keep],
            replayed=self.replayed[keep],
            record=self.record[keep],
            mask=cut_bools(self.mask),
            version=cut_ints(self.version),
            trainer_version=cut_ints(self.trainer_version),
            action=cut_floats(self.action),
            discrete=self.discrete,
            first=cut_bools(self.first),
            last=cut_bools(self.last),
            temperature=cut_floats(self.temperature),
            unit=self.unit,
            weights=self.weights,
        )


@dataclass(frozen=True, slots=True)
class RatioStats:
    """Figures of exp(replayed - recorded) over n elements."""

    n: int
    mean: float
    p99: float
    """99th percentile of |ratio - 1|."""
    low: float
    high: float
    ess: float
    """Effective sample size (sum w)^2 / sum w^2, as a share of n, 0..1."""
    clipped: float
    """Share of elements with |ratio - 1| above the clip range."""


def ratio_of(recorded: Floats, replayed: Floats) -> Floats:
    """exp(replayed - recorded), the exponent bounded to +-50 so that no overflow hides the rest."""
    return np.exp(np.clip(replayed - recorded, -50.0, 50.0))


def ratio_stats(ratio: Floats, clip: float) -> RatioStats:
    """Figures of a ratio column; all zero for an empty one."""
    if ratio.size == 0:
        return RatioStats(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    away = np.abs(ratio - 1.0)
    square = float(np.square(ratio).sum())
    return RatioStats(
        n=int(ratio.size),
        mean=float(ratio.mean()),
        p99=float(np.quantile(away, 0.99)),
        low=float(ratio.min()),
        high=float(ratio.max()),
        ess=float(ratio.sum()) ** 2 / square / ratio.size if square > 0 else 0.0,
        clipped=float((away > clip).mean()),
    )
