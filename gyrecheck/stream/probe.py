"""Which number of a line gives what: asked of the reader itself, by changing one run of digits after another.

Nothing here knows how a line is understood. Two things are guarded that a few changed digits could fail to show: how many digits a
number has where that may matter (dates, clocks, thousands, `0x`), and patterns that spell a digit.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from gyrecheck.model.events import Key
from gyrecheck.stream.strip import EPOCH_LIKE, RAY, Stamp, stamp_of

Said = tuple[tuple[tuple[Key, float], ...], tuple[str, ...], float | None, int, str, str]
"""Values, marks, time (before midnights are counted), pid, host, side."""
Slow = Callable[[bytes], Said]

OTHERS = 6
"""Altered copies of a line with which a layout must agree."""
_RUNS = 60
_RUN = re.compile(rb"\d+")
_NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_PLACES = re.compile(rb"\d:\d\d|id=|PID|pid|side=")
_WORD = re.compile(rb"(?<![\d.])[A-Za-z_][\w./\-]*")
_VERSION = re.compile(rb"[vV]\d+")
"""A version, `v7`: its digits are a number, not a part of a name."""
_NEXT = bytes.maketrans(b"0123456789", b"1234567890")
_SKIPPED = re.compile(r"(\\d|\{\d*,?\d*\}|\(\?P<\w+>)|\d")


class Caution:
    """What is known of a reader's patterns. `glued`: digits within words may matter."""

    def __init__(self, patterns: tuple[tuple[tuple[str, ...], str], ...], factors: set[float], *, glued: bool) -> None:
        """`patterns` are regular expressions (or literals), each with the lower-case literals of which a line must hold one."""
        self.glued = glued
        self.factors = tuple(sorted({1.0, 0.01} | factors, reverse=True))
        self._counting = tuple(anchors for anchors, pattern in patterns if re.search(r"\{\d", pattern))
        self._spelled = tuple((anchors, _widened(pattern)) for anchors, pattern in patterns if _spells_digits(pattern))

    def refuses(self, line: str) -> bool:
        """Whether a pattern that spells a digit matches the line, or would with other digits."""
        low = line.lower()
        plain = re.sub(r"\d", "0", low)
        return any(
            (wide is None or wide.search(line) is not None) and any(re.sub(r"\d", "0", a) in plain for a in anchors)
            for anchors, wide in self._spelled
        )

    def counts_digits(self, line: str) -> bool:
        """Whether a pattern that counts digits could match the line."""
        low = line.lower()
        return any(anchor in low for anchors in self._counting for anchor in anchors)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of digits: its place, and what stands there in other lines: `most` digits (0: as many as here), or the same digits."""

    start: int
    end: int
    most: int
    same: bool


@dataclass(frozen=True, slots=True)
class Parts:
    """A line taken apart. `sources` names for each value its group (-1: the same in every line) and its factor."""

    line: bytes
    expression: bytes
    runs: tuple[Run, ...]
    groups: tuple[tuple[int, int], ...]
    """Places of the expression's groups."""
    sources: tuple[tuple[int, float], ...]
    time: int
    fraction: int
    pid: int
    """Groups of the whole seconds, of their fraction and of the process id, -1 without."""
    stamp: Stamp | None

    def others(self) -> Iterator[bytes]:
        """Lines of the same layout with other numbers."""
        rng = random.Random(len(self.line))  # the same numbers every time
        for _ in range(OTHERS):
            out, last = b"", 0
            for run in self.runs:
                if run.same or self._in_time(run):
                    continue
                size = rng.randint(1, run.most) if run.most else run.end - run.start
                out += self.line[last : run.start] + bytes(rng.choices(b"0123456789", k=size))
                last = run.end
            yield out + self.line[last:]

    def _in_time(self, run: Run) -> bool:
        return self.stamp is not None and self.stamp.start <= run.start and run.end <= max(self.stamp.end, self.stamp.fraction[1])


