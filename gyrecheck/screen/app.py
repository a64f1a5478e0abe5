"""The live screen of one run: its panels, and the keys that choose, filter, open and save. They change the picture only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import Input, Static

from gyrecheck.model.finding import Verdict
from gyrecheck.screen import export, lines
from gyrecheck.screen.following_app import FollowingApp, lean
from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.history import Frames
from gyrecheck.screen.keys import KEYS, footer, help_page
from gyrecheck.screen.panel import Draw, Panel
from gyrecheck.screen.panels import conservation, counters, coupling, diagnosis, handoff, plot, processes, staleness, verdicts
from gyrecheck.screen.view import SeriesView, View

SORTS: tuple[tuple[str, Callable[[Verdict], Any]], ...] = (
    ("severity", lambda v: (-v.severity.rank, v.code)),
    ("code", lambda v: (v.code,)),
    ("first line", lambda v: (v.first is None, v.first.path if v.first else "", v.first.line if v.first else 0)),
)


class Feed(Protocol):
    """Where pictures come from; `poll` may block for a moment and runs in a thread of its own."""

    def poll(self) -> View:
        """The newest picture."""

    def close(self) -> None:
        """Stop reading."""


class WatchApp(FollowingApp[View]):
    """One run on one screen."""

    KEYS = KEYS
    CSS_PATH = "screen.tcss"
    AUTO_FOCUS = "#verdicts"
    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-narrow"), (132, "-wide"), (190, "-broad")]  # noqa: RUF012 - Textual's form
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-short"), (30, "-tall")]  # noqa: RUF012 - same
    BINDINGS: ClassVar[list[BindingType]] = [Binding(k.keys, k.action, k.what, show=False, priority=k.keys == "q") for k in KEYS]

    def __init__(
        self,
        feed: Feed,
        *,
        interval: float = 0.5,
        pen: Pen | None = None,
        folder: Path | None = None,
        timeout: float | None = None,
        until_ended: bool = False,
    ) -> None:
        frames = Frames(View(), lambda view: frozenset(v.code for v in view.broken), lambda view: view.versions, lean)
        super().__init__(feed.poll, frames, interval=interval, pen=pen, timeout=timeout, folder=folder)
        self._feed, self._until_ended = feed, until_ended
        self._cursor, self._needle, self._sort = 0, "", 0
        self._mode, self._page = "", 0
        self._series_at, self._logarithmic = 0, False
        self._panels: dict[str, Panel] = {}

    def compose(self) -> ComposeResult:
        """Lay the panels out; which are seen is decided by the size, in `screen.tcss`."""
        yield Static("", id="title", markup=False)
        yield Static("", id="tiny", markup=False)
        with Container(id="body"):
            for name in ("counters", "coupling", "conservation", "staleness", "diagnosis", "processes", "handoff", "verdicts", "detail"):
                yield self._panel(name)
        yield Input(placeholder="filter verdicts", id="needle")
        yield Static("", id="status", markup=False)
        yield Static("", id="keys", markup=False)

    def _panel(self, name: str) -> Panel:
        draws: dict[str, tuple[str, Draw]] = {
            "counters": (counters.TITLE, counters.body),
            "coupling": (coupling.TITLE, coupling.body),
            "conservation": (conservation.TITLE, conservation.body),
            "staleness": (staleness.TITLE, staleness.body),
            "diagnosis": (diagnosis.TITLE, diagnosis.body),
            "processes": (processes.TITLE, processes.body),
            "handoff": (handoff.TITLE, handoff.body),
            "verdicts": (verdicts.TITLE, self._draw_verdicts),
            "detail": ("details", self._draw_detail),
        }
        title, draw = draws[name]
        panel = self._panels[name] = Panel(title, draw, self._pen, name=name)
        return panel

    def saw(self, picture: View) -> None:
        """A run that ended may end its screen."""
        if self._until_ended and picture.state == "ended":
            self.action_leave()

    def refresh_picture(self) -> None:
        """Draw the lines around the panels and every panel that is visible."""
        view, pen, width = self.shown, self._pen, self.size.width
        newest = self._frames.newest
        paused = self._paused is not None
        self.query_one("#title", Static).update(lines.title(view, pen, width, word=self.word))
        self.query_one("#status", Static).update(lines.status(view, newest, pen, width, paused=paused, sort=SORTS[self._sort][0]))
        self.query_one("#keys", Static).update(Text(footer(width, ascii_only=pen.ascii)))
        self.query_one("#tiny", Static).update(lines.tiny(view, pen, self.size.width, self.size.height))
        tiny = self.size.width < 80 or self.size.height < 24
        self.screen.set_class(tiny, "-small")
        self._panels["detail"].border_title = self._detail_title()
        for panel in self._panels.values():
            panel.show(view)

    def _chosen(self) -> Verdict | None:
        rows = sorted(verdicts.listed(self.shown, self._needle), key=SORTS[self._sort][1])
        return rows[self._cursor] if 0 <= self._cursor < len(rows) else None

    def _draw_verdicts(self, view: View, pen: Pen, width: int, height: int) -> Text:
        return verdicts.body(view, pen, width, height, cursor=self._cursor, needle=self._needle, order=SORTS[self._sort][1])

    def _draw_detail(self, view: View, pen: Pen, width: int, height: int) -> Text:
        if self._mode in {"", "plot"}:  # a terminal with room for it shows the plot when nothing else is open
            series = self._plotted()
            return plot.body(series, pen, width, height, log=self._logarithmic) if series else Text("no series yet")
        if self._mode == "keys":
            return Text("\n".join(help_page(self._page, height)))
        if self._mode == "unknown":
            return Text("\n".join(view.unknown_lines) or "every line was understood")
        verdict = self._chosen()
        if self._mode == "explain":
            return lines.explanation(verdict, pen)
        return verdicts.details(verdict, pen, width, height) if verdict else Text("nothing chosen")

    def _plotted(self) -> SeriesView | None:
        """The chosen series."""
        found = self.whole.series
        return found[self._series_at % len(found)] if found else None

    def _detail_title(self) -> str:
        if self._mode in {"", "plot"}:
            series = self._plotted()
            return f"{series.name} {series.unit}".strip() if series else "plot"
        return "lines not understood" if self._mode == "unknown" else self._mode

    def _open(self, mode: str) -> None:
        self._mode = "" if self._mode == mode else mode
        whole = self._mode in {"plot", "keys", "unknown"}
        self.screen.set_class(bool(self._mode) and not whole, "details")
        self.screen.set_class(whole, "whole")
        self.call_after_refresh(self.refresh_all)

    # actions, one a key

    def action_leave(self) -> None:
        """Stop reading and leave."""
        self._stop.set()
        self._feed.close()
        super().action_leave()

    def action_details(self) -> None:
        """Open the chosen verdict."""
        self._open("details")

    def action_explain(self) -> None:
        """Open what the chosen code means."""
        self._open("explain")

    def action_keys(self) -> None:
        """Open the list of keys."""
        height = self._panels["detail"].content_size.height
        if self._mode == "keys" and help_page(self._page + 1, height):
            self._page += 1
            self.refresh_all()
            return
        self._page = 0
        self._open("keys")

    def action_unknown(self) -> None:
        """Open the lines that were not understood."""
        self._open("unknown")

    def action_plot(self) -> None:
        """Open the plot."""
        self._open("plot")

    def action_series(self, by: int) -> None:
        """Plot another series."""
        self._series_at += by
        self.refresh_all()

    def action_logarithmic(self) -> None:
        """Change the plot's axis."""
        self._logarithmic = not self._logarithmic
        self.refresh_all()

    def action_choose(self, by: int) -> None:
        """Move the cursor over the verdicts."""
        count = len(verdicts.listed(self.shown, self._needle))
        self._cursor = max(0, min(count - 1, self._cursor + by))
        self.refresh_all()

    def action_sort(self) -> None:
        """Change the order of the verdicts."""
        self._sort = (self._sort + 1) % len(SORTS)
        self.refresh_all()

    def action_filter(self) -> None:
        """Ask for a filter."""
        needle = self.query_one("#needle", Input)
        needle.add_class("open")
        needle.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while typing."""
        self._needle, self._cursor = event.value, 0
        self.refresh_all()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep the filter, close the line."""
        event.input.remove_class("open")
        self._panels["verdicts"].focus()

    def action_clear(self) -> None:
        """Close whatever is open and clear the filter."""
        needle = self.query_one("#needle", Input)
        needle.value = ""
        needle.remove_class("open")
        self._mode = ""
        self.screen.remove_class("details", "whole")
        self._panels["verdicts"].focus()
        self.call_after_refresh(self.refresh_all)

    def action_copy_row(self) -> None:
        """Copy the chosen verdict."""
        verdict = self._chosen()
        if verdict is not None:
            self.copy_to_clipboard(export.row_text(verdict))
            self.notify("verdict copied")

    def action_copy_command(self) -> None:
        """Copy the command that gives this view without a screen."""
        self.copy_to_clipboard(self.shown.command)
        self.notify(self.shown.command, title="copied")

    def action_save(self, form: str) -> None:
        """Save the view, its histories or the screen."""
        whole = replace(self.shown, series=self.whole.series)
        text = self.export_screenshot() if form == "svg" else export.as_json(whole) if form == "json" else export.as_csv(whole)
        self.save_view(text, whole, form)
