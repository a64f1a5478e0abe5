"""What a two-sided table says is wrong: missing and filled fields, merged flags, lossy or undone conversions, reward and return exchanged.

A conversion that loses nothing is a row of the table and no finding. Imports numpy: import this module inside the function that calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gyrecheck.model.field_sides import DataSide, SideField, SidePair
from gyrecheck.model.fields import Tier
from gyrecheck.model.finding import Evidence, Finding, Severity, Table, fingerprint
from gyrecheck.rulebook.codes import Code
from gyrecheck.verdict.pair_values import same_content

CORE = frozenset({
    "obs", "action", "tokens", "logprob", "reward", "return", "advantage", "value",
    "terminated", "truncated", "done", "next_obs", "policy_version",
})  # fmt: skip
"""Roles whose absence changes the gradient."""


class PairFindings:
    """The findings of one comparison. `severity` gives each code's level; codes that are off give none."""

    def __init__(self, sampler: DataSide, trainer: DataSide, codes: Mapping[str, Code], severity: Mapping[str, Severity]) -> None:
        self.sampler = sampler
        self.trainer = trainer
        self.codes = codes
        self.severity = severity
        self._split = False

    def of(self, pairs: tuple[SidePair, ...]) -> tuple[Finding, ...]:
        """All findings, gravest first."""
        found = [finding for finding in self._each(pairs) if finding.severity is not Severity.OFF]
        return tuple(sorted(found, key=lambda finding: -finding.severity.rank))

    def _each(self, pairs: tuple[SidePair, ...]) -> Iterator[Finding]:
        for pair in pairs:
            if pair.tier is Tier.MISSING:
                yield from self._missing(pair)
            elif pair.loses and pair.sampler and pair.trainer:
                change = f" ({pair.reason})" if pair.reason else ""
                yield self._finding("GYR306", f"`{pair.sampler.key}` -> `{pair.trainer.key}`{change}: {pair.loses}", pair, side="handoff")
        flags = [pair for pair in pairs if pair.tier is Tier.MERGED and pair.trainer and pair.trainer.role == "done"]
        if flags and flags[0].trainer:
            names = " and ".join(pair.sampler.key for pair in flags if pair.sampler)
            message = f"{names} arrive as one `{flags[0].trainer.key}`"
            hint = "bootstrap the value at truncated steps only; keep both keys"
            yield self._finding("GYR309", message, flags[0], side="training", hint=hint)
        unread = next((p for p in pairs if p.tier is Tier.EXTRA and p.sampler and p.sampler.role == "policy_version"), None)
        if unread is not None and unread.sampler is not None and self.trainer.source:
            message = f"the trainer's source never reads `{unread.sampler.key}`: it cannot tell how old a trajectory is"
            hint = "log the version gap at each use, and drop what is too old"
            yield self._finding("GYR303", message, unread, side="training", hint=hint, path=self.trainer.path, severity=Severity.NOTE)
        yield from self._exchanged(pairs)
        renamed = [f"{p.sampler.key} -> {p.trainer.key}" for p in pairs if p.renamed and p.sampler and p.trainer and not p.by_content]
        if renamed:
            hint = "--write-map writes the map as one function"
            message = f"{len(renamed)} field{'s go' if len(renamed) > 1 else ' goes'} by another name: {', '.join(renamed)}"
            yield self._finding("GYR305", message, next(p for p in pairs if p.renamed), side="handoff", hint=hint)
        for pair in pairs:
            if pair.by_content and pair.sampler and pair.trainer:
                message = f"`{pair.trainer.key}` holds the same numbers as `{pair.sampler.key}`: told by content, no alias says so"
                yield self._finding("GYR305", message, pair, side="handoff", hint=f"--field {pair.sampler.role or 'ROLE'}=... names it")

    def _missing(self, pair: SidePair) -> Iterator[Finding]:
        if pair.trainer is None:
            if pair.sampler is None:
                return
            reason = f"the contract's `{pair.sampler.role}`; no alias of it was found"
            message = f"trainer's batch has no {pair.sampler.key}"
            hint = f"carry `{pair.sampler.key}` into the batch, one value a trajectory; do not fill it with zeros"
            evidence = (Evidence(path=self.trainer.path, label=f"because: {reason}"),)
            yield self._finding("GYR303", message, pair, side="training", hint=hint, path=self.trainer.path, evidence=evidence)
            return
        field, read = pair.trainer, pair.trainer.read
        have = ", ".join(f.key for f in self.sampler.fields[:24])
        if read is None:
            merged = next((f for f in self.sampler.fields if f.role == "done"), None)
            if merged is not None and field.role in {"terminated", "truncated"}:
                message = f"trainer's batch tells `{field.key}` apart, the sampler writes one `{merged.key}`: it cannot be split"
                yield self._finding("GYR309", message, pair, side="sampling", hint="write terminated and truncated apart in the sampler")
                return
            message = f"trainer's batch has `{field.key}`, the sampler's files have no such field"
            grade = None if field.role in CORE else Severity.NOTE
            yield self._finding("GYR303", message, pair, side="sampling", hint=f"the sampler has: {have}", severity=grade)
            return
        place = f"{read.path}:{read.line}"
        evidence = (Evidence(path=read.path, line=read.line, label=f"because: read in {read.function.replace('|', ' or ')}"),)
        if read.how == "default":
            message = f"`{field.key}` is absent from the sampler's files and filled with {read.default} by the trainer ({place})"
            grade = None if field.role in CORE else Severity.NOTE
            hint = "raise, naming the key and what is there, and mend the field in the sampler's writer"
            yield self._finding(
                "GYR304", message, pair, side="training", hint=hint, path=read.path, evidence=evidence, severity=grade, line=read.line
            )
            return
        if read.optional:
            return
        merged = next((f for f in self.sampler.fields if f.role == "done"), None)
        if merged is not None and field.role in {"terminated", "truncated"} and not self._split:
            self._split = True
            message = f"the trainer tells terminated from truncated, the sampler writes one `{merged.key}`: it cannot be split"
            yield self._finding("GYR309", message, pair, side="sampling", hint="write terminated and truncated apart in the sampler")
        message = f"sampler's files have no `{field.key}`, which the trainer reads ({place})"
        unsure = read.how in {"get", "attribute", "test"} and field.role not in CORE
        hint = f"mend the sampler's writer; it has: {have}"
        grade = Severity.NOTE if unsure else Severity.WARNING if read.how == "get" else None
        yield self._finding("GYR303", message, pair, side="sampling", hint=hint, evidence=evidence, severity=grade)

    def _exchanged(self, pairs: tuple[SidePair, ...]) -> Iterator[Finding]:
        """The numbers under the trainer's reward are the sampler's returns, or the reverse."""
        mine = {field.role: field for field in self.sampler.fields if field.role}
        for role, other in (("reward", "return"), ("return", "reward")):
            pair = next((p for p in pairs if p.sampler and p.trainer and p.trainer.role == role), None)
            source = mine.get(other)
            if pair is None or pair.trainer is None or pair.sampler is None or source is None:
                continue
            arrived, own, wrong = (
                self.trainer.arrays.get(pair.trainer.key),
                self.sampler.arrays.get(pair.sampler.key),
                self.sampler.arrays.get(source.key),
            )
            if arrived is None or own is None or wrong is None or same_content(own, arrived) or not same_content(wrong, arrived):
                continue
            message = f"trainer's `{pair.trainer.key}` holds the numbers of the sampler's `{source.key}`, not of `{pair.sampler.key}`"
            yield self._finding("GYR308", message, pair, side="training", path=self.trainer.path)

    def _finding(
        self,
        code: str,
        message: str,
        pair: SidePair,
        *,
        side: str,
        hint: str = "",
        path: str = "",
        line: int = 0,
        evidence: tuple[Evidence, ...] = (),
        severity: Severity | None = None,
    ) -> Finding:
        rule, level = self.codes[code], self.severity[code]
        if severity is not None and level is not Severity.OFF and severity.rank < level.rank:
            level = severity
        field = pair.sampler or pair.trainer
        key = field.key if field else ""
        return Finding(
            code=code,
            name=rule.name,
            severity=level,
            message=message,
            path=path or self.sampler.path,
            line=line,
            evidence=evidence,
            hint=(hint or rule.fix).strip(),
            fingerprint=fingerprint(code, key, self.sampler.path, self.trainer.path),
            field=key,
            side=side,
        )


