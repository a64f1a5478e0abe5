"""`gyrecheck vocab [NAME…]`: which role has this symbol, and which file says so."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gyrecheck.commands.options import Color, ColorWhen, Config, Force, Output, OutputFormat, Quiet, finish
from gyrecheck.model.errors import GyreError, did_you_mean
from gyrecheck.model.finding import Report, Table
from gyrecheck.rulebook.project_config import load_project_config
from gyrecheck.rulebook.symbol_lookup import Saying, Vocabulary, load_vocabulary


def command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Qualified symbols, bare names or variables; none lists the files.")
    ] = None,
    *,
    config: Config = None,
    output_format: OutputFormat = None,
    output: Output = None,
    color: Color = ColorWhen.AUTO,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Look up a symbol's role."""
    vocabulary = load_vocabulary(load_project_config(config, Path.cwd()).rules_folder)
    report = look_up(vocabulary, tuple(names)) if names else overview(vocabulary)
    finish(report, output_format=output_format, output=output, color=color, quiet=quiet, force=force)


def look_up(vocabulary: Vocabulary, names: tuple[str, ...]) -> Report:
    """One row for each thing that a file says of each name.

    Raises:
        GyreError: no file says anything of any of the names.
    """
    rows: list[Saying] = []
    unknown: list[str] = []
    for name in names:
        said = vocabulary.sayings(name)
        rows += said
        if not said:
            near = did_you_mean(name, vocabulary.known())
            unknown.append(f"`{name}`: no vocabulary file names it" + (f"; {near}" if near else ""))
    if not rows:
        raise GyreError("; ".join(unknown), hint="add it to rules/vocabulary, or to the folder that `rules` in the configuration names")
    cells = tuple((s.name, s.how, s.means or "-", s.side or "-", s.confidence, s.file) for s in rows)
    table = Table(("name", "read as", "role or kind", "side", "confidence", "file"), cells)
    return Report("vocab", inputs=names, tables={"sayings": table}, not_judged=tuple(unknown), next="gyrecheck explain vocabulary")


def overview(vocabulary: Vocabulary) -> Report:
    """One row for each vocabulary file."""
    rows = tuple(
        (f.framework, len(f.symbols), len(f.types), len(f.drivers), f.summary, Path(path).name) for path, f in vocabulary.files.items()
    )
    table = Table(("framework", "symbols", "types", "drivers", "what", "file"), rows)
    summary = f"{len(rows)} vocabulary files, {sum(len(f.types) for f in vocabulary.files.values())} types."
    return Report("vocab", tables={"files": table}, summary=summary, next="gyrecheck vocab env.step torch.optim.Adam")
