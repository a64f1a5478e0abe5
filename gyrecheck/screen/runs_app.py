"""The screen for several runs: a table of all and one plot of one series of all; one thread reads, nothing is written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.message import Message
from textual.widgets import Static

from gyrecheck.screen import export
from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.keys import RUN_KEYS, footer, help_page
from gyrecheck.screen.panel import Panel
from gyrecheck.screen.panels import plot_runs, runs, verdicts
from gyrecheck.screen.themes import next_theme
from gyrecheck.screen.view import View

Poll = Callable[[], tuple[View, ...]]


class FreshRuns(Message):
    """New pictures of all runs; only the newest in the queue count."""

    def __init__(self, views: tuple[View, ...]) -> None:
        super().__init__()
        self.views = views

    def can_replace(self, message: Message) -> bool:
        """Newer pictures take the place of older ones that were not shown yet."""
        return isinstance(message, FreshRuns)


class RunsApp(App[None]):
    """Several runs on one screen."""

    CSS = """
    Screen { layout: vertical; background: $background; }
    #title, #keys { height: 1; width: 100%; }
    .panel { border: round $primary; padding: 0 1; width: 100%; text-wrap: nowrap; }
    .panel:focus { border: round $accent; }
    #runs { height: auto; max-height: 40%; min-height: 4; }
    #plot { height: 1fr; }
    """
    TITLE = "gyrecheck watch"
    BINDINGS: ClassVar[list[BindingType]] = [Binding(k.keys, k.action, k.what, show=False, priority=k.keys == "q") for k in RUN_KEYS]

    def __init__(
        self, poll: Poll, *, interval: float = 0.5, pen: Pen | None = None, timeout: float | None = None, folder: Path | None = None
    ) -> None:
        super().__init__()
        self._poll, self._interval, self._timeout = poll, interval, timeout
        self._pen = pen or Pen()
        self._folder = folder or Path.cwd()
        self._stop = threading.Event()
        self.views: tuple[View, ...] = ()
        self._paused: tuple[View, ...] | None = None
        self._cursor, self._series_at, self._page, self._logarithmic, self._mode = 0, 0, 0, False, ""

    def compose(self) -> ComposeResult:
        """Table above, plot below."""
        yield Static("", id="title", markup=False)
        self._table = Panel(runs.TITLE, self._draw_table, self._pen, name="runs")
        self._plot = Panel("plot", self._draw_plot, self._pen, name="plot")
        yield self._table
        yield self._plot
        yield Static("", id="keys", markup=False)

    def on_mount(self) -> None:
        """Start the one reading thread."""
        if self._pen.ascii:
            for panel in (self._table, self._plot):
                panel.styles.border = ("ascii", "white")
        if self._timeout is not None:
            self.set_timer(self._timeout, self.action_leave)
        self.read_on()

    @work(thread=True, exclusive=True, group="feed")
    def read_on(self) -> None:
        """Poll until the app leaves."""
        while not self._stop.is_set():
            try:
                self.post_message(FreshRuns(self._poll()))
            except Exception as error:  # noqa: BLE001 - a picture less is better than a dead screen; what happened is said
                self.call_from_thread(self.notify, f"could not read: {type(error).__name__}: {error}", severity="error")
            self._stop.wait(self._interval)

    def on_fresh_runs(self, message: FreshRuns) -> None:
        """Show the newest pictures unless paused."""
        self.views = message.views
        self.refresh_views()

    @property
    def shown(self) -> tuple[View, ...]:
        """The pictures on the screen."""
        return self._paused or self.views

    def refresh_views(self) -> None:
        """Draw everything; nothing before the screen stands or after it is gone."""
        if self._stop.is_set() or not self.query("#title"):
            return
        width = self.size.width
        states = ", ".join(sorted({view.state for view in self.shown})) or "waiting"
        left = f" gyrecheck watch   {len(self.shown)} runs"
        right = "paused" if self._paused is not None else states
        self.query_one("#title", Static).update(Text(left.ljust(max(0, width - len(right) - 1)) + right))
        self.query_one("#keys", Static).update(Text(footer(width, ascii_only=self._pen.ascii, keys=RUN_KEYS)))
        self._table.styles.height = min(len(self.shown) + 3, max(4, self.size.height * 2 // 5))
        self._table.show(View(run="runs"))
        self._plot.show(View(run="plot"))

    def on_resize(self, event: Resize) -> None:
        """Another size, another layout."""
        del event
        self.call_after_refresh(self.refresh_views)

    def on_unmount(self) -> None:
        """However the app ends, the reading thread ends with it."""
        self._stop.set()

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
        return plot_runs.body(self.shown, name, pen, width, height, log=self._logarithmic) if name else Text("no series yet")

    def _series(self) -> str:
        known = plot_runs.names(self.shown)
        return known[self._series_at % len(known)] if known else ""

    # actions, one a key

    def action_leave(self) -> None:
        """Stop reading and leave."""
        self._stop.set()
        self.exit()

    def action_pause(self) -> None:
        """Freeze the pictures, never the counting."""
        self._paused = None if self._paused is not None else self.views
        self.refresh_views()

    def action_choose(self, by: int) -> None:
        """Choose another run."""
        self._cursor = max(0, min(len(self.shown) - 1, self._cursor + by))
        self.refresh_views()

    def action_details(self) -> None:
        """The chosen run's verdicts in place of the plot."""
        self._mode = "" if self._mode == "verdicts" else "verdicts"
        self.refresh_views()

    def action_series(self, by: int) -> None:
        """Plot another series."""
        self._series_at += by
        self.refresh_views()

    def action_logarithmic(self) -> None:
        """Change the plot's axis."""
        self._logarithmic = not self._logarithmic
        self.refresh_views()

    def action_keys(self) -> None:
        """Open or close the list of keys."""
        if self._mode == "keys" and help_page(self._page + 1, self._plot.content_size.height, RUN_KEYS):
            self._page += 1
        else:
            self._mode, self._page = "" if self._mode == "keys" else "keys", 0
        self.refresh_views()

    def action_copy_command(self) -> None:
        """Copy the command that gives this view without a screen."""
        words = " ".join(view.command.rsplit(" ", 1)[-1] for view in self.shown)
        self.copy_to_clipboard(f"gyrecheck watch --once {words}")
        self.notify(f"gyrecheck watch --once {words}", title="copied")

    def action_save(self, form: str) -> None:
        """Save to the working directory under a free name."""
        try:
            text = self.export_screenshot() if form == "svg" else export.runs_csv(self.shown)
            self.notify(str(export.save(text, View(run="runs"), form, self._folder)), title="saved")
        except OSError as error:
            self.notify(f"could not save: {error.strerror or error}", severity="error")

    def action_theme(self) -> None:
        """Next theme."""
        self.theme = next_theme(self.theme, self.available_themes)