def probe(line: bytes, slow: Slow, caution: Caution) -> Parts | None:
    """Take a line apart, or None where that cannot be done for certain."""
    text = line.decode("latin-1")
    runs = [found.span() for found in _RUN.finditer(line)]
    if not line.isascii() or len(runs) > _RUNS or caution.refuses(text):
        return None
    said = slow(line)
    ray = RAY.match(line)
    shift = ray.end() if ray else 0
    stamp = stamp_of(line[shift:])
    if (stamp is None) != (said[2] is None) or (stamp is None and EPOCH_LIKE.search(line[shift:])):
        return None
    if stamp is not None:
        a, b = stamp.fraction
        stamp = Stamp(stamp.start + shift, stamp.end + shift, (a + shift, b + shift), stamp.zone, stamp.epoch)
    effects = [_effect(line, run, said, slow, stamp) for run in runs]
    if caution.glued:
        words = [word.span() for word in _WORD.finditer(line) if not _VERSION.fullmatch(word[0])]
        effects = [
            _Effect("fixed") if e.kind != "time" and any(a <= start and end <= b for a, b in words) else e
            for e, (start, end) in zip(effects, runs, strict=True)
        ]
    tokens = _tokens(line, runs, effects, said, caution.factors)
    if tokens is None or sum(e.kind == "pid" for e in effects) > 1:
        return None
    return _assembled(line, runs, effects, tokens, stamp, exact=caution.counts_digits(text))


@dataclass(frozen=True, slots=True)
class _Effect:
    """What changing one run of digits does: `fixed` (more than a value), `time`, `pid`, `free` (nothing), `value`."""

    kind: str
    changed: tuple[int, ...] = ()
    line: bytes = b""
    said: Said | None = None


def _effect(line: bytes, run: tuple[int, int], said: Said, slow: Slow, stamp: Stamp | None) -> _Effect:
    start, end = run
    if stamp is not None and stamp.start <= start and end <= max(stamp.end, stamp.fraction[1]):
        return _Effect("time")
    if line[end : end + 1] in {b"x", b"X"} and end - start == 1:
        return _Effect("fixed")
    other = line[:start] + line[start:end].translate(_NEXT) + line[end:]
    got = slow(other)
    values, marks, time, pid, host, side = got
    if (marks, repr(time), host, side) != (said[1], repr(said[2]), said[4], said[5]) or len(values) != len(said[0]):
        return _Effect("fixed")
    if any(a is not b for (a, _), (b, _) in zip(values, said[0], strict=True)):
        return _Effect("fixed")
    changed = tuple(at for at, (a, b) in enumerate(zip(values, said[0], strict=True)) if repr(a[1]) != repr(b[1]))
    if pid != said[3]:
        return _Effect("fixed" if changed or line[start:end] != str(said[3]).encode() else "pid")
    return _Effect("value", changed, other, got) if changed else _Effect("free")


def _tokens(
    line: bytes, runs: list[tuple[int, int]], effects: list[_Effect], said: Said, factors: tuple[float, ...]
) -> list[tuple[tuple[int, int], float] | None] | None:
    """For each value the place of its number and its factor (None: the same in every line); None where a number is not plain."""
    out: list[tuple[tuple[int, int], float] | None] = []
    for at, (_, value) in enumerate(said[0]):
        own = [(run, effect) for run, effect in zip(runs, effects, strict=True) if at in effect.changed]
        if not own:
            out.append(None)
            continue
        start, end = own[0][0][0], own[-1][0][1]
        start -= line[start - 1 : start] == b"." and not line[start - 2 : start - 1].isdigit() if start else 0
        spans = [(start, end), (start - 1, end)] if line[start - 1 : start] in {b"-", b"+"} else [(start, end)]
        known = [(line, value), *((e.line, e.said[0][at][1]) for _, e in own if e.said is not None)]
        fits = [
            (span, factor)
            for span in spans
            for factor in factors
            if all(_plain(text, span) and repr(float(text[span[0] : span[1]]) * factor) == repr(figure) for text, figure in known)
        ]
        if not fits:
            return None
        out.append(fits[0])
    return out


