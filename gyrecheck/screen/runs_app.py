"""The screen for several runs: a table of all and one plot of one series of all, with the history keys of the screen for one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from gyrecheck.screen import export
from gyrecheck.screen.following_app import FollowingApp, lean
from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.history import Frames
from gyrecheck.screen.keys import RUN_KEYS, footer, help_page
from gyrecheck.screen.panel import Panel
from gyrecheck.screen.panels import plot_runs, runs, verdicts
from gyrecheck.screen.view import View

Runs = tuple[View, ...]
Poll = Callable[[], Runs]


class RunsApp(FollowingApp[Runs]):
    """Several runs on one screen."""

    KEYS = RUN_KEYS
    CSS = """
    Screen { layout: vertical; background: $background; }
    #title, #keys { height: 1; width: 100%; }
    .panel { border: round $primary; padding: 0 1; width: 100%; text-wrap: nowrap; }
    .panel:focus { border: round $accent; }
    #runs { height: auto; max-height: 40%; min-height: 4; }
    #plot { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding(k.keys, k.action, k.what, show=False, priority=k.keys == "q") for k in RUN_KEYS]

    def __init__(
        self, poll: Poll, *, interval: float = 0.5, pen: Pen | None = None, timeout: float | None = None, folder: Path | None = None
    ) -> None:
        frames: Frames[Runs] = Frames(
            (),
            lambda views: frozenset((view.run, v.code) for view in views for v in view.broken),
            lambda views: tuple(view.versions for view in views),
            lambda views: tuple(lean(view) for view in views),
        )
        super().__init__(poll, frames, interval=interval, pen=pen, timeout=timeout, folder=folder)
        self._cursor, self._series_at, self._page, self._logarithmic, self._mode = 0, 0, 0, False, ""

    def compose(self) -> ComposeResult:
        """Table above, plot below."""
        yield Static("", id="title", markup=False)
        self._table = Panel(runs.TITLE, self._draw_table, self._pen, name="runs")
        self._plot = Panel("plot", self._draw_plot, self._pen, name="plot")
        yield self._table
        yield self._plot
        yield Static("", id="keys", markup=False)

    @property
    def views(self) -> Runs:
        """The newest pictures."""
        return self._frames.newest

    def refresh_picture(self) -> None:
        """Draw the table, the plot and the lines around them."""
        width = self.size.width
        states = ", ".join(sorted({view.state for view in self.shown})) or "waiting"
        left = f" gyrecheck watch   {len(self.shown)} runs"
        right = self.word or states
        self.query_one("#title", Static).update(Text(left.ljust(max(0, width - len(right) - 1)) + right))
        self.query_one("#keys", Static).update(Text(footer(width, ascii_only=self._pen.ascii, keys=RUN_KEYS)))
        self._table.styles.height = min(len(self.shown) + 3, max(4, self.size.height * 2 // 5))
        self._table.show(View(run="runs"))
        self._plot.show(View(run="plot"))

    def _draw_table(self, view: View, pen: Pen, width: int, height: int) -> Text:
        del view
        return runs.body(self.shown, pen, width, height, cursor=self._cursor)

    def _draw_plot(self, view: View, pen: Pen, width: int, height: int) -> Text:
        del view
        chosen = self.shown[self._cursor] if self._cursor < len(self.shown) else None
        if self._mode == "keys":
            self._plot.border_title = "keys"
            return Text("\n".join(help_page(self._page, height, RUN_KEYS)))
        if self._mode == "verdicts" and chosen is not None:
            self._plot.border_title = f"verdicts of {chosen.run}"
            return verdicts.body(chosen, pen, width, height)
        name = self._series()
        self._plot.border_title = name or "plot"
        return plot_runs.body(self.whole, name, pen, width, height, log=self._logarithmic) if name else Text("no series yet")

    def _series(self) -> str:
        known = plot_runs.names(self.whole)
        return known[self._series_at % len(known)] if known else ""

    # actions, one a key

    def action_choose(self, by: int) -> None:
        """Choose another run."""
        self._cursor = max(0, min(len(self.shown) - 1, self._cursor + by))
        self.refresh_all()

    def action_details(self) -> None:
        """The chosen run's verdicts in place of the plot."""
        self._mode = "" if self._mode == "verdicts" else "verdicts"
        self.refresh_all()

    def action_series(self, by: int) -> None:
        """Plot another series."""
        self._series_at += by
        self.refresh_all()

    def action_logarithmic(self) -> None:
        """Change the plot's axis."""
        self._logarithmic = not self._logarithmic
        self.refresh_all()

    def action_keys(self) -> None:
        """Open or close the list of keys."""
        if self._mode == "keys" and help_page(self._page + 1, self._plot.content_size.height, RUN_KEYS):
            self._page += 1
        else:
            self._mode, self._page = "" if self._mode == "keys" else "keys", 0
        self.refresh_all()

    def action_copy_command(self) -> None:
        """Copy the command that gives this view without a screen."""
        words = " ".join(view.command.rsplit(" ", 1)[-1] for view in self.shown)
        self.copy_to_clipboard(f"gyrecheck watch --once {words}")
        self.notify(f"gyrecheck watch --once {words}", title="copied")

    def action_save(self, form: str) -> None:
        """Save the histories of all runs, or the screen."""
        self.save_view(self.export_screenshot() if form == "svg" else export.runs_csv(self.whole), View(run="runs"), form)
