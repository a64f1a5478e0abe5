"""The options of `gyrecheck lint`: what to read, what to show, what was accepted before, what to mend, what to draw."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


class GraphForm(str, Enum):
    """What `--graph` draws in."""

    DOT = "dot"
    MERMAID = "mermaid"
    HTML = "html"


class OnOff(str, Enum):
    """A switch that is written out."""

    ON = "on"
    OFF = "off"


_CODE = "Lint"
Paths = Annotated[
    list[Path] | None, typer.Argument(help="Files and folders; `-` reads standard input.", metavar="[PATH]...", show_default=False)
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="GLOB", help="Files or folders to leave out.", rich_help_panel=_CODE)
]
ExtendSelect = Annotated[
    list[str] | None, typer.Option("--extend-select", help="Codes to check beside those selected.", rich_help_panel=_CODE)
]
Statistics = Annotated[bool, typer.Option("--statistics", help="Counts by code, call resolution, time by stage.", rich_help_panel=_CODE)]
Duties = Annotated[bool, typer.Option("--duties", help="Every function with an effect, its duty, and why.", rich_help_panel=_CODE)]
Hints = Annotated[OnOff, typer.Option("--hints", help="Show what is known by name only.", rich_help_panel=_CODE)]
ShowSuppressed = Annotated[
    bool, typer.Option("--show-suppressed", help="List suppressed findings with their reasons.", rich_help_panel=_CODE)
]
StdinFilename = Annotated[
    str, typer.Option("--stdin-filename", metavar="PATH", help="The name that standard input goes by.", rich_help_panel=_CODE)
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Read nothing from the cache and keep nothing.", rich_help_panel=_CODE)]
CacheDir = Annotated[
    Path | None, typer.Option("--cache-dir", envvar="GYRECHECK_CACHE_DIR", help="Where facts are kept.", rich_help_panel=_CODE)
]
Jobs = Annotated[
    int, typer.Option("--jobs", envvar="GYRECHECK_JOBS", min=0, help="Processes for reading; 0 decides by size.", rich_help_panel=_CODE)
]
_BEFORE = "Accepted before"
_MEND = "Mend"
Baseline = Annotated[
    Path | None,
    typer.Option("--baseline", metavar="FILE", help="Findings listed here are marked and do not count.", rich_help_panel=_BEFORE),
]
WriteBaseline = Annotated[
    bool,
    typer.Option("--write-baseline", help="Write what is found now to --baseline FILE, else gyre-baseline.json.", rich_help_panel=_BEFORE),
]
DiffBase = Annotated[
    str, typer.Option("--diff-base", metavar="REV", help="Only what the tree of this git revision does not have.", rich_help_panel=_BEFORE)
]
Fix = Annotated[bool, typer.Option("--fix", help="Make the safe fixes, then check again.", rich_help_panel=_MEND)]
Diff = Annotated[bool, typer.Option("--diff", help="Print the fixes as a patch and write nothing.", rich_help_panel=_MEND)]
UnsafeFixes = Annotated[
    bool, typer.Option("--unsafe-fixes", help="With --fix or --diff: those that may change a result, too.", rich_help_panel=_MEND)
]
Graph = Annotated[GraphForm | None, typer.Option("--graph", help="Draw the sides and what crosses between them.", rich_help_panel=_CODE)]
