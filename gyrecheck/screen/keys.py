"""Every key of the screen, once: the bindings, the footer and the help are made from this table."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """`keys` as Textual spells them, comma separated; `action` a method of the app; `footer` is empty for keys shown in the help only."""

    keys: str
    action: str
    what: str
    footer: str = ""


HISTORY = (
    Key("left,h", "scrub(-1)", "one picture back"),
    Key("right", "scrub(1)", "one picture on"),
    Key("home,g", "begin", "the first picture"),
    Key("end,G", "live", "back to live"),
    Key("d", "first_breach", "jump to the first divergence"),
    Key("b", "next_breach", "jump to the next breach"),
    Key("w", "last_version", "jump to the last policy version"),
)
"""The keys that go back and forth over a run: the same on both screens."""
KEYS = (
    Key("q", "leave", "quit; the ledger report is printed", "q quit"),
    Key("p", "pause", "pause the picture; reading and counting go on", "p pause"),
    Key("space", "details", "open or close the details of the chosen verdict", "space details"),
    Key("down,j", "choose(1)", "next verdict", "↑↓ verdict"),
    Key("up,k", "choose(-1)", "previous verdict"),
    Key("tab", "app.focus_next", "next panel", "tab panel"),
    Key("shift+tab", "app.focus_previous", "previous panel"),
    Key("e", "explain", "what the chosen code means and how to fix it", "e explain"),
    *HISTORY,
    Key("v", "plot", "large plot of one series"),
    Key("n", "series(1)", "next series in the plot"),
    Key("N", "series(-1)", "previous series in the plot"),
    Key("y", "logarithmic", "linear or logarithmic plot"),
    Key("slash", "filter", "filter the verdicts"),
    Key("escape", "clear", "clear the filter, close what is open"),
    Key("o", "sort", "sort by severity, code or first line"),
    Key("l", "unknown", "list the lines that were not understood"),
    Key("c", "copy_row", "copy the chosen verdict"),
    Key("C", "copy_command", "copy the command that reproduces this view"),
    Key("s", "save('json')", "save the view as JSON", "s save"),
    Key("S", "save('csv')", "save the counters as CSV"),
    Key("x", "save('svg')", "save the screen as SVG"),
    Key("t", "theme", "next theme"),
    Key("ctrl+p", "app.command_palette", "all commands, searched by name"),
    Key("question_mark", "keys", "this help", "? keys"),
)
RUN_KEYS = (
    Key("q", "leave", "quit", "q quit"),
    Key("p", "pause", "pause the pictures; reading and counting go on", "p pause"),
    Key("down,j", "choose(1)", "next run", "↑↓ run"),
    Key("up,k", "choose(-1)", "previous run"),
    Key("space", "details", "verdicts of the chosen run in place of the plot", "space verdicts"),
    *HISTORY,
    Key("n", "series(1)", "next series in the plot", "n series"),
    Key("N", "series(-1)", "previous series in the plot"),
    Key("y", "logarithmic", "linear or logarithmic plot", "y axis"),
    Key("C", "copy_command", "copy the command that reproduces this view"),
    Key("S", "save('csv')", "save the series of all runs as CSV"),
    Key("x", "save('svg')", "save the screen as SVG"),
    Key("t", "theme", "next theme"),
    Key("ctrl+p", "app.command_palette", "all commands, searched by name"),
    Key("question_mark", "keys", "this help", "? keys"),
)
"""The keys of the screen for several runs."""
SHOWN = {"question_mark": "?", "slash": "/"}


def shown(key: Key) -> str:
    """The key as a person knows it."""
    return " ".join(SHOWN.get(spelled, spelled) for spelled in key.keys.split(","))


def help_lines(keys: tuple[Key, ...] = KEYS) -> tuple[str, ...]:
    """One line a key for the help panel."""
    return tuple(f"{shown(key):<12} {key.what}" for key in keys)


def help_page(page: int, height: int, keys: tuple[Key, ...] = KEYS) -> tuple[str, ...]:
    """One page of the help; where not all fits, the last line says how to go on. Empty beyond the last page."""
    rows = help_lines(keys)
    if len(rows) <= height:
        return () if page else rows
    room = max(1, height - 1)
    pages = -(-len(rows) // room)
    if page >= pages:
        return ()
    return (*rows[page * room : (page + 1) * room], f"{'?':<12} page {page + 1} of {pages}; ? goes on")


def footer(width: int, *, ascii_only: bool, keys: tuple[Key, ...] = KEYS) -> str:
    """The keys that fit one line; the help key stands at the right."""
    shown = [key.footer for key in keys if key.footer]
    if ascii_only:
        shown = [text.replace("↑↓", "up/down") for text in shown]
    left, right = "  ".join(shown[:-1]), shown[-1]
    while len(left) + len(right) + 3 > width and "  " in left:
        left = left.rsplit("  ", 1)[0]
    return f" {left}".ljust(max(0, width - len(right) - 1)) + right
