"""What a program's own measurements say that must be 0 by their name: the ratio of the first pass, the gap on replay."""

from __future__ import annotations

from collections.abc import Iterable

from gyrecheck.model.finding import State
from gyrecheck.model.live import Measured
from gyrecheck.model.snapshot import Place
from gyrecheck.verdict.live_places import numbers
from gyrecheck.verdict.ruling import Docket


def judge_self_checks(measured: Iterable[Measured], most: float, docket: Docket) -> None:
    """Enter one verdict for each name whose values leave 0 by more than `most`; the rounds are named where one line gives several."""
    by_name: dict[str, list[Measured]] = {}
    for found in measured:
        by_name.setdefault(found.name, []).append(found)
    for name, lines in by_name.items():
        values = [(value, line) for line in lines for value in line.values]
        off = [(place, value, line) for place, (value, line) in enumerate(values, 1) if abs(value) > most]
        if not off:
            continue
        first = off[0][2]
        rounds = f" in {numbers([place for place, _, _ in off])} of {len(values)}" if len(values) > 1 else ""
        worst = max(abs(value) for _, value, _ in off)
        docket.add(
            "GYR402",
            State.BROKEN,
            f"replay ratio off: the program's own {name} is {worst:g}{rounds}, and must be 0 within {most:g} on unchanged weights",
            quantity=name,
            value=worst,
            first=Place(first.path, first.line, None, first.text),
            hint="find what differs between acting and recomputing: stored rows, weights, mode, numerics",
        )
