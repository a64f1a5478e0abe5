"""The field contract on a batch in memory, for tests and training code; `gyrecheck.handoff.check` and `assert_contract` come here.

The cost of one check is bounded: a window of rows is read, `start` moves it. Nothing is printed and nothing of the batch is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from gyrecheck.handoff.arrays import NAME, batch_of
from gyrecheck.model.finding import Finding, Report, Severity, Topology, fingerprint
from gyrecheck.rulebook.codes import Code, load_codes, select_codes
from gyrecheck.rulebook.contract import Contract, load_contract
from gyrecheck.rulebook.ratio_limits import load_ratio_limits
from gyrecheck.verdict.records.judge import judge_records

TAGS = frozenset({"GYR409"})
"""Tags that a file carries and a batch in memory need not."""
ORDER = frozenset({"GYR310", "GYR325", "GYR326", "GYR327", "GYR328", "GYR329", "GYR344", "GYR415"})
"""Codes about rows that follow one another; a batch drawn from a buffer is in no order."""


def check_batch(
    batch: object,
    *,
    fields: Mapping[str, str] | None = None,
    schema: str | Path | None = None,
    topology: Topology | str | None = None,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    rows: int = 4096,
    start: int = 0,
    ordered: bool = False,
    time_major: bool = False,
) -> Report:
    """See `gyrecheck.handoff.check`."""
    codes = load_codes()
    chosen = select_codes(codes, tuple(select), tuple(ignore), option="select")
    if not select:
        chosen -= TAGS if ordered else TAGS | ORDER
    contract = _contract(Path(schema) if schema is not None else None)
    records, unlike = batch_of(batch, rows=rows, start=start, time_major=time_major)
    judged = judge_records([replace(records, promised=ordered)], contract, codes, load_ratio_limits(), dict(fields or {}))
    findings = [*(_unlike(entry, codes["GYR324"]) for entry in unlike), *judged.findings]
    levelled = [_level(finding, codes, topology) for finding in findings if finding.code in chosen or finding.code not in codes]
    shown = tuple(finding for finding in levelled if finding.severity is not Severity.OFF)
    return Report(
        command="handoff check",
        inputs=(NAME,),
        topology=str(getattr(topology, "value", topology) or ""),
        findings=shown,
        verdicts=(judged.verdict,) if judged.verdict is not None else (),
        not_judged=judged.not_judged,
        summary=f"{len(shown)} findings in {judged.rows} rows",
        statistics={"rows": judged.rows, "fields": len(records.columns)},
    )


@cache
def _contract(schema: Path | None) -> Contract:
    """Read once a process: a training loop asks at every step."""
    return load_contract(schema)


def complaint(report: Report, fail_on: Severity) -> str:
    """Every finding at or above `fail_on` as text, empty when there is none."""
    grave = [finding for finding in report.shown if finding.severity.rank >= fail_on.rank]
    lines = []
    for finding in grave:
        where = f" at rows {finding.records}" if finding.records else ""
        side = f" [{finding.side} side]" if finding.side else ""
        lines.append(f"{finding.severity.value}[{finding.code}] {finding.name}: {finding.message}{where}{side}")
        lines += [f"  hint: {finding.hint}"] if finding.hint else []
    return (
        "\n".join([f"the batch breaks the handoff contract ({len(grave)} finding{'s' if len(grave) > 1 else ''}):", *lines])
        if grave
        else ""
    )


def _unlike(entry: tuple[str, int, int], code: Code) -> Finding:
    key, length, total = entry
    return Finding(
        code=code.code,
        name=code.name,
        severity=code.severity,
        message=f"`{key}` has {length} rows, the other fields have {total}",
        path=NAME,
        field=key,
        hint=code.fix.strip(),
        side="sampling",
        fingerprint=fingerprint(code.code, key, NAME),
    )


def _level(finding: Finding, codes: Mapping[str, Code], topology: Topology | str | None) -> Finding:
    """The finding at its severity in this topology; never graver than it was judged."""
    rule = codes.get(finding.code)
    if rule is None or topology is None:
        return finding
    level = rule.severity_in(topology)
    return replace(finding, severity=level) if level.rank < finding.severity.rank else finding
