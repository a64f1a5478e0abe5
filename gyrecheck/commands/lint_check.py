"""From files to findings: read, analyse, judge; the whole result is kept by the hash of everything that made it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from gyrecheck.commands.lint_rules import Rules, load_rules
from gyrecheck.model.finding import Finding, Scalar, Severity, Topology, fingerprint
from gyrecheck.rulebook.codes import Code
from gyrecheck.rulebook.project_config import ProjectConfig
from gyrecheck.source.cache import Cache, digest
from gyrecheck.source.texts import Text
from gyrecheck.source.uncounted import uncounted

if TYPE_CHECKING:
    from gyrecheck.model.facts import Module, Unreadable
    from gyrecheck.program.program import Program
    from gyrecheck.program.topology import Layout

__all__ = ["Judged", "Rules", "Timer", "judge_modules", "judge_texts", "load_rules", "unparsable"]


class Judged(msgspec.Struct, frozen=True):
    """All that a run found out before suppressions, selection and baseline."""

    findings: tuple[Finding, ...]
    topology: str
    reason: str
    sampling: int
    training: int
    handoff: int
    synchronous: int
    """Groups of files that were taken for synchronous."""
    resolved: int
    unresolved: int
    lines: int
    functions: int
    duties: tuple[tuple[Scalar, ...], ...]


Quote = tuple[str, int, str]
"""Path, line, and what stands there."""


class Alike(msgspec.Struct, frozen=True):
    """A result for every tree with these facts, as long as the quoted lines read the same: what differs is comments and blanks."""

    judged: Judged
    quotes: tuple[Quote, ...]


@dataclass(slots=True)
class Timer:
    """CPU seconds by stage, for --statistics."""

    stages: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.process_time)

    def mark(self, stage: str) -> None:
        """The time since the last mark belongs to `stage`."""
        now = time.process_time()
        self.stages[stage] = self.stages.get(stage, 0.0) + now - self._last
        self._last = now


def judge_texts(
    texts: tuple[Text, ...],
    rules: Rules,
    cache: Cache,
    *,
    declared: Topology | None = None,
    settings: ProjectConfig | None = None,
    jobs: int = 0,
    timer: Timer | None = None,
) -> Judged:
    """The result for these texts; known results come from the cache without parsing or analysing anything."""
    timer = timer or Timer()
    said = (declared, settings.sides, settings.entrypoints, settings.carrier, settings.root) if settings is not None else (declared,)
    rule = (rules.stamp.encode(), repr(said).encode())
    name = digest(*rule, *(p for t in texts for p in (t.file.shown.encode(), t.content.encode())))
    kept = cache.load("results", name)
    if kept is not None:
        try:
            return msgspec.msgpack.decode(kept, type=Judged)
        except msgspec.DecodeError:
            pass
    with uncounted():
        judged = _judge_facts(texts, rules, cache, rule, declared=declared, settings=settings, jobs=jobs, timer=timer)
    cache.save("results", name, msgspec.msgpack.encode(judged))
    cache.prune()
    return judged


def _judge_facts(
    texts: tuple[Text, ...],
    rules: Rules,
    cache: Cache,
    rule: tuple[bytes, ...],
    *,
    declared: Topology | None,
    settings: ProjectConfig | None,
    jobs: int,
    timer: Timer,
) -> Judged:
    """The result kept for these facts, or an analysis."""
    from gyrecheck.source.collect import gather

    facts = gather(texts, cache, jobs)
    timer.mark("facts")
    data = {t.file.shown: t.data for t in texts}
    lines = Lines(data)
    marks = zip(texts, facts.marks, strict=True) if facts.marks else ()
    alike = digest(*rule, *(p for t, mark in marks for p in (t.file.shown.encode(), mark.encode()))) if facts.marks else ""
    judged = _quoted_anew(cache.load("alike", alike), lines, sum(facts.lines)) if alike else None
    if judged is None:
        modules, unreadable = facts.all()
        judged = judge_modules(modules, unreadable, rules, data, declared=declared, settings=settings, timer=timer)
        if alike:
            cache.save("alike", alike, msgspec.msgpack.encode(Alike(judged, _quotes(judged.findings, lines))))
    return judged


def _quotes(findings: tuple[Finding, ...], lines: Lines) -> tuple[Quote, ...]:
    """Every source line that findings show, or whose characters they count."""
    places = {(f.path, n) for f in findings for n in (f.line, f.end_line)} | {(e.path, e.line) for f in findings for e in f.evidence}
    return tuple((path, line, lines.text(path, line)) for path, line in sorted(places))


def _quoted_anew(kept: bytes | None, lines: Lines, count: int) -> Judged | None:
    """A result of files with the same facts, when the lines it shows are the same, too."""
    if kept is None:
        return None
    try:
        found = msgspec.msgpack.decode(kept, type=Alike)
    except msgspec.DecodeError:
        return None
    if any(lines.text(path, line) != text for path, line, text in found.quotes):
        return None
    return msgspec.structs.replace(found.judged, lines=count)


def judge_modules(
    modules: tuple[Module, ...],
    unreadable: tuple[Unreadable, ...],
    rules: Rules,
    data: dict[str, bytes],
    *,
    declared: Topology | None = None,
    settings: ProjectConfig | None = None,
    timer: Timer | None = None,
) -> Judged:
    """Analyse facts and judge them."""
    from gyrecheck.program.program import Program
    from gyrecheck.program.stated import stated_by
    from gyrecheck.program.topology import layout
    from gyrecheck.verdict.static import judge

    timer = timer or Timer()
    with uncounted():
        program = Program(modules, rules.lexicon, rules.regions, rules.words)
        timer.mark("program")
        laid = layout(program, stated_by(settings or ProjectConfig(), declared, program.tree))
        timer.mark("topology")
        findings = judge(program, laid, rules.codes, Lines(data))
        timer.mark("verdict")
    bad = tuple(unparsable(u, rules.codes) for u in unreadable)
    where = max((g for g in laid.groups if g.meeting >= 0), key=lambda g: len(g.modules), default=None)
    return Judged(
        findings=(*bad, *findings),
        topology=(declared or laid.overall).value,
        reason=where.reason if where is not None else "no function reaches both sides",
        sampling=len(laid.sampling),
        training=len(laid.training),
        handoff=len(laid.handoff),
        synchronous=sum(g.topology is Topology.SYNCHRONOUS for g in laid.groups),
        resolved=program.calls.resolved,
        unresolved=program.calls.unresolved,
        lines=sum(m.lines for m in modules),
        functions=len(program.functions),
        duties=_duties(program, laid),
    )


def unparsable(found: Unreadable, codes: dict[str, Code]) -> Finding:
    """GYR001 for a file that could not be read or parsed."""
    code = codes.get("GYR001")
    return Finding(
        code="GYR001", name=code.name if code else "unparsable-source", severity=code.severity if code else Severity.ERROR,
        message=found.reason, path=found.path, line=found.line, column=found.column, fingerprint=fingerprint("GYR001", found.path),
        hint="the other files are still checked",
    )  # fmt: skip


def _duties(program: Program, laid: Layout) -> tuple[tuple[Scalar, ...], ...]:
    order = {"crossing": 0, "unsure": 1, "fused": 2, "driver": 3}
    rows = [
        (d.duty, program.name(d.function), f"{program.path(d.function)}:{program.functions[d.function].fact.line}", d.why)
        for d in sorted(
            laid.duties, key=lambda d: (order.get(d.duty, 4), d.duty, program.path(d.function), program.functions[d.function].fact.line)
        )
    ]
    return tuple(rows)


class Lines:
    """A file's lines, decoded when first asked for."""

    def __init__(self, data: dict[str, bytes]) -> None:
        self._data = data
        self._lines: dict[str, list[str]] = {}

    def __call__(self, path: str) -> list[str]:
        if path not in self._lines:
            from gyrecheck.source.read import decode

            try:
                self._lines[path] = decode(self._data.get(path, b"")).split("\n")
            except (SyntaxError, UnicodeDecodeError, LookupError):
                self._lines[path] = []
        return self._lines[path]

    def text(self, path: str, line: int) -> str:
        """One line without its end; empty where there is none."""
        held = self(path)
        return held[line - 1].rstrip("\r\n") if 0 < line <= len(held) else ""
