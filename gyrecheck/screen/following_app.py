"""What the screen of one run and that of several share: one reading thread, pause, history, themes. It never writes into a run folder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from textual import work
from textual.app import App, SystemCommand
from textual.events import Resize
from textual.message import Message
from textual.screen import Screen

from gyrecheck.screen.export import save
from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.history import Frames
from gyrecheck.screen.keys import Key, shown
from gyrecheck.screen.panel import Panel
from gyrecheck.screen.themes import next_theme
from gyrecheck.screen.view import View

Picture = TypeVar("Picture")


class Fresh(Message):
    """A new picture is there. Only the newest in the queue counts."""

    def __init__(self, picture: object) -> None:
        super().__init__()
        self.picture = picture

    def can_replace(self, message: Message) -> bool:
        """A newer picture takes the place of an older one that was not shown yet."""
        return isinstance(message, Fresh)


class FollowingApp(App[None], Generic[Picture]):
    """A screen over pictures that a thread brings; `refresh_picture` draws the one that is shown."""

    TITLE = "gyrecheck watch"
    KEYS: ClassVar[tuple[Key, ...]] = ()
    """Every key with what it does; the palette of commands offers the same."""

    def __init__(
        self,
        poll: Callable[[], Picture],
        frames: Frames[Picture],
        *,
        interval: float,
        pen: Pen | None,
        timeout: float | None,
        folder: Path | None,
    ) -> None:
        super().__init__()
        self._poll, self._interval, self._timeout = poll, interval, timeout
        self._pen = pen or Pen()
        self._folder = folder or Path.cwd()
        self._frames = frames
        self._paused: tuple[Picture, Picture] | None = None
        """While paused: the picture that was shown, and the newest one of that moment."""
        self._stop = threading.Event()

    def on_mount(self) -> None:
        """Start the one reading thread."""
        if self._pen.ascii:
            for panel in self.query(Panel):
                panel.styles.border = ("ascii", "white")
                panel.styles.text_overflow = "clip"
        if self._timeout is not None:
            self.set_timer(self._timeout, self.action_leave)
        self.read_on()

    @work(thread=True, exclusive=True, group="feed")
    def read_on(self) -> None:
        """Poll until the app leaves; a feed never raises, it reports."""
        said = ""
        while not self._stop.is_set():
            try:
                self.post_message(Fresh(self._poll()))
                said = ""
            except Exception as error:  # noqa: BLE001 - a picture less is better than a dead screen; what happened is said, once
                text = f"could not read: {type(error).__name__}: {error}"
                if text != said and not self._stop.is_set():
                    self.call_from_thread(self.notify, text, severity="error", timeout=30)
                said = text
            self._stop.wait(self._interval)

    def on_fresh(self, message: Fresh) -> None:
        """Keep the picture; show it unless paused or scrubbed back."""
        if self._stop.is_set():
            return
        picture: Picture = message.picture  # type: ignore[assignment]  # what `poll` gave
        self._frames.add(picture)
        self.refresh_all()
        self.saw(picture)

    def saw(self, picture: Picture) -> None:
        """What else a new picture brings about."""

    @property
    def shown(self) -> Picture:
        """The picture on the screen."""
        return self._frames.shown if self._paused is None else self._paused[0]

    @property
    def whole(self) -> Picture:
        """The picture with the histories of the whole run, wherever the cursor is."""
        return self._frames.newest if self._paused is None else self._paused[1]

    @property
    def word(self) -> str:
        """What the title says of the picture where it is not the newest: paused, history, or nothing."""
        return "paused" if self._paused is not None else "" if self._frames.live else "history"

    def refresh_all(self) -> None:
        """Draw everything that is visible; nothing before the screen stands or after it is gone."""
        if not self._stop.is_set() and self.query("#title"):
            self.refresh_picture()

    def refresh_picture(self) -> None:
        """Draw the picture that is shown."""
        raise NotImplementedError

    def on_resize(self, event: Resize) -> None:
        """Another size, another layout."""
        del event
        self.call_after_refresh(self.refresh_all)

    def on_unmount(self) -> None:
        """However the app ends, the reading thread ends with it."""
        self._stop.set()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette's commands: every key's action, by what the help says of it."""
        del screen
        for key in self.KEYS:
            yield SystemCommand(key.what, f"key {shown(key)}", partial(self.run_action, key.action))

    # actions, one a key

    def action_leave(self) -> None:
        """Stop reading and leave."""
        self._stop.set()
        self.exit()

    def action_pause(self) -> None:
        """Freeze the picture, never the counting."""
        self._paused = None if self._paused is not None else (self.shown, self._frames.newest)
        self.refresh_all()

    def action_scrub(self, by: int) -> None:
        """Step through the history."""
        self._paused = None
        self._frames.step(by)
        self.refresh_all()

    def action_begin(self) -> None:
        """Show the first picture."""
        self._paused = None
        self._frames.put(0)
        self.refresh_all()

    def action_live(self) -> None:
        """Show the newest picture again."""
        self._paused, self._frames.at = None, None
        self.refresh_all()

    def action_first_breach(self) -> None:
        """Jump to the first divergence."""
        self._jump(self._frames.first_breach(), "breach")

    def action_next_breach(self) -> None:
        """Jump to the next breach."""
        self._jump(self._frames.next_breach(), "further breach")

    def action_last_version(self) -> None:
        """Jump to the last change of a policy version."""
        self._jump(self._frames.last_version(), "change of the policy version")

    def _jump(self, found: bool, what: str) -> None:
        self._paused = None
        if not found:
            self.notify(f"no {what} so far")
        self.refresh_all()

    def action_theme(self) -> None:
        """Next theme."""
        self.theme = next_theme(self.theme, self.available_themes)

    def save_view(self, text: str, view: View, form: str) -> None:
        """Save to the working directory under a free name, and say which, or why not."""
        try:
            self.notify(str(save(text, view, form, self._folder)), title="saved")
        except OSError as error:
            self.notify(f"could not save: {error.strerror or error}", severity="error")


def lean(view: View) -> View:
    """A picture without its histories, which the newest picture holds as a whole."""
    return replace(view, series=())
