"""What a logger puts around a line, taken off: ANSI colour, NUL runs, carriage returns, Ray and logger prefixes, times, process ids.

Everything works on bytes; nothing here raises on any input. A line redrawn with carriage returns is several segments of one line.
"""

from __future__ import annotations

import re
from calendar import timegm
from typing import NamedTuple

ANSI = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\^\[\[[0-9;]*m")
RAY = re.compile(rb"^\s*\(([\w:.<>\-]+)(?:\s+pid=(\d+))(?:,\s*ip=([\d.a-fA-F:]+))?\)\s?")
REPEATED = re.compile(rb"\[repeated (\d+)x across cluster\]")
_PID = re.compile(rb"\b(?:pid|PID)[ =:]+(\d+)\b")
_SIDE = re.compile(rb"\bside=(sampling|training)\b")
_DATE_TIME = re.compile(
    rb"(?<!\d)(\d{4})[-/]?(\d\d)[-/]?(\d\d)[T \-_](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s*(Z|[+-]\d\d:?\d\d)?"
    rb"|^\W{0,3}(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
    rb"|^\W{0,3}(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?![\d:])"
)
_EPOCH = re.compile(
    rb"^\W{0,2}(1[4-9]\d{8}(?:\.\d+)?)\b|\"(?:time|timestamp|ts|wall_clock|_timestamp|wall_time)\"\s*:\s*(1[4-9]\d{8}(?:\.\d+)?)\b"
)
EPOCH_LIKE = re.compile(rb"^\W{0,2}\d{10}(?:\.\d+)?\b|\"(?:time|timestamp|ts|wall_clock|_timestamp|wall_time)\"\s*:\s*\d{10}")
"""What would be a time with other digits."""
_LEVEL = re.compile(
    rb"^[\s\]\-|:>*#]*(?:\[?(?:TRACE|DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|SUCCESS|DONE|NOTICE|FATAL|I|W|E|D)\b[\]:]?)[\s|:\-]*"
    rb"(?:[\w./]+\.py:\d+\]?\s*[-:]?\s*|\[[\w./]+\.py\s*\(?\d*\)?\]\s*|[\w.]+:\w+:\d+ - )?"
)
_SPEAKER = re.compile(rb"[\W_]{0,3}(trainer|learner|sampler|rollouter|rollout[ _-]?workers?|actor|collector|generator)\b", re.IGNORECASE)
_SIDE_WORDS = (
    (re.compile(rb"train|learn", re.IGNORECASE), "training"),
    (
        re.compile(rb"sampl|roll-?out|actor|collect|generat|orchestrat|env_?runner|env_?worker|producer|inference", re.IGNORECASE),
        "sampling",
    ),
)


_OPAQUE = re.compile(rb"([\"'])(?=[\d-]*[a-fA-F])(?!-?\d+[eE][-+]?\d+\1)[\da-fA-F-]{8,}\1(?!\s*:)")


class Dressed(NamedTuple):
    """A line without its dress."""

    body: bytes
    time: float | None
    pid: int
    host: str
    side: str
    repeated: int


def segments(raw: bytes) -> list[bytes]:
    """The parts of a line between carriage returns that hold anything; NUL runs are taken out."""
    if b"\0" in raw:
        raw = raw.replace(b"\0", b"")
    if b"\r" not in raw:
        return [raw]
    return [part for part in raw.split(b"\r") if part.strip()]


def masked(text: bytes) -> bytes:
    """The text, as long as it was, with `#` in place of quoted hexadecimal ids: they say nothing, and no two lines have the same."""
    return _OPAQUE.sub(lambda found: found[1] + b"#" * (len(found[0]) - 2) + found[1], text)


def undress(segment: bytes) -> Dressed:
    """A segment's text, and what its prefix says about time and process."""
    if b"\x1b" in segment or b"^[[" in segment:
        segment = ANSI.sub(b"", segment)
    pid, host, side, repeated = 0, "", "", 0
    if segment[:1] == b"(" and (ray := RAY.match(segment)):
        pid = int(ray[2])
        host = (ray[3] or b"").decode("latin-1")
        side = side_of(ray[1])
        segment = segment[ray.end() :]
    if b"[repeated " in segment and (again := REPEATED.search(segment)):
        repeated = int(again[1])
        segment = segment[: again.start()]
    time, end = _time(segment)
    body = segment[end:] if end and end < len(segment) else segment
    if b"id=" in body[:80] or b"PID" in body[:120] or b"pid" in body[:80]:
        if not pid and (found := _PID.search(body, 0, 160)):
            pid = int(found[1])
        if named := _SIDE.search(body, 0, 160):
            side = named[1].decode()
            body = body[named.end() :]
        elif found := _PID.match(body.lstrip(b" [")):
            body = body[body.index(found[0]) + len(found[0]) :].lstrip(b"] ")
    if level := _LEVEL.match(body):
        body = body[level.end() :] or body
    if not side and (speaker := _SPEAKER.match(body)):
        side = side_of(speaker[1])
    return Dressed(body, time, pid, host, side, repeated)


def side_of(name: bytes) -> str:
    """The side that a process, file or logger name tells; empty when it tells none or both."""
    sides = {side for pattern, side in _SIDE_WORDS if pattern.search(name)}
    return sides.pop() if len(sides) == 1 else ""


def _time(segment: bytes) -> tuple[float | None, int]:
    """Seconds, and where the time ended when it stood in front."""
    found = _DATE_TIME.search(segment, 0, 100)
    if found is None:
        epoch = _EPOCH.search(segment) if b"1" in segment else None
        if epoch is None:
            return None, 0
        return float(epoch[1] or epoch[2]), epoch.end() if epoch[1] else 0
    front = found.end() if not segment[: found.start()].strip(b" [(<\t") or found.start() < 24 else 0
    if found.start() > 0 and segment[found.start() - 1 : found.start()] in {b"=", b'"'}:
        front = 0
    while front and segment[front : front + 1] in {b"]", b")", b" ", b">", b"Z"}:
        front += 1
    base, (_, _, fraction, zone) = _base(found), _span(found)
    return (None, 0) if base is None else (base + _fraction(fraction) - zone, front)


def _base(found: re.Match[bytes]) -> float | None:
    """Whole seconds of a date and time; None when there is no such date."""
    part = found.groups()
    if part[0]:
        year, month, day, hour, minute, second = map(int, part[:6])
        if not (1 <= month <= 12 and 1 <= day <= 31 and year >= 1970):
            return None
        return float(timegm((year, month, day, hour, minute, second)))
    if part[8]:
        month, day, hour, minute, second = map(int, part[8:13])
        return (month * 31 + day) * 86400.0 + hour * 3600 + minute * 60 + second
    return int(part[14]) * 3600.0 + int(part[15]) * 60 + int(part[16])


def _span(found: re.Match[bytes]) -> tuple[int, int, bytes | None, float]:
    """Where the whole seconds begin and end, the digits of the fraction, and the zone's seconds."""
    first, last, fraction = (1, 6, 7) if found[1] else (9, 13, 14) if found[9] else (15, 17, 18)
    return found.start(first), found.end(last), found[fraction], _zone(found[8])


class Stamp(NamedTuple):
    """Where a line's time stands. `fraction` is its digits' place, empty without one; `zone` in seconds."""

    start: int
    end: int
    fraction: tuple[int, int]
    zone: float
    epoch: bool


def stamp_of(segment: bytes) -> Stamp | None:
    """The place from which `undress` takes the time of a line without its prefixes."""
    found = _DATE_TIME.search(segment, 0, 100)
    if found is not None:
        start, end, fraction, zone = _span(found)
        return Stamp(start, end, (end + 1, end + 1 + len(fraction)) if fraction else (end, end), zone, False)
    epoch = _EPOCH.search(segment)
    if epoch is None:
        return None
    start, end = epoch.span(1 if epoch[1] else 2)
    return Stamp(start, end, (end, end), 0.0, True)


def date_base(text: bytes) -> float | None:
    """Whole seconds of a date and time that stand alone."""
    found = _DATE_TIME.match(text)
    return None if found is None else _base(found)


def _fraction(digits: bytes | None) -> float:
    return int(digits) / 10 ** len(digits) if digits else 0.0


def _zone(text: bytes | None) -> float:
    if not text or text == b"Z":
        return 0.0
    sign = -1 if text[:1] == b"-" else 1
    return sign * (int(text[1:3]) * 3600.0 + int(text[-2:]) * 60)