def pair_table(pairs: tuple[SidePair, ...]) -> Table:
    """The two-column table with the grade of each row; axes of a source are shown by their names."""
    rows = []
    for pair in pairs:
        grade = pair.tier.value.upper() if pair.tier in {Tier.MERGED, Tier.MISSING} else pair.tier.value
        if pair.tier is Tier.CONVERT and pair.renamed:
            grade = "renamed, convert"
        note = "; ".join(text for text in (pair.reason, pair.loses, "told by content" if pair.by_content else "") if text)
        rows.append((*_cells(pair.sampler), *_cells(pair.trainer), grade, note))
    columns = ("sampler key", "dtype", "shape", "trainer key", "trainer dtype", "trainer shape", "tier", "note")
    return Table(columns, tuple(rows))


def pair_summary(pairs: tuple[SidePair, ...]) -> str:
    """`same 0 · renamed 1 · needs conversion 6 (2 of them renamed) · merged 2 · missing 1 · extra 1`."""
    count = {tier: sum(pair.tier is tier for pair in pairs) for tier in Tier}
    also = sum(pair.tier is Tier.CONVERT and pair.renamed for pair in pairs)
    more = f" ({also} of them renamed)" if also else ""
    parts = [f"same {count[Tier.SAME]}", f"renamed {count[Tier.RENAMED]}", f"needs conversion {count[Tier.CONVERT]}{more}"]
    parts += [f"merged {count[Tier.MERGED]}", f"missing {count[Tier.MISSING]}", f"extra {count[Tier.EXTRA]}"]
    return " · ".join(parts)


def _cells(field: SideField | None) -> tuple[str, str, str]:
    if field is None:
        return "-", "-", "-"
    if field.shape is not None:
        shape = "[" + ", ".join(str(n) if n >= 0 else "*" for n in field.shape) + "]"
    else:
        shape = "[" + ", ".join(field.axes) + "]" if field.axes else "?"
    return field.key, field.dtype or "?", shape
