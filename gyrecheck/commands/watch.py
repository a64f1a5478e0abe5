"""`gyrecheck watch`: look on while a run goes; the same engine, verdicts and words as `gyrecheck ledger`. Read-only, signals nothing."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Annotated

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
    fail_level,
    use_color,
)
from gyrecheck.model.errors import GyreError

_LOOK, _ALERT, _OTHER = "Looking", "Alerts", "Other views"
Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PATH...]",
        help="Run folder, logs of one run, a pattern, or `-`; several folders are several runs. None: the newest run below here.",
    ),
]
Interval = Annotated[float, typer.Option("--interval", min=0.1, help="Seconds between two looks.", rich_help_panel=_LOOK)]
Once = Annotated[bool, typer.Option("--once", help="One picture as text, then exit.", rich_help_panel=_LOOK)]
Plain = Annotated[
    bool, typer.Option("--plain", "--no-screen", help="One status line an interval instead of a screen.", rich_help_panel=_LOOK)
]
Json = Annotated[bool, typer.Option("--json", help="Shorthand for --output-format json (with --once) or jsonl.", rich_help_panel=_LOOK)]
Ascii = Annotated[bool, typer.Option("--ascii", help="ASCII signs only.", rich_help_panel=_LOOK)]
Replay = Annotated[
    float | None, typer.Option("--replay", metavar="SPEED", min=0.01, help="Play an ended run as if live.", rich_help_panel=_LOOK)
]
Pid = Annotated[int | None, typer.Option("--pid", help="The run ends when this process does.", rich_help_panel=_LOOK)]
UntilExit = Annotated[
    int | None, typer.Option("--until-exit", metavar="PID", help="Leave when this process is gone.", rich_help_panel=_ALERT)
]
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="S", min=0.1, help="Leave after so many seconds.", rich_help_panel=_ALERT)
]
OnBreach = Annotated[
    str,
    typer.Option(
        "--on-breach", metavar="CMD", help="Run this when a verdict breaks; it gets the verdict as JSON on stdin.", rich_help_panel=_ALERT
    ),
]
HoldOff = Annotated[
    float, typer.Option("--hold-off", metavar="S", min=0, help="Seconds before the same code may alert again.", rich_help_panel=_ALERT)
]
Bell = Annotated[bool, typer.Option("--bell", help="Ring the terminal's bell when a verdict breaks.", rich_help_panel=_ALERT)]
Prometheus = Annotated[
    int | None,
    typer.Option(
        "--prometheus", metavar="PORT", min=0, max=65535, help="Serve the figures as Prometheus text on loopback.", rich_help_panel=_OTHER
    ),
]
Serve = Annotated[
    int | None,
    typer.Option("--serve", metavar="PORT", min=0, max=65535, help="The screen in a browser, loopback only.", rich_help_panel=_OTHER),
]
Host = Annotated[str, typer.Option("--host", help="Where --serve and --prometheus listen.", rich_help_panel=_OTHER)]
Format = Annotated[str, typer.Option("--format", metavar="NAME", help="Read every log as this format.", rich_help_panel="Reading")]
Map = Annotated[list[str] | None, typer.Option("--map", metavar="TERM=KEY", help="Which key gives a term.", rich_help_panel="Reading")]
MaxAge = Annotated[
    float | None,
    typer.Option("--max-age", metavar="N", help="The age limit in versions, where the log does not say.", rich_help_panel="Reading"),
]


def command(
    paths: Paths = None,
    interval: Interval = 0.5,
    once: Once = False,
    plain: Plain = False,
    json_: Json = False,
    ascii_: Ascii = False,
    replay: Replay = None,
    pid: Pid = None,
    until_exit: UntilExit = None,
    timeout: Timeout = None,
    on_breach: OnBreach = "",
    hold_off: HoldOff = 300.0,
    bell: Bell = False,
    prometheus: Prometheus = None,
    serve: Serve = None,
    host: Host = "127.0.0.1",
    format_: Format = "",
    map_: Map = None,
    max_age: MaxAge = None,
    topology: TopologyOption = None,
    select: Select = None,
    ignore: Ignore = None,
    config: Config = None,
    output_format: OutputFormat = None,
    output: Output = None,
    force: Force = False,
    color: Color = ColorWhen.AUTO,
    quiet: Quiet = False,
    fail_on: FailOnOption = None,
    exit_zero: ExitZero = False,
    undecided: Undecided = UndecidedAs.FAIL,
) -> None:
    """Follow a live run: counters, coupling, conservation, staleness, handoff health and verdicts on one screen."""
    from gyrecheck.commands.watch_look import Look, refuse_unwatchable, runs_in
    from gyrecheck.commands.watch_run import watch_lines, watch_once, watch_screen
    from gyrecheck.rulebook.codes import load_codes, select_codes
    from gyrecheck.rulebook.project_config import load_project_config
    from gyrecheck.stream.open_log import refuse_unreadable

    for option, value in (("interval", interval), ("replay", replay), ("timeout", timeout), ("hold-off", hold_off), ("max-age", max_age)):
        if value is not None and not math.isfinite(value):
            raise GyreError(f"--{option} {value}: is no finite number", hint=f"e.g. --{option} 10")
    refuse_unreadable(tuple(paths or ()))
    project = load_project_config(config, Path.cwd())
    codes = load_codes(project.rules_folder)
    declared = topology or project.topology
    targets = tuple(paths or ()) or (newest_run(Path.cwd(), quiet=quiet),)
    mapping = tuple(_pair(text) for text in map_ or ())
    look = Look(
        targets=targets,
        codes=codes,
        chosen=select_codes(codes, tuple(select or project.select), tuple(ignore or project.ignore))
        if select or ignore or project.select or project.ignore
        else None,
        format=format_,
        mapping=mapping,
        extra=project.rules_folder,
        topology=declared.value if declared is not None else "",
        max_age=max_age,
        interval=interval,
        replay=replay,
        pid=pid if pid is not None else until_exit,
        until_exit=until_exit is not None,
        timeout=timeout,
        on_breach=on_breach,
        hold_off=hold_off,
        bell=bell,
        prometheus=prometheus,
        host=host,
        ascii=ascii_ or (sys.stdout.encoding or "utf-8").lower().replace("-", "") not in {"utf8", "utf16", "utf32"},
        fail_on=fail_level(fail_on, project.fail_on),
        exit_zero=exit_zero,
        undecided=undecided,
        output=output,
        force=force,
        color=color,
        quiet=quiet,
        formats=tuple(output_format or ()) or (("json",) if json_ and once else ("jsonl",) if json_ else ()),
    )
    from gyrecheck.commands.watch_runs import runs_lines, runs_once, runs_screen

    served = "TEXTUAL_DRIVER" in os.environ  # the child of --serve draws into a pipe to the browser
    drawable = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    lines = plain or bool(look.formats) or not (drawable or served) or "-" in targets
    if once or lines:
        refuse_unwatchable(look)
    if serve is not None:
        from gyrecheck.commands.watch_serve import serve_screen

        serve_screen(look, serve, sys.argv[2:])
    elif runs_in(targets):
        if once:
            runs_once(look)
        if lines:
            runs_lines(look)
        runs_screen(look, color=use_color(color, terminal=True))
    elif once:
        watch_once(look)
    elif lines:
        watch_lines(look)
    else:
        watch_screen(look, color=use_color(color, terminal=True))


def newest_run(below: Path, *, quiet: bool) -> str:
    """The run folder below `below` that was written to last; it is said aloud which.

    Raises:
        GyreError: there is none.
    """
    found: list[tuple[float, Path]] = []
    for depth in ("*", "*/*", "*/*/*"):
        for mark in ("run.json", "*.gyre", "*.log"):
            found += [
                (file.stat().st_mtime, file.parent)
                for file in below.glob(f"{depth}/{mark}")
                if file.is_file() and ".venv" not in file.parts
            ]
    if not found:
        raise GyreError(f"{below}: no run folder below it (a folder with run.json or logs)", hint="gyrecheck watch PATH names one")
    newest = max(found, key=lambda pair: pair[0])[1]
    shown = str(newest.relative_to(below)) if newest.is_relative_to(below) else str(newest)
    if not quiet:
        typer.echo(f"watching {shown} (the newest run folder here)", err=True)
    return shown


def _pair(text: str) -> tuple[str, str]:
    term, sign, key = text.partition("=")
    if not sign or not term.strip() or not key.strip():
        raise GyreError(f"--map {text}: expected TERM=KEY", hint='for example --map "sampled_total=rollouts in"')
    return term.strip(), key.strip()
