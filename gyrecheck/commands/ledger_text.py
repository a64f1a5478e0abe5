"""The text of lines that verdicts name: read again where the tally did not keep it."""

from __future__ import annotations

from dataclasses import replace

from gyrecheck.model.errors import GyreError
from gyrecheck.model.events import Reading
from gyrecheck.model.finding import Evidence, First, Verdict
from gyrecheck.stream.open_log import LogFile, blocks, comes_once


def with_texts(verdicts: tuple[Verdict, ...], logs: tuple[LogFile, ...]) -> tuple[Verdict, ...]:
    """The verdicts with the text of every line they name, where it can still be read."""
    wanted: dict[str, set[int]] = {}
    for verdict in verdicts:
        places: list[First | Evidence] = [*([verdict.first] if verdict.first else []), *verdict.evidence]
        for place in places:
            if place.line and not place.text:
                wanted.setdefault(place.path, set()).add(place.line)
    known = {log.path: log for log in logs}
    texts = {
        (path, line): text
        for path, lines in wanted.items()
        if path in known and not comes_once(known[path])
        for line, text in _lines(known[path], lines)
    }
    if not texts:
        return verdicts
    return tuple(
        replace(
            v,
            first=replace(v.first, text=v.first.text or texts.get((v.first.path, v.first.line), "")) if v.first else None,
            evidence=tuple(replace(e, text=e.text or texts.get((e.path, e.line), "")) for e in v.evidence),
        )
        for v in verdicts
    )


def _lines(log: LogFile, wanted: set[int]) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    line, last, carry = 1, max(wanted), b""
    try:
        for block in blocks(log):
            data = carry + block
            ends = data.count(b"\n")
            if any(line <= number <= line + ends for number in wanted):
                rows = data.split(b"\n")
                for at, row in enumerate(rows[:-1]):
                    if line + at in wanted:
                        found.append((line + at, Reading("", 0, 0, row[:400]).text))
                carry = rows[-1]
            else:
                carry = data[data.rfind(b"\n") + 1 :]
            line += ends
            if line > last:
                return found
            if len(carry) > 1 << 23:
                return found
        if line in wanted:
            found.append((line, Reading("", 0, 0, carry[:400]).text))
    except GyreError:
        return found
    return found
