"""The single lines around the panels: title, status, the three lines of a terminal that is too small, and an explained code."""

from __future__ import annotations

from rich.text import Text

from gyrecheck.model.finding import Verdict
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.numbers import clock, short
from gyrecheck.screen.view import View


def title(view: View, pen: Pen, width: int, *, word: str = "") -> Text:
    """Program, run, topology, span and state; the state is a word, or `word` where the picture is not the newest."""
    state = word or view.state
    left = Text(" gyrecheck watch   ", style="bold" if pen.color else "")
    words = (f"run {view.run}" if view.run else "", view.topology, view.note if width >= 100 else "")
    left.append("   ".join(word for word in words if word))
    right = Text(f"{clock(view.seconds)}   ")
    right.append_text(pen.word(state))
    left.truncate(max(0, width - right.cell_len - 2))
    return left + Text(" " * max(1, width - left.cell_len - right.cell_len - 1)) + right


def status(view: View, newest: View, pen: Pen, width: int, *, paused: bool, sort: str) -> Text:
    """How fresh the figures are and how much was understood; while paused, how much has passed."""
    words: list[str] = []
    if paused:
        words.append(f"paused: {newest.lines - view.lines:,} lines read since, counting goes on")
    elif view.state in {"disconnected", "silent"}:
        words.append(view.note)
    elif view.age is not None:
        words.append(f"last line {view.age:.1f} s ago")
    if view.gaps:
        words.append(f"{len(view.gaps)} gap{'s' if len(view.gaps) != 1 else ''}: may be incomplete")
    words.append(f"{len(view.files)} file{'s' if len(view.files) != 1 else ''}")
    words.append(f"{view.not_understood:,} of {view.lines:,} lines not understood")
    if sort != "severity":
        words.append(f"by {sort}")
    line = Text(pen.plain(" " + " · ".join(words)))
    line.truncate(width)
    return line


def tiny(view: View, pen: Pen, width: int, height: int) -> Text:
    """Three honest lines for a terminal below 80x24."""
    counts = " ".join(f"{row.name} {short(row.total)}" for row in view.counters) or "no counters yet"
    residual = next((row.value for row in view.balance if row.name == "residual"), None)
    first = view.broken[0] if view.broken else None
    said = f"{first.severity.value} {first.code} {first.name}" if first else "no verdict is broken" if view.counters else "waiting"
    rows = [f"needs 80x24, has {width}x{height}", counts, f"residual {'?' if residual is None else short(residual)}  {said}"]
    return Text(pen.plain("\n".join(row[:width] for row in rows)))


def explanation(verdict: Verdict | None, pen: Pen) -> Text:
    """What, why and fix of the chosen verdict's code."""
    code = load_codes().get(verdict.code) if verdict else None
    if code is None:
        return Text("choose a verdict first")
    rows = [Text(f"{code.code} {code.name}", style="bold" if pen.color else "")]
    parts = (("What", code.what), ("Why", code.why), ("Alarm", code.alarm), ("Fix", code.fix))
    rows += [Text(f"{name:<6}{pen.plain(text)}") for name, text in parts if text]
    return Text("\n").join(rows)
