"""From a judgement to the report that `gyrecheck ledger` writes: heading, tables, verdicts, what was not judged."""

from __future__ import annotations

from pathlib import Path

from gyrecheck.model.events import Unit
from gyrecheck.model.finding import Report, Scalar, Severity, State, Table, Verdict
from gyrecheck.model.snapshot import Snapshot
from gyrecheck.verdict.accounts import Account
from gyrecheck.verdict.balance import Balance
from gyrecheck.verdict.judge import Judgement
from gyrecheck.verdict.ruling import clock, count, share, tidy
from gyrecheck.verdict.view import View


def report_of(
    judged: Judgement,
    snapshot: Snapshot,
    inputs: tuple[str, ...],
    *,
    topology: str = "",
    reason: str = "",
    explain: bool = False,
    per_step: bool = False,
) -> Report:
    """The whole report of one run."""
    troubled = any(v.state is not State.HOLDS for v in judged.verdicts)
    tables: dict[str, Table] = {}
    if troubled and judged.accounts:
        tables["balance"] = balance_table(judged.accounts[0], judged.balances)
        tables["counters"] = counters_table(judged.run)
    if explain:
        tables["keys"] = keys_table(judged, snapshot)
    if per_step:
        tables["per step"] = per_step_table(judged)
    return Report(
        command="ledger",
        inputs=inputs,
        topology=topology,
        topology_reason=reason,
        verdicts=judged.verdicts,
        tables=tables,
        heading=heading(judged, snapshot),
        sentences=judged.notes,
        summary=summary(judged.verdicts, snapshot),
        not_judged=judged.not_judged,
        skipped=tuple(f"{file.path}: {note}" for file in snapshot.files for note in file.notes),
        statistics=statistics(judged, snapshot),
        next=next((v.next for v in judged.verdicts if v.state is not State.HOLDS and v.next), ""),
    )


def heading(judged: Judgement, snapshot: Snapshot) -> tuple[str, ...]:
    """Which run, how long, which processes and unit, which formats."""
    parts = [f"Run {snapshot.run_id}" if snapshot.run_id else "Run"]
    if (seconds := snapshot.seconds) is not None:
        parts.append(span(seconds))
    parts.append(judged.layout.sentence)
    if judged.accounts:
        unit = judged.accounts[0].unit
        parts.append("unit: " + (unit.value if unit is not Unit.SAMPLE else "not named by the log"))
    formats = " · ".join(f"{Path(f.path).name if f.path != '-' else 'stdin'} {f.format}" for f in snapshot.files[:6])
    more = f" · … {len(snapshot.files) - 6} more" if len(snapshot.files) > 6 else ""
    lines = sum(f.lines for f in snapshot.files)
    return "   ".join(parts), f"Formats: {formats}{more}     {snapshot.readings:,} of {lines:,} lines counted"


def span(seconds: float) -> str:
    """A duration for a person."""
    if seconds >= 5400:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s" if seconds >= 60 else f"{seconds:.1f} s"


def summary(verdicts: tuple[Verdict, ...], snapshot: Snapshot) -> str:
    """The closing line."""
    broken = [v for v in verdicts if v.state is State.BROKEN]
    words = []
    for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTE):
        number = sum(v.severity is severity for v in broken)
        if number:
            words.append(f"{number} {severity.value}{'s' if number > 1 else ''}")
    undecided = sum(v.state is State.UNDECIDED for v in verdicts)
    words += [f"{undecided} undecided"] if undecided else []
    files = f"{len(snapshot.files)} log{'s' if len(snapshot.files) != 1 else ''}"
    if words:
        return f"Found {', '.join(words)} in {files}."
    held = sum(v.state is State.HOLDS for v in verdicts)
    return (
        f"Nothing found in {files}: {held} check{'s hold' if held != 1 else ' holds'}."
        if held
        else f"Nothing to judge in {files}: no two numbers that belong together."
    )


def statistics(judged: Judgement, snapshot: Snapshot) -> dict[str, Scalar]:
    """Figures for machines."""
    out: dict[str, Scalar] = {
        "lines": sum(f.lines for f in snapshot.files),
        "readings": snapshot.readings,
        "suppressed_lines": snapshot.suppressed,
    }
    account = judged.accounts[0] if judged.accounts else None
    if account is not None:
        for name, flow in (("sampled", account.sampled), ("taken", account.taken), ("left", account.left)):
            out[name] = tidy(flow.last) if flow is not None else None
        out["unit"] = account.unit.value
        for flow in account.drops:
            out[f"dropped_{flow.reason or 'other'}"] = tidy(flow.last)
    for found in judged.balances[:1]:
        out["unaccounted"] = tidy(found.residual)
    return out


