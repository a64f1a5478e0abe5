"""From files to findings: read, analyse, judge; the whole result is kept by the hash of everything that made it."""

from __future__ import annotations

import gc
import marshal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gyrecheck.model.facts import Module, Unreadable
from gyrecheck.model.finding import Finding, Scalar, Severity, Topology, fingerprint
from gyrecheck.rulebook.codes import Code, load_codes
from gyrecheck.rulebook.lexicon import Lexicon, from_plain, load_lexicon, to_plain
from gyrecheck.rulebook.lint_words import LintWords, WordFile, load_lint_words
from gyrecheck.rulebook.locate_rules import rule_file, rule_files
from gyrecheck.rulebook.regions import Region, RegionNames, load_regions
from gyrecheck.source.cache import Cache, digest
from gyrecheck.source.collect import Text, collect
from gyrecheck.source.read import decode

if TYPE_CHECKING:
    from gyrecheck.program.program import Program
    from gyrecheck.program.topology import Layout

NO_CODES: frozenset[str] = frozenset()


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


@dataclass(frozen=True, slots=True)
class Rules:
    """The rule files a run needs, compiled."""

    lexicon: Lexicon
    regions: RegionNames
    codes: dict[str, Code]
    words: LintWords
    stamp: str


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


def load_rules(cache: Cache, extra: Path | None = None) -> Rules:
    """Lexicon, regions and codes (without their samples), from the cache when no rule file has changed.

    Raises:
        RuleError: a rule file does not load.
    """
    files = [
        rule_file("roles.toml"),
        rule_file("regions.toml"),
        rule_file("lint.toml"),
        *rule_files("vocabulary", extra),
        *rule_files("codes", extra),
    ]
    stamp = digest(*(part for path in files for part in (str(path).encode(), path.read_bytes())))
    kept = cache.load("rules", stamp)
    if kept is not None:
        try:
            plain = marshal.loads(kept)  # noqa: S302 - our own folder; a torn entry raises and is a miss
            codes = msgspec.convert(plain["codes"], dict[str, Code])
            regions = RegionNames(msgspec.convert(plain["regions"], dict[str, Region]))
            words = LintWords(msgspec.convert(plain["words"], WordFile))
            return Rules(from_plain(plain["lexicon"]), regions, codes, words, stamp)
        except (ValueError, EOFError, TypeError, KeyError, msgspec.ValidationError):
            pass
    lexicon, regions, words = load_lexicon(extra), load_regions(), load_lint_words()
    codes = {number: _bare(code) for number, code in load_codes(extra).items()}
    plain = {"lexicon": to_plain(lexicon), "regions": msgspec.to_builtins(regions.table), "codes": msgspec.to_builtins(codes)}
    plain["words"] = msgspec.to_builtins(words.file)
    cache.save("rules", stamp, marshal.dumps(plain))
    return Rules(lexicon, regions, codes, words, stamp)


def _bare(code: Code) -> Code:
    from dataclasses import replace

    return replace(code, samples=())


def judge_texts(
    texts: tuple[Text, ...], rules: Rules, cache: Cache, *, declared: Topology | None = None, jobs: int = 0, timer: Timer | None = None
) -> Judged:
    """The result for these texts; known results come from the cache without parsing or analysing anything."""
    timer = timer or Timer()
    name = digest(
        rules.stamp.encode(),
        str(declared and declared.value).encode(),
        *(p for t in texts for p in (t.file.shown.encode(), t.content.encode())),
    )
    kept = cache.load("results", name)
    if kept is not None:
        try:
            return msgspec.msgpack.decode(kept, type=Judged)
        except msgspec.DecodeError:
            pass
    modules, unreadable = collect(texts, cache, jobs)
    timer.mark("facts")
    data = {t.file.shown: t.data for t in texts}
    judged = judge_modules(modules, unreadable, rules, data, declared=declared, timer=timer)
    cache.save("results", name, msgspec.msgpack.encode(judged))
    return judged


def judge_modules(
    modules: tuple[Module, ...],
    unreadable: tuple[Unreadable, ...],
    rules: Rules,
    data: dict[str, bytes],
    *,
    declared: Topology | None = None,
    timer: Timer | None = None,
) -> Judged:
    """Analyse facts and judge them."""
    from gyrecheck.program.program import Program
    from gyrecheck.program.topology import layout
    from gyrecheck.verdict.static import judge

    timer = timer or Timer()
    was = gc.isenabled()
    gc.disable()
    try:
        program = Program(modules, rules.lexicon, rules.regions, rules.words)
        timer.mark("program")
        laid = layout(program, declared)
        timer.mark("topology")
        findings = judge(program, laid, rules.codes, _Lines(data))
        timer.mark("verdict")
    finally:
        if was:
            gc.enable()
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


class _Lines:
    """A file's lines, decoded when first asked for."""

    def __init__(self, data: dict[str, bytes]) -> None:
        self._data = data
        self._lines: dict[str, list[str]] = {}

    def __call__(self, path: str) -> list[str]:
        if path not in self._lines:
            try:
                self._lines[path] = decode(self._data.get(path, b"")).split("\n")
            except (SyntaxError, UnicodeDecodeError, LookupError):
                self._lines[path] = []
        return self._lines[path]
