r"""Log formats: `rules/logs/<format>.toml`, one file a format, each with the sample lines that prove it.

A format says how to recognise a log, which lines of it count, which *term* each key gives and in which unit, and which terms
the log can never give. `rules/terms.toml` is the closed list of terms. Nothing of a framework is spelled in Python.

The form of a file (every key but `name`, `summary`, `samples` is optional; `reference_loop.toml` is a finished example):

    name = "reference_loop"            # the file's stem
    summary = "..."                    # one line for `gyrecheck ledger --format ?`
    anchors = ["sampled_total="]       # detection: literals (bytes) of which at least `min_hits` lines of the log's sample hold one
    requires = []                      # literals that must all occur somewhere in the sample
    forbids = []                       # literals of which none may occur (tells two generations of one framework apart)
    min_hits = 1
    rank = 50                          # between several formats that fit, the higher one wins; `generic` has 0
    mode = "queue"                     # queue: each used once | replay: draws are a second stream | auto: told by the terms seen
    unit = "group"                     # unit of counters that say none: trajectory group row step token batch call sample
    side = ""                          # sampling | training: whose log this is, when lines do not say
    cumulative = "detect"              # yes | no | detect: default for counters
    tolerance = 0.0                    # residual that skewed snapshots explain, in `unit` ...
    tolerance_of = []                  # ... plus the largest value seen of each of these terms (e.g. "capacity", "batch_size")
    gives = ["sampled", "taken"]       # ledger terms the log can give: documentation, shown by --explain
    grade = "A"                        # A both sides logged | B one term inferred | C two or more missing
    reads = ["json"]                   # json: lines that are JSON objects or dict reprs are flattened with "/" ; box: `| key | value |`
    open = false                       # true: names and lines that nothing here describes are understood by their meaning, as in `generic`

    [lacks]                            # term = what to log or where it is; printed when the ledger is undecided for want of it
    left = "log the queue's size at the end of the run"

    [lag]
    definition = "trainer version - behaviour version"
    unit = "version"                   # version | step | second
    drops_when = ">"                   # ">" an age equal to the limit is still used | ">=" | "never" (admission control only)

    [keys."count/total_generated_samples"]   # exact key as logged, or a named group of a line's pattern; a `*` stands for anything
    term = "sampled"
    unit = "group"                     # default: the format's
    cumulative = "yes"                 # default: the format's
    reason = "overflow"                # for dropped_other and left: which sink
    part = false                       # true: keys of one term with part = true add up; else they are the same quantity twice
    factor = 1.0                       # the value is multiplied by this
    side = "sampling"                  # default: the line's
    also = ["sampled"]                 # the value counts for these terms too, as a part (verl: generated excludes dropped)
    stream = ""                        # sets the key apart from other streams of the same run (e.g. "evaluation")

    [[lines]]                          # a line that counts; several may match one line
    anchor = "sample collected"        # literal that the scanner searches; required
    pattern = 'sample collected (?P<k>\d+)/(?P<need>\d+)\. mq_len: (?P<mq_len>\d+)'    # optional; named groups are looked up in [keys]
    pairs = false                      # true: every `key=value`, `key: value`, `'key': value` on the line is looked up in [keys]
    count = { taken = 1.0 }            # a hit counts this much for these terms, per step (not cumulative)
    reason = "stale"                   # reason of what `count` counts
    unit = ""                          # unit of what `count` counts
    side = "training"
    stream = ""                        # e.g. "evaluation"
    mark = ""                          # a mark of `rules/terms.toml` ([marks]), e.g. "restart", "finished"

    [[samples]]                        # at least one: lines and *all* that must be read from them, in order
    text = '''...'''
    events = ["1 sampled 412", "1 left 28", "2 taken 1", "3 mark restart"]     # line (1-based), term, value | line, "mark", name
    silent = false                     # true: the text must not be taken for this format, and nothing is read from it

Lines are searched after ANSI colour, carriage returns, Ray and logger prefixes are taken off; times, pid, host and `side=` are read
from those prefixes for every format. A key that no entry names is ignored, never guessed, except where `open` is true.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from gyrecheck.model.errors import RuleError, did_you_mean
from gyrecheck.model.events import Unit
from gyrecheck.rulebook.locate_rules import rule_file, rule_files
from gyrecheck.rulebook.toml_table import load_table

Counting = Literal["yes", "no", "detect"]
SideName = Literal["", "sampling", "training"]


@dataclass(frozen=True, slots=True)
class TermRule:
    """What a word of the ledger means. `kind` decides how values are combined over a run."""

    kind: Literal["counter", "level", "gauge", "version", "setting", "axis"]
    what: str
    side: SideName = ""


@dataclass(frozen=True, slots=True)
class MarkRule:
    """An event without a number, e.g. a restart."""

    what: str
    patterns: tuple[str, ...] = ()
    """Regular expressions (case ignored) over the cleaned line; used for every format."""
    anchors: tuple[str, ...] = ()
    """Lower-case literals of which a matching line must hold one; they keep the scan fast."""


@dataclass(frozen=True, slots=True)
class Terms:
    """`rules/terms.toml`: the closed lists."""

    terms: dict[str, TermRule]
    marks: dict[str, MarkRule]

    def problems(self) -> tuple[str, ...]:
        """Patterns that do not compile."""
        return tuple(
            f"`marks.{name}` pattern {pattern!r} does not compile: {error}"
            for name, mark in self.marks.items()
            for pattern in mark.patterns
            if (error := _regex_error(pattern))
        )


@dataclass(frozen=True, slots=True)
class KeyRule:
    """What one key gives."""

    term: str
    unit: Unit | None = None
    cumulative: Counting | None = None
    reason: str = ""
    part: bool = False
    factor: float = 1.0
    side: SideName = ""
    also: tuple[str, ...] = ()
    stream: str = ""


@dataclass(frozen=True, slots=True)
class LineRule:
    """A line that counts."""

    anchor: str
    pattern: str = ""
    pairs: bool = False
    count: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    unit: Unit | None = None
    side: SideName = ""
    stream: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True)
class LagRule:
    """The framework's own definition of age and the boundary at which it drops."""

    definition: str = ""
    unit: Literal["version", "step", "second"] = "version"
    drops_when: Literal[">", ">=", "never"] = ">"


