"""Which functions are what by their name alone: `rules/regions.toml`.

    [regions.loss]
    summary = "computes the loss; must be pure arithmetic over a batch"
    side = "training"
    functions = ["loss", "compute_loss", "*_loss", "loss_fn"]      # fnmatch on the function's own name, outer underscores cut
    except = ["loss_scale*"]                                        # wins over `functions`
    class_kinds = ["dataset"]      # optional: only methods of a class of one of these vocabulary kinds (a base class says so)

The regions that the rules ask for: `loss`, `update` (gradient work), `rollout` (collects), `reward` (scores), `evaluation`
(measures only, its data trains nothing), `driver` (may call both sides), `dataset` (item access, iteration, collate), `target`
(moves target networks), `sync` (moves weights), `simulation` (differentiable simulation or imagination, named exceptions).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path

from gyrecheck.model.errors import RuleError
from gyrecheck.model.roles import Side
from gyrecheck.rulebook.locate_rules import rule_file
from gyrecheck.rulebook.toml_table import load_table
from gyrecheck.rulebook.vocabulary import KINDS

REGIONS = ("loss", "update", "rollout", "reward", "evaluation", "driver", "dataset", "target", "sync", "simulation")


@dataclass(frozen=True, slots=True)
class Region:
    """One kind of function, by name."""

    functions: tuple[str, ...]
    side: Side = Side.NEUTRAL
    summary: str = ""
    except_: tuple[str, ...] = ()
    class_kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RegionFile:
    """`rules/regions.toml` as it is written."""

    regions: dict[str, Region]

    def problems(self) -> tuple[str, ...]:
        """Regions and kinds that no rule asks for."""
        unknown = [f"region `{name}` is asked for by no rule; known: {', '.join(REGIONS)}" for name in self.regions if name not in REGIONS]
        kinds = [f"kind `{k}` is not known" for r in self.regions.values() for k in r.class_kinds if k not in KINDS]
        return (*unknown, *kinds)


@dataclass(slots=True)
class RegionNames:
    """Asks `is this function's name one of region r`; answers are kept."""

    table: dict[str, Region]
    _patterns: dict[str, tuple[re.Pattern[str], re.Pattern[str] | None]] = field(default_factory=dict)
    _known: dict[str, frozenset[str]] = field(default_factory=dict)
    _any: re.Pattern[str] | None = None

    def of(self, name: str) -> frozenset[str]:
        """Every region whose name patterns fit; `class_kinds` is the caller's to check."""
        if name not in self._known:
            if not self._patterns:
                for region, entry in self.table.items():
                    omit = re.compile("|".join(translate(n) for n in entry.except_)) if entry.except_ else None
                    self._patterns[region] = (re.compile("|".join(translate(n) for n in entry.functions) or r"(?!)"), omit)
                self._any = re.compile("|".join(want.pattern for want, _ in self._patterns.values()))
            bare = name if name.startswith("__") else name.strip("_")
            if self._any is None or not self._any.match(bare):  # most names are of no region: one look instead of ten
                self._known[name] = frozenset()
                return self._known[name]
            self._known[name] = frozenset(
                r for r, (want, omit) in self._patterns.items() if want.match(bare) and not (omit and omit.match(bare))
            )
        return self._known[name]


def load_regions(path: Path | None = None) -> RegionNames:
    """The regions of `path`, ours by default.

    Raises:
        RuleError: the file does not load or names an unknown region.
    """
    found = load_table(path or rule_file("regions.toml"), RegionFile)
    missing = [name for name in REGIONS if name not in found.regions]
    if missing:
        raise RuleError(f"{path or 'rules/regions.toml'}: has no region {', '.join(missing)}")
    return RegionNames(found.regions)
