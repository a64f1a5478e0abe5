"""Verdicts: broken ones gravest first, then open questions, then everything that holds in one row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.text import Text

from gyrecheck.model.finding import State, Verdict
from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.view import View

TITLE = "verdicts"


def listed(view: View, needle: str = "") -> tuple[Verdict, ...]:
    """The verdicts a cursor can stand on, in the order shown; `needle` filters by code, name, quantity or message."""
    chosen = (*view.broken, *view.open_questions)
    if needle:
        chosen = tuple(v for v in view.verdicts if needle.casefold() in f"{v.code} {v.name} {v.quantity} {v.message}".casefold())
    return chosen


def body(
    view: View, pen: Pen, width: int, height: int, *, cursor: int = -1, needle: str = "", order: Callable[[Verdict], Any] | None = None
) -> Text:
    """One row a verdict; the chosen one is marked by `>` and reverse video."""
    rows: list[Text] = []
    chosen = listed(view, needle)
    chosen = tuple(sorted(chosen, key=order)) if order else chosen
    start = max(0, min(cursor - height + 3, len(chosen) - 1)) if cursor >= 0 else 0
    for at, verdict in enumerate(chosen[start:], start):
        word = "undecided" if verdict.state is State.UNDECIDED else "ok" if verdict.state is State.HOLDS else verdict.severity.value
        line = Text("> " if at == cursor else "  ")
        line.append_text(pen.glyph(word))
        line.append(" ")
        line.append_text(pen.word(word, word.ljust(9)))
        line.append(f" {verdict.code} {verdict.name}  ", style="bold" if pen.color else "")
        line.append(pen.plain(verdict.message))
        line.truncate(width, overflow="ellipsis" if not pen.ascii else "crop")
        if at == cursor:  # one even bar: the state's colour would break it, its word and sign are there
            line = Text(line.plain.ljust(width), style="reverse")
        rows.append(line)
    if view.waiting_for and not rows:
        return Text("\n").join([Text(pen.plain(line)) for line in view.waiting_for][:height])
    if not needle:
        names = list(dict.fromkeys(v.quantity or v.name for v in view.fine))
        if names:
            line = Text("  ")
            line.append_text(pen.glyph("ok"))
            line.append(" ")
            line.append_text(pen.word("ok", "ok".ljust(9)))
            line.append(pen.plain(" " + " · ".join(names)))
            line.truncate(width)
            rows.append(line)
        rows += [Text(pen.plain(f"    not judged {text}")[:width], style="dim" if pen.color else "") for text in view.not_judged]
    if not rows:
        rows = [Text(f"nothing fits `{needle}`" if needle else "nothing to judge yet")]
    return Text("\n").join(rows[: max(1, height)])


def details(verdict: Verdict, pen: Pen, width: int, height: int) -> Text:
    """All that one verdict knows: message, first wrong line, evidence, rungs, hint and the next command."""
    del width
    rows = [Text(f"{verdict.code} {verdict.name}", style="bold" if pen.color else ""), Text(pen.plain(verdict.message))]
    if verdict.first is not None:
        rows.append(Text(f"first  {verdict.first.path}:{verdict.first.line}  {verdict.first.time}".rstrip()))
        rows.append(Text(f"       {pen.plain(verdict.first.text.strip())}"))
    for evidence in verdict.evidence:
        rows.append(Text(f"{evidence.path}:{evidence.line}   {pen.plain(evidence.text.strip())}"))
        if evidence.label:
            rows.append(Text(f"       {pen.plain(evidence.label)}", style="dim" if pen.color else ""))
    rows += [Text(f"{at}  {step.name}: {step.state} {pen.plain(step.message)}".rstrip()) for at, step in enumerate(verdict.steps, 1)]
    if verdict.hint:
        rows.append(Text(f"hint   {pen.plain(verdict.hint)}"))
    if verdict.next:
        rows.append(Text(f"next   {verdict.next}"))
    return Text("\n").join(rows[: max(1, height)])
