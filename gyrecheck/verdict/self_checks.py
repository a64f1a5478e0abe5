"""What a program's own measurements say that must be 0 or 1 by their name: the ratio of the first pass, the gap on replay."""

from __future__ import annotations

from collections.abc import Iterable

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.live import HookedRun, Measured
from gyrecheck.model.snapshot import Place
from gyrecheck.verdict.live_places import numbers
from gyrecheck.verdict.ruling import Docket


def judge_self_checks(measured: Iterable[Measured], most: float, docket: Docket, run: HookedRun) -> None:
    """Enter one verdict for each name whose values leave what they must be by more than `most`; the rounds are named.

    Lists of which only the first value must hold count where the program made as many optimizer steps as it printed values: then the
    first was measured before any step of its round. A sampler that acts with older weights has a gap at the first pass by right.
    """
    steps, older = run.total("optimizer_steps"), acts_with_older_weights(run)
    by_name: dict[str, list[Measured]] = {}
    for found in measured:
        by_name.setdefault(found.name, []).append(found)
    for name, lines in by_name.items():
        must, leading = lines[0].must, lines[0].first
        if leading and (sum(len(line.values) for line in lines) != steps or len(lines) == steps):
            continue
        values = [(value, line) for line in lines for value in (line.values[:1] if leading else line.values)]
        off = [(place, value, line) for place, (value, line) in enumerate(values, 1) if abs(value - must) > most]
        if not off:
            continue
        first = off[0][2]
        rounds = f" in {numbers([place for place, _, _ in off])} of {len(values)}" if len(values) > 1 else ""
        worst = max((value for _, value, _ in off), key=lambda value: abs(value - must))
        which = " before the first step of a round" if leading else ""
        docket.add(
            "GYR402",
            State.BROKEN,
            f"replay ratio off: the program's own {name} is {worst:g}{which}{rounds}, and must be {must:g} within {most:g} on unchanged weights",
            quantity=name,
            value=worst,
            first=Place(first.path, first.line, None, first.text),
            at_most=Severity.NOTE if older and not name.lower().startswith(("replay", "recomput")) else None,
            hint="find what differs between acting and recomputing: stored rows, weights, mode, numerics",
        )


def acts_with_older_weights(run: HookedRun) -> bool:
    """Whether the sides lie in processes of their own, or acting copies were behind the trained network when they acted."""
    training = {p.pid for p in run.processes if p.calls("T")}
    apart = bool(training) and any(p.calls("S") and p.pid not in training for p in run.processes)
    return apart or any(e.number("version") > 0 and e.number("differ") > 0 for e in run.of("phase"))
