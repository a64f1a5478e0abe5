"""The newest trajectory file of a run folder, judged by the field contract now and then: what `gyrecheck handoff check` says of it.

Read-only, in the reading thread, and bounded: small files only, and never more than a thirtieth of the time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.codes import Code

EVERY = 5.0
SHARE = 30.0
LARGEST = 8 << 20
"""Bytes from which a file is passed over: half a file would look like a broken one."""
SUBFOLDERS = ("ready", "taken", "settled")
"""Where segments lie, those of the youngest state first."""
Rows = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class SampledFile:
    """What was found in the file sampled last. `chosen` are the codes that count; None is all."""

    codes: dict[str, Code]
    chosen: frozenset[str] | None = None
    rules: Path | None = None
    clock: Callable[[], float] = time.monotonic
    rows: Rows = ()
    _due: float = -1e18
    _last: tuple[str, int] = ("", 0)
    _before: set[tuple[str, str]] = field(default_factory=set)
    """Code and field of what the file sampled before showed."""

    def look(self, folder: Path) -> Rows:
        """The rows for the panel; a file is read only when one is due and is another than before."""
        began = self.clock()
        if began < self._due:
            return self.rows
        place = newest_segment(folder)
        if place is not None:
            try:
                size = place.stat().st_size
                if (place.name, size) != self._last:
                    self.rows = self._read(place, size)
                    self._last = (place.name, size)
            except (OSError, GyreError):
                pass  # the other side took it meanwhile: the next look finds another
        self._due = self.clock() + max(EVERY, SHARE * (self.clock() - began))
        return self.rows

    def _read(self, place: Path, size: int) -> Rows:
        if size > LARGEST:
            return (("field contract", f"{place.name} has {size >> 20} MiB: not sampled"),)
        from gyrecheck.handoff.open import open_records
        from gyrecheck.handoff.profile import Profile
        from gyrecheck.handoff.run_settings import run_settings
        from gyrecheck.rulebook.contract import load_contract
        from gyrecheck.rulebook.ratio_limits import load_ratio_limits
        from gyrecheck.verdict.records.judge import Judge

        contract = load_contract(None, self.rules)
        judge = Judge(contract, self.codes, load_ratio_limits(), {}, run_settings([place], contract))
        profile = Profile()
        for batch in open_records([place], contract):
            judge.feed(batch)
            profile.feed(batch)
        judged = judge.result()
        fields = sum(1 for seen in profile.seen(judged.roles) if seen.role and not seen.key.startswith("header."))
        found = [f for f in judged.findings if f.severity is not Severity.NOTE and (self.chosen is None or f.code in self.chosen)]
        before, self._before = self._before, {(f.code, f.field) for f in found}
        wrong = [f for f in found if f.severity is Severity.ERROR or (f.code, f.field) in before]
        return contract_rows(place.name, fields, profile.rows, wrong, [f for f in found if f not in wrong])


def contract_rows(name: str, fields: int, rows: int, wrong: list[Finding], once: list[Finding]) -> Rows:
    """How many fields hold in how many rows of which file, the gravest of what does not, and what one small file may show by chance."""
    broken = len({f.field for f in wrong})
    said = f"{fields} fields hold" if not wrong else f"{broken} of {fields} fields broken"
    ranked = sorted(wrong, key=lambda f: -f.severity.rank)
    return (
        ("field contract", f"{said}, {rows:,} rows of {name}"),
        *(("", f"{f.severity.value} {f.code} {f.name}: {f.field}".rstrip(": ")) for f in ranked[:3]),
        *(("", f"{f.code} {f.name}: in this file only, so far") for f in once[: max(0, 3 - len(ranked))]),
    )


def newest_segment(folder: Path) -> Path | None:
    """The last segment by name of the youngest state that has any; only names are looked at, however many there are."""
    from gyrecheck.handoff.open import trajectory_name

    for state in SUBFOLDERS:
        names = [Path(entry) for entry in _below(f"{folder}/{state}")]
        found = [path for path in names if trajectory_name(path)]
        if found:
            return max(found, key=lambda path: path.name)
    return None


def _below(folder: str) -> list[str]:
    """The files of a folder and of its own folders; none when it is not there."""
    found: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    with os.scandir(entry.path) as inner:
                        found += [one.path for one in inner]
                else:
                    found.append(entry.path)
    except OSError:
        return found
    return found
