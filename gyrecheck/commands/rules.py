"""`gyrecheck rules`: every rule code, by family and by engine."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from gyrecheck.commands.options import Color, ColorWhen, Config, Force, Output, OutputFormat, Quiet, finish
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Report, Table, Topology
from gyrecheck.rulebook.codes import FAMILIES, Code, load_codes, select_codes
from gyrecheck.rulebook.project_config import load_project_config


class EngineName(str, Enum):
    """The engines a rule can run in."""

    LINT = "lint"
    LOCATE = "locate"
    HOOK = "hook"
    LEDGER = "ledger"
    HANDOFF = "handoff"
    PROBE = "probe"


def command(
    *,
    family: Annotated[list[str] | None, typer.Option("--family", help="A prefix such as GYR3, or a code.")] = None,
    engine: Annotated[list[EngineName] | None, typer.Option("--engine", help="Only rules of this engine.")] = None,
    config: Config = None,
    output_format: OutputFormat = None,
    output: Output = None,
    color: Color = ColorWhen.AUTO,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """List all rules."""
    codes = load_codes(load_project_config(config, Path.cwd()).rules_folder)
    report = listing(codes, tuple(family or ()), tuple(e.value for e in engine or ()))
    finish(report, output_format=output_format, output=output, color=color, quiet=quiet, force=force)


def listing(codes: dict[str, Code], families: tuple[str, ...], engines: tuple[str, ...]) -> Report:
    """The codes of `families` (all when empty) that run in one of `engines` (any when empty), a row each.

    Raises:
        GyreError: a family fits no code, or nothing is left.
    """
    chosen = select_codes(codes, families, (), option="--family")
    kept = [c for c in codes.values() if c.code in chosen and (not engines or set(engines) & set(c.engines))]
    if not kept:
        raise GyreError(f"no rule of {', '.join(families) or 'any family'} runs in {', '.join(engines)}", hint="gyrecheck rules lists all")
    rows = tuple((c.code, c.name, ", ".join(c.engines), *(c.severity_in(topology).value for topology in Topology), c.since) for c in kept)
    named = sorted({c.code[3] for c in kept})
    heading = tuple(f"GYR{digit}  {FAMILIES[digit]}" for digit in named)
    table = Table(("code", "name", "engines", *(topology.value for topology in Topology), "since"), rows)
    return Report(
        "rules",
        heading=heading,
        tables={"rules": table},
        summary="1 rule." if len(rows) == 1 else f"{len(rows)} rules.",
        next=f"gyrecheck explain {kept[0].code}",
    )
