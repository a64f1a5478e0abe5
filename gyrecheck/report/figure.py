"""Curves of a run as a figure: one panel a question, one shared axis, drawn by matplotlib without a display."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from gyrecheck.model.errors import GyreError
from gyrecheck.model.whole_file import exists_as_file, write_whole

PALETTE = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777")
"""Seven hues that stay apart for colour-blind readers (Paul Tol's bright set)."""


@dataclass(frozen=True, slots=True)
class Line:
    """One curve; `stacked` ones are filled upon each other in their order."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """One panel: its curves, and where something was found."""

    title: str
    y_label: str
    x_label: str
    lines: tuple[Line, ...]
    marks: tuple[tuple[float, str], ...] = ()


def draw_run(path: Path, plots: tuple[Plot, ...], *, force: bool = False) -> None:
    """Write the panels below each other to a `.png`, `.svg` or `.pdf` file, whole or not at all.

    Raises:
        GyreError: another suffix, an existing file without `force`, nothing to draw, or the file cannot be written.
    """
    kind = path.suffix.lower().lstrip(".")
    if kind not in {"png", "svg", "pdf"}:
        raise GyreError(f"--figure {path}: expected a name that ends in .png, .svg or .pdf", hint="e.g. --figure run.svg")
    if exists_as_file(path) and not force:
        raise GyreError(f"{path}: exists already", hint="--force overwrites it")
    if not plots:
        raise GyreError(
            f"--figure {path}: the log holds no series to draw", hint="counters or metrics over at least three lines are needed"
        )
    try:
        write_whole(path, render_image(plots, kind))
    except OSError as error:
        raise GyreError(f"{path}: cannot be written ({error.strerror or error})") from error


def render_image(plots: tuple[Plot, ...], kind: str, *, width: float = 9.0) -> bytes:
    """The panels as the bytes of an image."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "gyrecheck"
    mpl.rcParams["svg.fonttype"] = "none"
    figure = Figure(figsize=(width, 2.4 * len(plots) + 0.4), layout="constrained")
    axes = figure.subplots(len(plots), 1, sharex=len({p.x_label for p in plots}) == 1, squeeze=False)
    for plot, axis in zip(plots, axes[:, 0], strict=True):
        _panel(axis, plot)
    axes[-1, 0].set_xlabel(plots[-1].x_label)
    buffer = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {}
    figure.savefig(buffer, format=kind, dpi=120, metadata=metadata)
    return buffer.getvalue()


def _panel(axis: object, plot: Plot) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axis, Axes)  # noqa: S101 - matplotlib's stubs do not say what subplots hold
    stacked = [line for line in plot.lines if line.stacked]
    if stacked:
        axis.stackplot(stacked[0].x, *(s.y for s in stacked), labels=[s.label for s in stacked], colors=PALETTE[: len(stacked)], alpha=0.55)
    for at, line in enumerate(line for line in plot.lines if not line.stacked):
        colour = "black" if stacked else PALETTE[at % len(PALETTE)]
        axis.plot(line.x, line.y, label=line.label, color=colour, linewidth=1.4)
    for x, label in plot.marks:
        axis.axvline(x, color="#ee6677", linestyle="--", linewidth=1.0)
        axis.annotate(label, (x, 0.97), xycoords=("data", "axes fraction"), fontsize=8, rotation=90, va="top", ha="right", color="#aa3344")
    axis.set_title(plot.title, fontsize=10, loc="left")
    axis.set_ylabel(plot.y_label, fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)
    axis.legend(fontsize=8, frameon=False, loc="upper left")
