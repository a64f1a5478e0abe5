"""The options of `gyrecheck lint` that compare with what was accepted before, mend, or draw."""

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


_BEFORE = "Accepted before"
_MEND = "Mend"
Baseline = Annotated[
    Path | None,
    typer.Option("--baseline", metavar="FILE", help="Findings listed here are marked and do not count.", rich_help_panel=_BEFORE),
]
WriteBaseline = Annotated[bool, typer.Option("--write-baseline", help="Write what is found now to the baseline.", rich_help_panel=_BEFORE)]
DiffBase = Annotated[
    str, typer.Option("--diff-base", metavar="REV", help="Only what the tree of this git revision does not have.", rich_help_panel=_BEFORE)
]
Fix = Annotated[bool, typer.Option("--fix", help="Make the safe fixes, then check again.", rich_help_panel=_MEND)]
Diff = Annotated[bool, typer.Option("--diff", help="Print the fixes as a patch and write nothing.", rich_help_panel=_MEND)]
UnsafeFixes = Annotated[
    bool, typer.Option("--unsafe-fixes", help="With --fix or --diff: those that may change a result, too.", rich_help_panel=_MEND)
]
Graph = Annotated[GraphForm | None, typer.Option("--graph", help="Draw the sides and what crosses between them.", rich_help_panel="Lint")]