def balance_table(account: Account, balances: tuple[Balance, ...]) -> Table:
    """Sampled, its sinks, and what remains."""
    sampled = account.sampled.last if account.sampled else None
    rows: list[tuple[Scalar, ...]] = []

    def add(name: str, value: float | None, whole: float | None = sampled) -> None:
        rows.append((name, count(value) if value is not None else "?", share(value, whole) if value is not None and whole else ""))

    add("sampled", sampled, None)
    if account.mode != "replay":
        add("  taken", account.taken.last if account.taken else None)
    for flow in account.drops:
        add("  dropped" if flow.term == "dropped" else f"  dropped, {flow.way}", flow.last)
    add("  left in buffer", account.left.last if account.left else account.given_left)
    if account.in_flight is not None:
        add("  in flight", account.in_flight.last)
    found = next((b for b in balances if b.account is account), None)
    if found is not None and not found.missing:
        add("residual", found.residual, None)
    return Table(("", "count", "share"), tuple(rows), title="Balance" + (f" ({account.label})" if account.label else ""))


def counters_table(run: View) -> Table:
    """The three counters: total, when first and last, rate."""
    rows: list[tuple[Scalar, ...]] = []
    seconds = run.snapshot.seconds
    for name, flow in (("sampled", run.sampled), ("consumed", run.taken), ("train steps", run.updates)):
        if flow is None:
            rows.append((name, "not logged", "", "", ""))
            continue
        moved = [o for o, a, b in zip(flow.orders, [0.0, *flow.values], flow.values) if b != a]  # noqa: B905
        first, last = (flow.place_at(moved[0]), flow.place_at(moved[-1])) if moved else (None, None)

        def when(place: object) -> str:
            time, line = getattr(place, "time", None), getattr(place, "line", 0)
            return clock(time) or (f"line {line}" if line else "never")

        rate = f"{flow.last / seconds:.3g}" if seconds else ""
        rows.append((name, count(flow.last), when(first) if first else "never", when(last) if last else "never", rate))
    return Table(("three counters", "total", "first", "last", "per s"), tuple(rows))


def keys_table(judged: Judgement, snapshot: Snapshot) -> Table:
    """How each name was understood."""
    why = {(f.name, f.term): f.why for a in judged.accounts for f in a.flows} | {(f.name, f.term): f.why for f in judged.run.counted}
    rows: list[tuple[Scalar, ...]] = []
    seen: set[tuple[str, str, str]] = set()
    for series in snapshot.series:
        mark = (series.name, series.key.term, series.path)
        if mark in seen:
            continue
        seen.add(mark)
        how = "declared" if series.key.sure else "by its name"
        unit = (
            series.key.unit.value
            if series.key.term in {"sampled", "taken", "left", "in_flight", "done", "drawn"} or series.key.term.startswith("dropped")
            else ""
        )
        rows.append(
            (
                series.name,
                series.key.term,
                unit,
                series.key.reason,
                how,
                why.get((series.name, series.key.term), ""),
                series.count,
                f"{series.path}:{series.first_place.line}",
            )
        )
    return Table(
        ("key", "term", "unit", "reason", "understood", "counted", "readings", "first at"), tuple(rows), title="How the log was read"
    )


def per_step_table(judged: Judgement) -> Table:
    """The balance after each reading of the first account, thinned to 200 rows."""
    if not judged.balances:
        return Table(("line",), ())
    found = judged.balances[0]
    account = found.account
    names = [
        ("sampled", account.sampled),
        ("taken", account.taken),
        *((f.reason or "dropped", f) for f in account.drops),
        ("left", account.left),
    ]
    present = [(name, flow) for name, flow in names if flow is not None]
    every = max(1, len(found.rows) // 200)
    rows: list[tuple[Scalar, ...]] = []
    for at, (order, residual) in enumerate(found.rows):
        if at % every and at != len(found.rows) - 1:
            continue
        place = max((f.place_at(order) for _, f in present), key=lambda p: p.line)
        rows.append((place.line, clock(place.time), *(tidy(f.at(order)) for _, f in present), tidy(residual)))
    return Table(
        ("line", "time", *(name for name, _ in present), "residual"),
        tuple(rows),
        title="Balance line by line" + (f", every {every}th" if every > 1 else ""),
    )
