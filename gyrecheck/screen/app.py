"""The live screen: one thread reads, the newest picture is shown, keys change the picture only. It never writes into the run folder."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Resize
from textual.message import Message
from textual.widgets import Input, Static

from gyrecheck.model.finding import Verdict
from gyrecheck.screen import export, lines
from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.history import Frames
from gyrecheck.screen.keys import KEYS, footer, help_page
from gyrecheck.screen.panel import Draw, Panel
from gyrecheck.screen.panels import conservation, counters, coupling, diagnosis, handoff, plot, processes, staleness, verdicts
from gyrecheck.screen.themes import next_theme
from gyrecheck.screen.view import View

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


class Fresh(Message):
    """A new picture is there. Only the newest in the queue counts."""

    def __init__(self, view: View) -> None:
        super().__init__()
        self.view = view

    def can_replace(self, message: Message) -> bool:
        """A newer picture takes the place of an older one that was not shown yet."""
        return isinstance(message, Fresh)


class WatchApp(App[None]):
    """One run on one screen."""

    CSS_PATH = "screen.tcss"
    TITLE = "gyrecheck watch"
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
        super().__init__()
        self._timeout, self._until_ended = timeout, until_ended
        self._feed, self._interval = feed, interval
        self._pen = pen or Pen()
        self._folder = folder or Path.cwd()
        self._frames = Frames()
        self._stop = threading.Event()
        self._paused: View | None = None
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

    def on_mount(self) -> None:
        """Start the one reading thread."""
        if self._pen.ascii:
            for panel in self._panels.values():
                panel.styles.border = ("ascii", "white")
                panel.styles.text_overflow = "clip"
        if self._timeout is not None:
            self.set_timer(self._timeout, self.action_leave)
        self.read_on()

    @work(thread=True, exclusive=True, group="feed")
    def read_on(self) -> None:
        """Poll until the app leaves; a feed never raises, it reports."""
        while not self._stop.is_set():
            try:
                self.post_message(Fresh(self._feed.poll()))
            except Exception as error:  # noqa: BLE001 - a picture less is better than a dead screen; what happened is said
                self.call_from_thread(self.notify, f"could not read: {type(error).__name__}: {error}", severity="error")
            self._stop.wait(self._interval)

    def on_fresh(self, message: Fresh) -> None:
        """Keep the picture; show it unless paused or scrubbed back."""
        if self._stop.is_set():
            return
        self._frames.add(message.view)
        self.refresh_view()
        if self._until_ended and message.view.state == "ended":
            self.action_leave()

    @property
    def view(self) -> View:
        """The picture on the screen."""
        return self._paused or self._frames.shown

    def refresh_view(self) -> None:
        """Draw everything that is visible; nothing before the screen stands or after it is gone."""
        if self._stop.is_set() or not self.query("#title"):
            return
        view, pen, width = self.view, self._pen, self.size.width
        newest = self._frames.views[-1] if self._frames.views else view
        paused = self._paused is not None
        self.query_one("#title", Static).update(lines.title(view, pen, width, paused=paused, live=self._frames.live))
        self.query_one("#status", Static).update(lines.status(view, newest, pen, width, paused=paused, sort=SORTS[self._sort][0]))
        self.query_one("#keys", Static).update(Text(footer(width, ascii_only=pen.ascii)))
        self.query_one("#tiny", Static).update(lines.tiny(view, pen, self.size.width, self.size.height))
        tiny = self.size.width < 80 or self.size.height < 24
        self.screen.set_class(tiny, "-small")
        for panel in self._panels.values():
            panel.show(view)

    def on_unmount(self) -> None:
        """However the app ends, the reading thread ends with it."""
        self._stop.set()

    def on_resize(self, event: Resize) -> None:
        """Another size, another layout."""
        del event
        self.call_after_refresh(self.refresh_view)

    def _chosen(self) -> Verdict | None:
        rows = sorted(verdicts.listed(self.view, self._needle), key=SORTS[self._sort][1])
        return rows[self._cursor] if 0 <= self._cursor < len(rows) else None

    def _draw_verdicts(self, view: View, pen: Pen, width: int, height: int) -> Text:
        return verdicts.body(view, pen, width, height, cursor=self._cursor, needle=self._needle, order=SORTS[self._sort][1])

    def _draw_detail(self, view: View, pen: Pen, width: int, height: int) -> Text:
        if self._mode == "plot":
            if not view.series:
                return Text("no series yet")
            return plot.body(view.series[self._series_at % len(view.series)], pen, width, height, log=self._logarithmic)
        if self._mode == "keys":
            return Text("\n".join(help_page(self._page, height)))
        if self._mode == "unknown":
            return Text("\n".join(view.unknown_lines) or "every line was understood")
        verdict = self._chosen()
        if self._mode == "explain":
            return lines.explanation(verdict, pen)
        return verdicts.details(verdict, pen, width, height) if verdict else Text("nothing chosen")

    def _open(self, mode: str, title: str) -> None:
        self._mode = "" if self._mode == mode else mode
        whole = self._mode in {"plot", "keys", "unknown"}
        self.screen.set_class(bool(self._mode) and not whole, "details")
        self.screen.set_class(whole, "whole")
        self._panels["detail"].border_title = title
        self.call_after_refresh(self.refresh_view)

    # actions, one a key

    def action_leave(self) -> None:
        """Stop reading and leave."""
        self._stop.set()
        self._feed.close()
        self.exit()

    def action_pause(self) -> None:
        """Freeze the picture, never the counting."""
        self._paused = None if self._paused is not None else self.view
        self.refresh_view()

    def action_details(self) -> None:
        """Open the chosen verdict."""
        self._open("details", "details")

    def action_explain(self) -> None:
        """Open what the chosen code means."""
        self._open("explain", "explain")

    def action_keys(self) -> None:
        """Open the list of keys."""
        height = self._panels["detail"].content_size.height
        if self._mode == "keys" and help_page(self._page + 1, height):
            self._page += 1
            self.refresh_view()
            return
        self._page = 0
        self._open("keys", "keys")

    def action_unknown(self) -> None:
        """Open the lines that were not understood."""
        self._open("unknown", "lines not understood")

    def action_plot(self) -> None:
        """Open the plot."""
        self._open("plot", self._series_title())

    def _series_title(self) -> str:
        found = self.view.series
        if not found:
            return "plot"
        series = found[self._series_at % len(found)]
        return f"{series.name} {series.unit}".strip()

    def action_series(self, by: int) -> None:
        """Plot another series."""
        self._series_at += by
        self._panels["detail"].border_title = self._series_title() if self._mode == "plot" else self._panels["detail"].border_title
        self.refresh_view()

    def action_logarithmic(self) -> None:
        """Change the plot's axis."""
        self._logarithmic = not self._logarithmic
        self.refresh_view()

    def action_choose(self, by: int) -> None:
        """Move the cursor over the verdicts."""
        count = len(verdicts.listed(self.view, self._needle))
        self._cursor = max(0, min(count - 1, self._cursor + by))
        self.refresh_view()

    def action_sort(self) -> None:
        """Change the order of the verdicts."""
        self._sort = (self._sort + 1) % len(SORTS)
        self.refresh_view()

    def action_scrub(self, by: int) -> None:
        """Step through the history."""
        self._paused = None
        self._frames.step(by)
        self.refresh_view()

    def action_begin(self) -> None:
        """Show the first picture."""
        self._paused = None
        self._frames.put(0)
        self.refresh_view()

    def action_live(self) -> None:
        """Show the newest picture again."""
        self._paused, self._frames.at = None, None
        self.refresh_view()

    def _jump(self, found: bool, what: str) -> None:
        self._paused = None
        if not found:
            self.notify(f"no {what} so far")
        self.refresh_view()

    def action_first_breach(self) -> None:
        """Jump to the first divergence."""
        self._jump(self._frames.first_breach(), "breach")

    def action_next_breach(self) -> None:
        """Jump to the next breach."""
        self._jump(self._frames.next_breach(), "further breach")

    def action_last_version(self) -> None:
        """Jump to the last change of a policy version."""
        self._jump(self._frames.last_version(), "change of the policy version")

    def action_filter(self) -> None:
        """Ask for a filter."""
        needle = self.query_one("#needle", Input)
        needle.add_class("open")
        needle.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while typing."""
        self._needle, self._cursor = event.value, 0
        self.refresh_view()

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
        self.call_after_refresh(self.refresh_view)

    def action_copy_row(self) -> None:
        """Copy the chosen verdict."""
        verdict = self._chosen()
        if verdict is not None:
            self.copy_to_clipboard(export.row_text(verdict))
            self.notify("verdict copied")

    def action_copy_command(self) -> None:
        """Copy the command that gives this view without a screen."""
        self.copy_to_clipboard(self.view.command)
        self.notify(self.view.command, title="copied")

    def action_save(self, form: str) -> None:
        """Save to the working directory under a free name."""
        view = self.view
        text = self.export_screenshot() if form == "svg" else export.as_json(view) if form == "json" else export.as_csv(view)
        try:
            self.notify(str(export.save(text, view, form, self._folder)), title="saved")
        except OSError as error:
            self.notify(f"could not save: {error.strerror or error}", severity="error")

    def action_theme(self) -> None:
        """Next theme."""
        self.theme = next_theme(self.theme, self.available_themes)
