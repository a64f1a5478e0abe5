"""A ratio judgement as findings, one verdict and a table; nothing is judged here.

Imports numpy through `replay_ratio`: import this module inside the function that calls it.
"""

from __future__ import annotations

from collections.abc import Mapping

from gyrecheck.model.finding import Finding, Severity, State, Table, Verdict, fingerprint
from gyrecheck.rulebook.codes import Code
from gyrecheck.verdict.replay_columns import ReplayColumns
from gyrecheck.verdict.replay_ratio import RatioJudgement, figures


def ratio_findings(
    judged: RatioJudgement,
    codes: Mapping[str, Code],
    severity: Mapping[str, Severity],
    *,
    columns: ReplayColumns,
    field: str = "",
) -> tuple[Finding, ...]:
    """The faults as findings, each in the first file concerned. `severity`: each code at hand; `off` ones are left out."""
    found = []
    for fault in judged.faults:
        level = severity[fault.code]
        if level is Severity.OFF:
            continue
        if not fault.grave and level is Severity.ERROR:
            level = Severity.WARNING
        path, records, more = columns.places(fault.records)
        found.append(
            Finding(
                code=fault.code,
                name=codes[fault.code].name,
                severity=level,
                message=fault.message + (f" (and in {more} more files)" if more else ""),
                path=path,
                line=records[0] if records else 0,
                hint=fault.hint,
                records=record_ranges(records),
                field=field,
                share=fault.share,
                side=fault.side,
                fingerprint=fingerprint(fault.code, path, field, fault.pattern),
            )
        )
    return tuple(found)


def ratio_verdict(judged: RatioJudgement, codes: Mapping[str, Code], severity: Mapping[str, Severity], *, asked: bool = False) -> Verdict:
    """The judgement as one verdict on the mean ratio.

    An undecided one is a note, as a file may be right without saying its versions; where the ratio was `asked` for, it leaves that
    question open.
    """
    grave = any(f.grave and f.code == "GYR402" for f in judged.faults)
    level = severity["GYR402"] if grave else Severity.WARNING if judged.faults else severity["GYR402"]
    said = f"importance ratio is not what it must be: {figures(judged.overall, judged.unit)}" if judged.faults else judged.message
    return Verdict(
        code="GYR402",
        name=codes["GYR402"].name,
        severity=Severity.NOTE if judged.state is State.UNDECIDED and not asked else level,
        state=judged.state,
        quantity="importance ratio on replay",
        value=round(judged.overall.mean, 6),
        unit="1",
        message="; ".join((said, *judged.notes)),
    )


def ratio_table(judged: RatioJudgement) -> Table:
    """One row a group: n, mean, p99, effective sample size, clip fraction."""
    columns = ("group", judged.unit + "s", "mean ratio", "p99 |ratio-1|", "lowest", "highest", "ESS", "clipped", "within limits")
    rows = tuple(
        (
            g.label,
            g.stats.n,
            round(g.stats.mean, 6),
            round(g.stats.p99, 6),
            round(g.stats.low, 6),
            round(g.stats.high, 6),
            round(g.stats.ess, 4),
            round(g.stats.clipped, 4),
            not g.off,
        )
        for g in judged.groups
    )
    return Table(columns, rows, title="importance ratio on replay", note="ESS and clipped as shares of the elements")


def record_ranges(records: tuple[int, ...]) -> str:
    """Ascending 1-based numbers as ranges: `1-8, 12`."""
    spans: list[list[int]] = []
    for number in sorted(set(records)):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