@dataclass(frozen=True, slots=True)
class FormatSample:
    """Lines of a log, and everything that must be read from them."""

    text: str
    events: tuple[str, ...] = ()
    silent: bool = False


@dataclass(frozen=True, slots=True)
class LogFormat:
    """One format; see the module's docstring for each key."""

    name: str
    summary: str
    samples: tuple[FormatSample, ...]
    anchors: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    forbids: tuple[str, ...] = ()
    min_hits: int = 1
    rank: int = 50
    mode: Literal["queue", "replay", "auto"] = "auto"
    unit: Unit = Unit.SAMPLE
    side: SideName = ""
    cumulative: Counting = "detect"
    tolerance: float = 0.0
    tolerance_of: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    grade: Literal["A", "B", "C"] = "B"
    reads: tuple[Literal["json", "box"], ...] = ()
    open: bool = False
    lacks: dict[str, str] = field(default_factory=dict)
    lag: LagRule = LagRule()
    keys: dict[str, KeyRule] = field(default_factory=dict)
    lines: tuple[LineRule, ...] = ()
    replaces: bool = False

    def problems(self) -> tuple[str, ...]:
        """Unknown terms and marks, patterns that do not compile, groups without a key, lines that give nothing."""
        known, found = load_terms(), []
        named = [(f"keys.{key}", term) for key, rule in self.keys.items() for term in (rule.term, *rule.also)]
        named += [(f"lines[{at}].count", term) for at, line in enumerate(self.lines, 1) for term in line.count]
        named += [("gives", term) for term in self.gives] + [("lacks", term) for term in self.lacks]
        named += [("tolerance_of", term) for term in self.tolerance_of]
        found += [f"`{where}` names the term {term!r}" + _near(term, known.terms) for where, term in named if term not in known.terms]
        for at, line in enumerate(self.lines, 1):
            where = f"lines[{at}]"
            if line.mark and line.mark not in known.marks:
                found.append(f"`{where}.mark` is {line.mark!r}" + _near(line.mark, known.marks))
            if error := _regex_error(line.pattern):
                found.append(f"`{where}.pattern` does not compile: {error}")
            elif line.pattern:
                lost = [group for group in re.compile(line.pattern).groupindex if group not in self.keys]
                found += [f"`{where}.pattern` has the group `{group}`, which [keys] does not name" for group in lost]
            if not (line.pattern or line.pairs or line.count or line.mark):
                found.append(f"`{where}` gives nothing: it needs pattern, pairs, count or mark")
        if not self.samples:
            found.append("`samples` is empty: a format proves itself")
        return tuple(found)


@cache
def load_terms() -> Terms:
    """The closed lists of terms and marks.

    Raises:
        RuleError: the file does not load.
    """
    return load_table(rule_file("terms.toml"), Terms)


@cache
def load_formats(extra: Path | None = None) -> dict[str, LogFormat]:
    """All formats by name, the project's own last.

    Raises:
        RuleError: a file does not load, is not named after its format, or redefines one without `replaces = true`.
    """
    formats: dict[str, LogFormat] = {}
    for path in rule_files("logs", extra):
        if path.stem == "generic":
            continue
        one = load_table(path, LogFormat)
        if one.name != path.stem:
            raise RuleError(f"{path}: describes the format `{one.name}`, expected the file name {one.name}.toml")
        if one.name in formats and not one.replaces:
            raise RuleError(f"{path}: the format `{one.name}` is defined twice", hint=("set `replaces = true` to redefine it on purpose"))
        formats[one.name] = one
    return formats


def _near(word: str, known: dict[str, TermRule] | dict[str, MarkRule]) -> str:
    near = did_you_mean(word, known)
    return f", {near}" if near else f", expected one of {', '.join(sorted(known))}"


def _regex_error(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        return str(error)
    return ""
