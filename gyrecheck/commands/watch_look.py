"""What `gyrecheck watch` was asked to look at, and the ledger's report on it as it is now. Loads no option parser and no screen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from glob import has_magic
from pathlib import Path

from gyrecheck.commands.choices import ColorWhen, UndecidedAs
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Report, Severity
from gyrecheck.rulebook.codes import Code


@dataclass(frozen=True, slots=True)
class Look:
    """What the command line asked for."""

    targets: tuple[str, ...]
    codes: dict[str, Code] = field(repr=False)
    chosen: frozenset[str] | None = None
    format: str = ""
    mapping: tuple[tuple[str, str], ...] = ()
    extra: Path | None = None
    topology: str = ""
    max_age: float | None = None
    interval: float = 0.5
    replay: float | None = None
    pid: int | None = None
    until_exit: bool = False
    timeout: float | None = None
    on_breach: str = ""
    hold_off: float = 300.0
    bell: bool = False
    prometheus: int | None = None
    host: str = "127.0.0.1"
    ascii: bool = False
    fail_on: Severity = Severity.WARNING
    exit_zero: bool = False
    undecided: UndecidedAs = UndecidedAs.FAIL
    output: Path | None = None
    force: bool = False
    color: ColorWhen = ColorWhen.AUTO
    quiet: bool = False
    formats: tuple[str, ...] = ()


def runs_in(targets: tuple[str, ...]) -> tuple[str, ...]:
    """The runs that the paths mean: several folders are several runs, files given together are one (and this is empty)."""
    return targets if len(targets) > 1 and all(Path(target).is_dir() for target in targets) else ()


def refuse_unwatchable(look: Look) -> None:
    """Without a screen nobody sees what is waited for: each file that is named must be there, and be a text log.

    Raises:
        GyreError: the ledger's sentence on a path that does not exist, cannot be read, or is binary.
    """
    from gyrecheck.commands.ledger_refusals import is_binary, not_text
    from gyrecheck.stream.open_log import comes_once, find_logs

    for target in look.targets:
        if target == "-" or Path(target).is_dir() or (has_magic(target) and not Path(target).exists()):
            continue
        for file in find_logs((target,)):
            if comes_once(file):
                raise GyreError(f"{target}: is a pipe, which is followed through standard input", hint="PROGRAM | gyrecheck watch -")
            if is_binary(file):
                raise not_text(file)


def report_now(look: Look) -> Report:
    """The ledger's report on what is there now: the very same function that `gyrecheck ledger` calls."""
    from gyrecheck.commands.ledger_run import Request, ledger_of

    if len(look.targets) == 1 and any(Path(look.targets[0]).glob("*.shard")):
        from gyrecheck.commands.run_report import recorded

        found = recorded("watch", Path(look.targets[0]), topology=look.topology, chosen=look.chosen, extra=look.extra)
        if found is not None:
            return found
    request = Request(
        look.targets,
        format=look.format,
        mapping=look.mapping,
        max_age=look.max_age,
        topology=look.topology,
        chosen=look.chosen,
        extra=look.extra,
    )
    return replace(ledger_of(request, look.codes), command="watch")
