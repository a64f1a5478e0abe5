"""One bordered panel: a pure drawing function and the size it has; it redraws only what changed."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text
from textual.events import Resize
from textual.widgets import Static

from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.view import View

Draw = Callable[[View, Pen, int, int], Text]


class Panel(Static):
    """Shows what `draw(view, pen, width, height)` returns; never markup, so brackets in log lines stay."""

    can_focus = True

    def __init__(self, title: str, draw: Draw, pen: Pen, *, name: str) -> None:
        super().__init__("", id=name, markup=False, classes="panel")
        self.border_title = title
        self._draw = draw
        self._pen = pen
        self._view = View()
        self._shown = Text("\0")

    def show(self, view: View, draw: Draw | None = None, title: str | None = None) -> None:
        """Draw another view, and with `draw` another content."""
        self._view = view
        self._draw = draw or self._draw
        if title is not None:
            self.border_title = title
        self.redraw()

    def redraw(self) -> None:
        """Draw again at the present size; nothing happens when the picture is the same."""
        width, height = self.content_size
        if width <= 0 or height <= 0:
            return
        text = self._draw(self._view, self._pen, width, height)
        text.no_wrap, text.overflow = True, "crop"
        if text != self._shown:
            self._shown = text
            self.update(text)

    def on_resize(self, event: Resize) -> None:
        """The room has changed."""
        del event
        self.redraw()
