"""Promises of the pictures: the same view gives the same signs and the same colours, at each size, in each state and theme."""

import re
import sys
from pathlib import Path

import pytest
from textual.app import App

sys.path.insert(0, str(Path(__file__).parent))
from looks import SIZES, look, looks, rows, styles
from pictures import BROKEN, HEALTHY, PICTURES

from gyrecheck.screen.glyphs import Pen
from gyrecheck.screen.themes import THEMES

GOLDEN = Path(__file__).parent / "golden"
STATES = [*PICTURES, "paused"]


def golden(request, name, text):
    """The recorded text; `--update-golden` is a deliberate act of writing the file anew."""
    path = GOLDEN / name
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")


def both(app):
    return "\n".join(rows(app)) + "\n", styles(app)


@pytest.mark.parametrize("color", [True, False], ids=["colour", "mono"])
@pytest.mark.parametrize("state", STATES)
def test_the_picture_is_the_golden_one(state, color, request, monkeypatch):
    """Signs and styles of every state at every size of one terminal; with NO_COLOR the signs are the same, and all is grey."""
    if not color:
        monkeypatch.setenv("NO_COLOR", "1")
    view, keys = (HEALTHY, ("p",)) if state == "paused" else (PICTURES[state], ())
    seen = looks(view, SIZES, *keys, pen=Pen(color=color), of=both)
    for size, (text, style) in zip(SIZES, seen, strict=True):
        name = f"{state}-{size[0]}x{size[1]}"
        assert text == golden(request, f"{name}.txt", text), size
        if color:
            assert style == golden(request, f"{name}.color.txt", style), size
        else:
            assert all(red == green == blue for red, green, blue in re.findall(r"#(..)(..)(..)", style)), style


@pytest.mark.parametrize("theme", [t for t in THEMES if t in App().available_themes and t != "textual-dark"])
def test_every_theme_has_its_own_picture(theme, request):
    """The same signs in other colours, for each theme that the key steps through."""
    text, color = look(BROKEN, (100, 30), theme=theme, of=both)
    assert color == golden(request, f"broken-100x30.{theme}.color.txt", color)
    assert text == (GOLDEN / "broken-100x30.txt").read_text(encoding="utf-8")


def test_states_are_told_apart_without_colour():
    """Seven states, seven different pictures in plain weight: nothing is said by colour alone."""
    seen = [(GOLDEN / f"{state}-140x40.txt").read_text(encoding="utf-8") for state in STATES]
    assert len(set(seen)) == len(STATES) == 7
