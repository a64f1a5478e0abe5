"""What a trainer's source reads of a record or batch: one entry a key and place, with what can be inferred of dtype and axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

How = Literal["subscript", "attribute", "get", "default", "struct", "select", "test"]
Stage = Literal["loader", "collate", "train"]
ORDER: tuple[Stage, ...] = ("loader", "collate", "train")
"""Which way data goes through the trainer's source."""


@dataclass(frozen=True, slots=True)
class KeyRead:
    """One read of one key. `how` is `default` where an absent key is filled (`.get(key, x)`), `get` where it becomes None."""

    key: str
    path: str
    line: int
    """1-based."""
    function: str
    """Qualified inside the file: `Dataset.__getitem__`."""
    stage: Stage
    how: How
    default: str = ""
    """The default's source text."""
    optional: bool = False
    """Read only under a test that the key is there."""
    dtype: str = ""
    axes: tuple[str, ...] = ()
    """Names or sizes of the axes as the source has them; empty = not said."""
    swaps: bool = False
    """The first two axes are exchanged at the read."""


@dataclass(frozen=True, slots=True)
class SourceKeys:
    """All that was found in the trainer's source."""

    files: tuple[str, ...]
    reads: tuple[KeyRead, ...]
    produced: tuple[tuple[Stage, str, tuple[str, ...]], ...] = ()
    """Keys that a stage puts into the items it hands on, each with the keys it makes them from."""
    computed: tuple[str, ...] = ()
    """Keys the trainer stores into the batch itself before it reads them."""
    layout: str = ""
    """`BT` or `TB` where padding says which axis comes first, else empty."""
    layout_reason: str = ""
    unread: tuple[str, ...] = ()
    """Files that could not be parsed, each with the reason."""

    @property
    def wanted(self) -> tuple[KeyRead, ...]:
        """The first read of each key that must come from the sampler: made by no earlier stage, nor computed by the trainer itself."""
        first: dict[str, KeyRead] = {}
        for read in self.reads:
            earlier = ORDER[: ORDER.index(read.stage)]
            if any(stage in earlier and key == read.key for stage, key, _ in self.produced):
                continue
            known = first.get(read.key)
            if known is None and read.stage == "train" and read.key in self.computed:
                continue
            if known is None or (known.how == "test" and read.how != "test"):
                first[read.key] = read
        return tuple(first.values())
