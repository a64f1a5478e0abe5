"""What the hook did not reach in a run: so that its silence is not taken for proof."""

from __future__ import annotations

from gyrecheck.model.finding import State
from gyrecheck.model.live import HookedRun
from gyrecheck.model.shard_layout import LEDGER
from gyrecheck.verdict.ruling import Docket, count


def judge_reach(run: HookedRun, unhooked: dict[str, str], docket: Docket) -> None:
    """Enter libraries without hooks, names that a library lacks, and facts that were lost; `unhooked` says why for each library."""
    loaded = {name for event in run.of("end") for name in event.words("unhooked")}
    for name in sorted(loaded):
        reason = unhooked.get(name, "unknown to the table of names")
        _enter(docket, f"{name} was loaded and is not hooked: {reason}", "libraries_not_hooked", name)
    lacking = {(e.text("module"), e.text("version"), e.words("lacking")) for e in run.of("hooked") if e.words("lacking")}
    for module, version, names in sorted(lacking):
        _enter(docket, f"{module} {version} has no {', '.join(names)}: what they show is not seen", "names_absent", ", ".join(names))
    for problem in run.problems:
        _enter(docket, f"unreadable: {problem}", "files_unreadable", problem)
    if lost := run.total("events_lost"):
        _enter(docket, f"{count(lost)} rare facts could not be written down", "events_lost", lost)


def judge_told(run: HookedRun, docket: Docket) -> None:
    """Say which of the program's own `ledger(...)` calls could not be taken as they stand."""
    for event in run.of("total_fell"):
        term, fall = event.text("name"), f"from {count(event.number('before'))} to {count(event.number('after'))}"
        docket.skip(
            f"conservation of pid {event.pid}: ledger({term}=...) at {event.text('site')} goes {fall}, and a total only grows; what is told per batch goes without `_total`"
        )
    unknown = sorted({name for event in run.of("unknown_term") for name in event.words("names")})
    if unknown:
        docket.skip(
            f"ledger(...) terms of unknown name: {', '.join(unknown)}; known are {', '.join(LEDGER)} and the first five with `_total`"
        )


def _enter(docket: Docket, message: str, quantity: str, value: str | int) -> None:
    docket.add(
        "GYR530",
        State.BROKEN,
        message,
        quantity=quantity,
        value=value,
        hint="mark the two entries with gyrecheck.hook.sampling and gyrecheck.hook.training",
    )
