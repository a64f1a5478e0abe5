"""How tests look at the screen: a feed that stands still, the signs on the screen, and their styles as runs."""

import asyncio

from gyrecheck.screen.app import WatchApp

SIZES = ((80, 24), (100, 30), (140, 40), (200, 60))


class Still:
    """A feed that always gives the same picture, or the given ones in turn."""

    def __init__(self, *views):
        self.views = list(views)
        self.closed = False

    def poll(self):
        return self.views.pop(0) if len(self.views) > 1 else self.views[0]

    def close(self):
        self.closed = True


def rows(app) -> list[str]:
    return ["".join(part.text for part in strip).rstrip() for strip in app.screen._compositor.render_strips()]


def styles(app) -> str:
    """A legend of the styles in order of appearance, then a row a line: `4a 12b`, four cells in style a, twelve in b."""
    letters: dict[str, str] = {}
    lines = []
    for strip in app.screen._compositor.render_strips():
        runs: list[list] = []
        for part in strip:
            style = str(part.style) if part.style else "none"
            letter = letters.setdefault(style, chr(ord("a") + len(letters)))
            if runs and runs[-1][1] == letter:
                runs[-1][0] += part.cell_length
            else:
                runs.append([part.cell_length, letter])
        lines.append(" ".join(f"{count}{letter}" for count, letter in runs))
    return "\n".join([*(f"{letter} {style}" for style, letter in letters.items()), "", *lines]) + "\n"


async def settled(pilot) -> None:
    for _ in range(50):
        await pilot.pause(0.02)
        if pilot.app._frames.views:
            break
    await pilot.pause()


def look(view, size, *keys, pen=None, theme="", of=rows):
    """What `of` sees of the screen once the keys were pressed."""
    return looks(view, (size,), *keys, pen=pen, theme=theme, of=of)[0]


def looks(view, sizes, *keys, pen=None, theme="", of=rows):
    """The same at several sizes, one after the other in one terminal."""

    async def go():
        app = WatchApp(Still(view), interval=0.05, pen=pen)
        if theme:
            app.theme = theme
        seen = []
        async with app.run_test(size=sizes[0]) as pilot:
            await settled(pilot)
            for key in keys:
                await pilot.press(key)
            for size in sizes:
                if size != sizes[0]:
                    await pilot.resize_terminal(*size)
                await pilot.pause()
                seen.append(of(app))
        return seen

    return asyncio.run(go())


def text_of(view, size, *keys, pen=None) -> str:
    return "\n".join(look(view, size, *keys, pen=pen)) + "\n"
