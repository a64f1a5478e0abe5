"""A key of a trajectory file as words: its last component, one spelling for all ways to write it, the family that its words make."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gyrecheck.model.fields import Kind


def leaf(key: str) -> str:
    """The last component of a nested key: `steps.obs` gives `obs`."""
    return re.split(r"[./]", key)[-1]


def normal(key: str) -> str:
    """A key in lower case with underscores: `nextObs`, `next-obs` and `next_obs` are one."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).replace("-", "_").replace(" ", "_").lower()


def spelling(key: str) -> str:
    """`normal`, every way to write log-prob as `logprob`: `new_log_prob`, `newLogP` and `new_logps` are one."""
    return re.sub(r"(?<![a-z])log_?p(?:robability|robabilities|robs?|s)?(?![a-z])", "logprob", normal(key))


@dataclass(frozen=True, slots=True)
class Family:
    """A family of keys, its word lists opened."""

    role: str
    need: tuple[frozenset[str], ...]
    allowed: frozenset[str]
    form: str
    kinds: tuple[Kind, ...]

    def says(self, key: str) -> bool:
        """Whether all words of the key's last component belong to the family."""
        words = frozenset(re.sub(r"(?<=[a-z])\d+$", "", word) for word in normal(leaf(key)).split("_") if word and not word.isdigit())
        return words <= self.allowed and all(part & words for part in self.need)