def _plain(line: bytes, span: tuple[int, int]) -> bool:
    return _NUMBER.fullmatch(line, *span) is not None


def _assembled(
    line: bytes,
    runs: list[tuple[int, int]],
    effects: list[_Effect],
    tokens: list[tuple[tuple[int, int], float] | None],
    stamp: Stamp | None,
    *,
    exact: bool,
) -> Parts | None:
    """The expression, with a group for the time, its fraction, the process id and each number that counts."""
    places = [found.end() for found in _PLACES.finditer(line)]
    strict_until = len(line) if exact else max([0, *places, stamp.end if stamp and not stamp.epoch else 0])
    front = [(stamp.start, stamp.end)] if stamp else []
    front += [stamp.fraction] if stamp and stamp.fraction[1] > stamp.fraction[0] else []
    pid = [run for run, effect in zip(runs, effects, strict=True) if effect.kind == "pid"]
    numbers = sorted({token[0] for token in tokens if token is not None})
    groups = sorted([*front, *pid, *numbers])
    if any(after[0] < before[1] for before, after in pairwise(groups)):
        return None
    opens, closes = {start for start, _ in groups}, {end for _, end in groups}
    out, last, known = b"", 0, []
    for (start, end), effect in zip(runs, effects, strict=True):
        out += _literal(line, last, start, opens, closes)
        most = 0
        if effect.kind == "fixed":
            body = re.escape(line[start:end])
        else:
            most = 0 if start < strict_until or effect.kind == "time" else _most(line, start, end)
            body = b"\\d{1,%d}" % most if most else b"\\d{%d}" % (end - start)
        known.append(Run(start, end, most, effect.kind == "fixed"))
        out += (b"(" if start in opens else b"") + body
        opens.discard(start)
        last = end
    out += _literal(line, last, len(line), opens, closes)
    where = {span: at for at, span in enumerate(groups)}
    sources = tuple((-1, 1.0) if token is None else (where[token[0]], token[1]) for token in tokens)
    time = where[front[0]] if front else -1
    return Parts(
        line, out, tuple(known), tuple(groups), sources, time,
        where[front[1]] if len(front) > 1 else -1, where[pid[0]] if pid else -1, stamp,
    )  # fmt: skip


def _literal(line: bytes, start: int, end: int, opens: set[int], closes: set[int]) -> bytes:
    """Text between two runs, with the groups that end at its start or open within."""
    out = b")" if start in closes else b""
    for at in range(start, end):
        if at in opens:
            out += b"("
            opens.discard(at)
        out += re.escape(line[at : at + 1])
    return out


def _most(line: bytes, start: int, end: int) -> int:
    """How many digits a run may have; 0 where its length may matter."""
    before, after = line[max(0, start - 2) : start], line[end : end + 2]
    if before[-1:] == b"." and before[:1].isdigit():
        return 18
    joined = (before[-1:] in b":,-/" and before[:1].isdigit()) or (after[:1] in b":,-/xX" and after[1:].isdigit())
    if not before:
        joined = after[:1] in {b":", b",", b"-", b"/", b"x", b"X"} and after[1:].isdigit()
    return 0 if joined or end - start > 9 else 9


def _spells_digits(pattern: str) -> bool:
    return any(found[1] is None for found in _SKIPPED.finditer(pattern)) or "(?P=" in pattern


def _widened(pattern: str) -> re.Pattern[str] | None:
    """The pattern with any digit in place of each that it spells; None where that would not match all that the pattern does."""
    classes = any(_spells_digits(found[0]) for found in re.finditer(r"\[[^\]]*\]", pattern))
    if classes or any(sign in pattern for sign in ("(?!", "(?<!", "(?P=", "^")) or re.search(r"\\\d", pattern):
        return None
    return re.compile(_SKIPPED.sub(lambda found: found[1] or r"\d", pattern), re.IGNORECASE)
