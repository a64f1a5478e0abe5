"""`gyrecheck ledger`: balance a run's logs, name the line at which they first stop adding up, and say why nothing trains."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gyrecheck.commands.options import (
    Color,
    ColorWhen,
    Config,
    ExitZero,
    FailOnOption,
    Force,
    Ignore,
    Output,
    OutputFormat,
    Quiet,
    Select,
    TopologyOption,
    Undecided,
    UndecidedAs,
    Verbose,
    fail_level,
    finish,
)  # fmt: skip
from gyrecheck.model.errors import GyreError, did_you_mean

if TYPE_CHECKING:
    from gyrecheck.commands.ledger_run import Request
    from gyrecheck.model.events import Unit
    from gyrecheck.model.finding import Report, Verdict
    from gyrecheck.rulebook.codes import Sample

_READ, _SHOW = "Reading", "Showing"
Logs = Annotated[
    list[str] | None,
    typer.Argument(metavar="LOG...", help="Log files, folders, run folders; `-` reads standard input.", show_default=False),
]
Format = Annotated[str, typer.Option("--format", metavar="NAME", help="Read every log as this format.", rich_help_panel=_READ)]
Map = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="TERM=KEY", help='Which key gives a term, e.g. "sampled_total=rollouts in".', rich_help_panel=_READ),
]
UnitOption = Annotated[
    str,
    typer.Option(
        "--unit",
        metavar="UNIT",
        help="What numbers without a unit count: trajectory, group, row, step, token, batch.",
        rich_help_panel=_READ,
    ),
]
Left = Annotated[
    float | None,
    typer.Option("--left", metavar="N", min=0, help="What was left in the buffer, where the log does not say.", rich_help_panel=_READ),
]
MaxAge = Annotated[
    str, typer.Option("--max-age", metavar="N[v|s|steps]", help="The age limit, where the log does not say.", rich_help_panel=_READ)
]
Since = Annotated[
    str, typer.Option("--since", metavar="TIME", help="Only from this time on: 14:03:00, an ISO time, or seconds.", rich_help_panel=_READ)
]
Until = Annotated[str, typer.Option("--until", metavar="TIME", help="Only up to this time.", rich_help_panel=_READ)]
Explain = Annotated[bool, typer.Option("--explain", help="Show how each key was understood.", rich_help_panel=_SHOW)]
PerStep = Annotated[bool, typer.Option("--per-step", help="The balance line by line.", rich_help_panel=_SHOW)]
Compare = Annotated[bool, typer.Option("--compare", help="Set two runs side by side on one axis.", rich_help_panel=_SHOW)]
Figure = Annotated[Path | None, typer.Option("--figure", metavar="PATH", help="Draw the run: .png, .svg or .pdf.", rich_help_panel=_SHOW)]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="PATH", help="One self-contained page with the same content.", rich_help_panel=_SHOW)
]
Columns = Annotated[
    Path | None,
    typer.Option("--columns", metavar="PATH", help="All that was read, one value a row: .csv or .parquet.", rich_help_panel=_SHOW),
]
Follow = Annotated[bool, typer.Option("--follow", hidden=True)]


def command(
    logs: Logs = None,
    format_: Format = "",
    map_: Map = None,
    unit: UnitOption = "",
    left: Left = None,
    max_age: MaxAge = "",
    since: Since = "",
    until: Until = "",
    explain: Explain = False,
    per_step: PerStep = False,
    compare: Compare = False,
    figure: Figure = None,
    html: Html = None,
    columns: Columns = None,
    follow: Follow = False,
    topology: TopologyOption = None,
    select: Select = None,
    ignore: Ignore = None,
    config: Config = None,
    output_format: OutputFormat = None,
    output: Output = None,
    force: Force = False,
    color: Color = ColorWhen.AUTO,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    fail_on: FailOnOption = None,
    exit_zero: ExitZero = False,
    undecided: Undecided = UndecidedAs.FAIL,
) -> None:
    """Balance sampled, taken, dropped and left; name the line where they part; say why nothing trains."""
    given = tuple(logs or ())
    if follow:
        raise GyreError(
            "--follow: the ledger judges what is there and ends",
            hint=(f"gyrecheck watch {' '.join(given) or 'PATH'} looks on while it runs"),
        )
    if not given:
        raise GyreError("no log was given", hint="gyrecheck ledger train.log, a folder with logs, or - for standard input")
    from gyrecheck.commands.ledger_run import Request, compared, ledger_of
    from gyrecheck.rulebook.codes import load_codes, select_codes
    from gyrecheck.rulebook.project_config import load_project_config
    from gyrecheck.stream.open_log import refuse_unreadable

    refuse_unreadable(given)
    if left is not None and not math.isfinite(left):
        raise GyreError(f"--left {left}: is no finite number", hint="e.g. --left 4000")
    project = load_project_config(config, Path.cwd())
    codes = load_codes(project.rules_folder)
    chosen = (
        select_codes(codes, tuple(select or project.select), tuple(ignore or project.ignore))
        if select or ignore or project.select or project.ignore
        else None
    )
    declared = topology or project.topology
    age, age_unit = _age(max_age or str(project.max_age or ""))
    request = Request(
        paths=given, format=format_, mapping=tuple(_mapping(text) for text in map_ or ()), unit=_unit(unit), left=left, max_age=age,
        age_unit=age_unit, since=_time(since, "--since"),
        until=_time(until, "--until"), topology=declared.value if declared else "",
        chosen=chosen, extra=project.rules_folder, explain=explain, per_step=per_step, quiet=quiet, verbose=verbose,
        figure=figure, html=html, columns=columns, force=force,
    )  # fmt: skip
    report = compared(request, codes) if compare else _hooked(request) or ledger_of(request, codes)
    finish(
        report, output_format=output_format, output=output, force=force, color=color, quiet=quiet,
        fail_on=fail_level(fail_on, project.fail_on), exit_zero=exit_zero, undecided=undecided,
    )  # fmt: skip


def _hooked(request: Request) -> Report | None:
    """The report on a folder that `gyrecheck run --record` left; None for anything else."""
    if len(request.paths) != 1 or not any(Path(request.paths[0]).glob("*.shard")):
        return None
    from gyrecheck.commands.run_report import recorded

    return recorded("ledger", Path(request.paths[0]), topology=request.topology, chosen=request.chosen, extra=request.extra)


def prove(sample: Sample) -> tuple[tuple[str, int], ...]:
    """The codes that a rule's sample shows, each with the lines it names; a note that holds is said too, so it counts.

    With `args = ["--compare"]` the sample is two logs, parted by a line `--- other run`.
    """
    from gyrecheck.commands.ledger_run import judge_text
    from gyrecheck.model.finding import Severity, State
    from gyrecheck.rulebook.codes import load_codes

    topology = sample.topology.value if sample.topology else ""
    if "--compare" in sample.args:
        verdicts = _compared_sample(sample.text)
    else:
        verdicts = judge_text(sample.text, load_codes(), topology=topology, name=sample.file or "run.log").verdicts
    found: set[tuple[str, int]] = set()
    for verdict in verdicts:
        if verdict.state is State.BROKEN or (verdict.state is State.HOLDS and verdict.severity is Severity.NOTE):
            found.add((verdict.code, verdict.first.line if verdict.first else 0))
            found.update((verdict.code, evidence.line) for evidence in verdict.evidence)
    return tuple(sorted(found))


def _compared_sample(text: str) -> tuple[Verdict, ...]:
    import tempfile

    from gyrecheck.commands.ledger_run import Request, compared
    from gyrecheck.rulebook.codes import load_codes

    with tempfile.TemporaryDirectory() as folder:
        paths = tuple(f"{folder}/{name}.log" for name in "ab")
        for path, part in zip(paths, text.split("--- other run\n"), strict=True):
            Path(path).write_text(part, encoding="utf-8")
        return compared(Request(paths), load_codes()).verdicts


def _mapping(text: str) -> tuple[str, str]:
    term, equals, key = text.partition("=")
    if not equals or not term.strip() or not key.strip():
        raise GyreError(f"--map {text}: expected TERM=KEY", hint=('e.g. --map sampled_total=generated, or --map "taken=to trainer"'))
    return term.strip(), key.strip().strip("'\"")


def _unit(text: str) -> Unit | None:
    from gyrecheck.model.events import Unit

    if not text:
        return None
    try:
        return Unit(text.lower().rstrip("s"))
    except ValueError as error:
        names = [u.value for u in Unit]
        raise GyreError(f"--unit {text}: is no unit", hint=did_you_mean(text, names) or "units: " + ", ".join(names)) from error


def _age(text: str) -> tuple[float | None, str]:
    if not text:
        return None, "version"
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(v|versions?|s|seconds?|steps?)?", text.strip())
    if parts is None:
        raise GyreError(
            f"--max-age {text}: expected a number with v, s or steps", hint=("e.g. --max-age 3v, --max-age 120s, --max-age 4096steps")
        )
    word = parts[2] or "v"
    return float(parts[1]), "version" if word.startswith("v") else "step" if word.startswith("step") else "second"


def _time(text: str, option: str) -> float | None:
    if not text:
        return None
    from gyrecheck.stream.strip import undress

    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    found = undress((text if ":" in text[:9] or "T" in text or " " in text else f"{text} 00:00:00").encode() + b" x").time
    if found is None:
        raise GyreError(f"{option} {text}: is no time", hint="e.g. 14:03:00, 2026-01-31T14:03:00Z, or seconds since the epoch")
    return found
