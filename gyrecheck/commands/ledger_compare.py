"""`gyrecheck ledger --compare A B`: two runs on one axis, with each run's own balance beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gyrecheck.commands.ledger_text import with_texts
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Report, Scalar, State, Table, Verdict
from gyrecheck.rulebook.thresholds import load_thresholds
from gyrecheck.stream.open_log import find_logs
from gyrecheck.verdict.compare import Pair, judge_pair, pair
from gyrecheck.verdict.compare_cadence import judge_cadences
from gyrecheck.verdict.compare_syncs import judge_sync_effect
from gyrecheck.verdict.ruling import Docket, Rules, count

if TYPE_CHECKING:
    from gyrecheck.commands.ledger_run import Request
    from gyrecheck.model.snapshot import Snapshot
    from gyrecheck.rulebook.codes import Code
    from gyrecheck.verdict.judge import Judgement


def compare_report(request: Request, codes: dict[str, Code], sides: list[tuple[Judgement, Snapshot]]) -> Report:
    """The comparison first, then what is broken in either run by itself.

    Raises:
        GyreError: the runs share no axis, or no quantity over it.
    """
    names = _names(request.paths)
    found = pair(sides[0][0].run, sides[1][0].run, names)
    if found is None:
        raise GyreError(
            f"{request.paths[0]} and {request.paths[1]} share no quantity over a common axis",
            hint="both logs need a step or update count, and at least one of loss, entropy, kl, clip fraction, reward with it",
        )
    docket = Docket(Rules(codes, load_thresholds(), request.topology, request.chosen))
    judge_cadences(sides[0][0].run, sides[1][0].run, found.cadence, names, docket)
    judge_pair(found, docket)
    judge_sync_effect(sides[0][0].run, sides[1][0].run, found, docket)
    verdicts = with_texts(tuple(docket.verdicts), find_logs(request.paths))
    own = [
        _of_run(v, name)
        for (judged, _), name in zip(sides, names, strict=True)
        for v in judged.verdicts
        if v.state is not State.HOLDS and not _undecided_left(v)
    ]
    if request.figure is not None or request.html is not None:
        _draw(request, found)
    balances = tuple(_balance(judged, name) for (judged, _), name in zip(sides, names, strict=True))
    report = Report(
        command="ledger",
        inputs=request.paths,
        topology=request.topology,
        verdicts=(*verdicts, *own),
        tables={"compare": table(found)},
        heading=((f"Two runs over {found.axis} {count(found.low)} to {count(found.high)}: A {request.paths[0]} · B {request.paths[1]}"),),
        sentences=tuple(text for text in balances if text),
        summary=_summary(docket),
        next=next((v.next for v in docket.verdicts if v.state is State.BROKEN), ""),
    )
    if request.html is not None:
        from gyrecheck.commands.ledger_plots import pair_plots
        from gyrecheck.commands.options import write_file
        from gyrecheck.report.html import render_page

        write_file(request.html, render_page(report, pair_plots(found)), force=request.force)
    return report


def _draw(request: Request, found: Pair) -> None:
    if request.figure is None:
        return
    from gyrecheck.commands.ledger_plots import pair_plots
    from gyrecheck.report.figure import draw_run

    draw_run(request.figure, pair_plots(found), force=request.force)


def _summary(docket: Docket) -> str:
    """How many differences there are, in a sentence."""
    broken = sum(v.state is State.BROKEN for v in docket.verdicts)
    levels = next((v.value for v in docket.verdicts if v.state is State.HOLDS and v.value), 0)
    if broken:
        return f"{broken} difference{'s' if broken != 1 else ''} above the thresholds, in this configuration and range."
    if levels:
        return f"{levels} difference{'s' if levels != 1 else ''} in level, none above the thresholds, in this configuration and range."
    return "No difference above the thresholds, in this configuration and range."


def _names(paths: tuple[str, ...]) -> tuple[str, str]:
    short = [Path(p).name for p in paths]
    if short[0] == short[1]:
        short = [str(Path(p)) for p in paths]
    return short[0], short[1]


def _undecided_left(verdict: Verdict) -> bool:
    return verdict.state is State.UNDECIDED and verdict.code == "GYR507"


def _of_run(verdict: Verdict, name: str) -> Verdict:
    return replace(verdict, message=f"{name}: {verdict.message}")


def _balance(judged: Judgement, name: str) -> str:
    """One run's balance in a sentence, whatever its state."""
    if not judged.balances:
        return ""
    found = judged.balances[0]
    account = found.account
    if account.sampled is None or account.taken is None:
        return ""
    dropped = account.dropped()
    rest = account.sampled.last - account.taken.last - dropped
    left = account.left.last if account.left is not None else None
    if left is not None:
        return (
            f"{name}: {count(account.sampled.last)} sampled = {count(account.taken.last)} taken + {count(dropped)} "
            f"dropped + {count(left)} left, {count(found.residual)} unaccounted."
        )
    tail = [r for _, r in found.rows[len(found.rows) // 2 :]]
    steady = (
        ", constant over the second half: in the pipeline, none lost" if len(tail) > 2 and max(tail) - min(tail) <= found.tolerance else ""
    )
    return (
        f"{name}: {count(account.sampled.last)} sampled, {count(account.taken.last)} taken, {count(dropped)} dropped, "
        f"{count(rest)} under way{steady}."
    )


def table(found: Pair) -> Table:
    """Start, end and mean of each curve in both runs."""
    rows: list[tuple[Scalar, ...]] = []
    for curve in found.curves:
        for label, values in (("A", curve.a), ("B", curve.b)):
            rows.append(
                (
                    curve.name if label == "A" else "",
                    label,
                    *(f"{v:.4g}" for v in (values[0], values[-1], sum(values) / len(values), min(values), max(values))),
                )
            )
    return Table(("quantity", "run", "first", "last", "mean", "low", "high"), tuple(rows))
