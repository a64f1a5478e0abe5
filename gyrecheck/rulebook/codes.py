"""Rule codes: `rules/codes/GYRnnn-name.toml`, one file a code, each with the samples that prove it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from gyrecheck.model.errors import GyreError, RuleError, did_you_mean
from gyrecheck.model.finding import Severity, Topology
from gyrecheck.rulebook.locate_rules import rule_files
from gyrecheck.rulebook.toml_table import load_table

Engine = Literal["lint", "locate", "hook", "ledger", "handoff", "probe"]
FAMILIES = {
    "0": "the check itself",
    "1": "sampling side",
    "2": "training side",
    "3": "handoff",
    "4": "policy version and staleness",
    "5": "accounting",
    "6": "processes, carrier, configuration",
    "7": "measurement",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One proof of a rule: `found` ones must show the code on one of `lines` (anywhere when empty), `silent` ones must not."""

    engine: Engine
    expect: Literal["found", "silent"]
    text: str
    lines: tuple[int, ...] = ()
    file: str = ""
    topology: Topology | None = None
    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Code:
    """What a code means, how grave it is in each topology, and how to mend what it finds."""

    code: str
    name: str
    engines: tuple[Engine, ...]
    severity: Severity
    what: str
    why: str
    fix: str
    alarm: str = ""
    not_alarm: str = ""
    see: tuple[str, ...] = ()
    since: str = "0.1"
    colocated: Severity | None = None
    synchronous: Severity | None = None
    replaces: bool = False
    samples: tuple[Sample, ...] = ()

    def problems(self) -> tuple[str, ...]:
        """What the file says that cannot be: a code out of form, a name out of form, a family that does not exist."""
        found = []
        if not (self.code.startswith("GYR") and len(self.code) == 6 and self.code[3:].isdigit()):
            found.append(f"`code` is {self.code!r}, expected GYR and three digits")
        elif self.code[3] not in FAMILIES:
            found.append(f"`code` {self.code} opens an unknown family, expected GYR0 to GYR7")
        if self.name != self.name.lower() or " " in self.name:
            found.append(f"`name` is {self.name!r}, expected lower case with hyphens")
        return tuple(found)

    def severity_in(self, topology: Topology | str | None) -> Severity:
        """How grave the code is in `topology`; decoupled when none is known."""
        chosen = {"colocated": self.colocated, "synchronous": self.synchronous}.get(str(getattr(topology, "value", topology)))
        return self.severity if chosen is None else chosen


@cache
def load_codes(extra: Path | None = None) -> dict[str, Code]:
    """All codes by number, the project's own last.

    Raises:
        RuleError: a file does not load, its name is not `<code>-<name>.toml`, or it redefines a code without `replaces = true`.
    """
    codes: dict[str, Code] = {}
    for path in rule_files("codes", extra):
        code = load_table(path, Code)
        if path.stem != f"{code.code}-{code.name}":
            raise RuleError(f"{path}: holds {code.code} {code.name}, expected the file name {code.code}-{code.name}.toml")
        if code.code in codes and not code.replaces:
            raise RuleError(f"{path}: {code.code} is defined twice", hint="set `replaces = true` to redefine a code on purpose")
        codes[code.code] = code
    return dict(sorted(codes.items()))


def select_codes(codes: dict[str, Code], select: tuple[str, ...], ignore: tuple[str, ...], *, option: str = "--select") -> frozenset[str]:
    """The codes that `select` (all when empty) minus `ignore` leave; entries are codes, prefixes such as `GYR2`, or names.

    Raises:
        GyreError: an entry fits no code; the option and the nearest code are named.
    """
    chosen = _matching(codes, select, option) if select else set(codes)
    return frozenset(chosen - _matching(codes, ignore, "--ignore"))


def _matching(codes: dict[str, Code], entries: tuple[str, ...], option: str) -> set[str]:
    found: set[str] = set()
    names = {code.name: number for number, code in codes.items()}
    for entry in (part.strip() for given in entries for part in given.split(",") if part.strip()):
        hits = {number for number in codes if number.startswith(entry)} if entry.startswith("GYR") else set()
        hits |= {names[entry]} if entry in names else set()
        if not hits and not ("GYR".startswith(entry) or (entry.startswith("GYR") and entry[3:4] in FAMILIES and len(entry) == 4)):
            near = did_you_mean(entry, [*codes, *names])
            raise GyreError(f"unknown rule code `{entry}` in {option}", hint=near or "gyrecheck rules lists all codes")
        found |= set(codes) if entry and "GYR".startswith(entry) else hits
    return found
