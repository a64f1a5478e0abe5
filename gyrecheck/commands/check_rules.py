"""`gyrecheck check-rules [DIR]`: load every rule file and run its samples; exit 2 with file and sample when one fails."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from gyrecheck.commands.options import Quiet, Verbose, write_stdout
from gyrecheck.commands.rule_proofs import failure, format_problems, incomplete, load_all, proofs
from gyrecheck.commands.streams import write_stderr
from gyrecheck.model.errors import RuleError
from gyrecheck.rulebook.codes import Code
from gyrecheck.rulebook.locate_rules import KINDS, rule_files, stray_files
from gyrecheck.rulebook.project_config import load_project_config
from gyrecheck.rulebook.toml_table import load_table


class EngineName(str, Enum):
    """The engines whose samples can be run alone."""

    LINT = "lint"
    LOCATE = "locate"
    HOOK = "hook"
    LEDGER = "ledger"
    HANDOFF = "handoff"
    PROBE = "probe"


def command(
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="A rules folder of your own; when absent, the project's `rules`, else those of gyrecheck."),
    ] = None,
    *,
    engine: Annotated[list[EngineName] | None, typer.Option("--engine", help="Only samples of this engine.")] = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    """Load every rule file and run its samples."""
    directory = directory or load_project_config(None, Path.cwd()).rules_folder
    problems = list(stray_files(directory)) if directory is not None else []
    problems += dict.fromkeys(error.message for error in load_all(directory))  # one file may be read by several loaders
    if problems:
        _fail(problems)
    own = tuple(path for path in rule_files("codes", directory) if directory is None or path.is_relative_to(directory))
    chosen = {e.value for e in engine or ()}
    ran = 0
    for path in own:
        lack = incomplete(load_table(path, Code))
        problems += [f"{path}: {lack}"] if lack else []
    for proof in proofs(own):
        if chosen and proof.sample.engine not in chosen:
            continue
        ran += 1
        wrong = failure(proof, directory)
        if wrong:
            problems.append(f"{proof.path}: sample {proof.number} ({proof.sample.expect}) {wrong}")
        if verbose:
            write_stdout(f"{'FAIL' if wrong else 'ok  '}  {proof.label}\n")
    formats = 0
    if not chosen or "ledger" in chosen:
        formats, wrong_formats = format_problems(directory)
        problems += wrong_formats
    if problems:
        _fail(problems)
    if not quiet:
        counts = {kind: sum(directory is None or p.is_relative_to(directory) for p in rule_files(kind, directory)) for kind in KINDS}
        listed = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in counts.items() if count)
        also = f", {formats} log formats theirs" if formats else ""
        write_stdout(f"All rule files load ({listed or 'none'}); {ran} samples prove their rules{also}.\n")


def _fail(problems: list[str]) -> None:
    """Every failure on its own line; the last one ends the command."""
    for text in problems[:-1]:
        write_stderr(f"error: {text}")
    raise RuleError(problems[-1], hint="gyrecheck check-rules --verbose names every sample")
