"""Things taken more than once, as the log tells it of each batch: how many it holds, and how many of them are different."""

from __future__ import annotations

from gyrecheck.model.events import Unit
from gyrecheck.model.finding import State
from gyrecheck.model.snapshot import Series
from gyrecheck.verdict.ruling import Because, Docket, count, share
from gyrecheck.verdict.view import View


def judge_repeats(run: View, docket: Docket) -> None:
    """Enter the verdict; silent where no line tells both numbers."""
    t = docket.rules.thresholds
    for distinct in run.series("distinct", least=t.repeat_readings):
        for whole in run.series("taken", "batch_size", "sampled", "read", least=t.repeat_readings):
            units = {distinct.key.unit, whole.key.unit} - {Unit.SAMPLE}
            pairs = _paired(whole, distinct)
            if len(units) > 1 or len(pairs) < t.repeat_readings:
                continue
            if any(d > w for _, w, d in pairs) or (not any(d == w for _, w, d in pairs) and len({w / d for _, w, d in pairs if d}) == 1):
                continue  # not a part of it; or a fixed number of answers to each prompt
            again = [(at, w - d) for at, w, d in pairs if w > d]
            total, repeated = sum(w for _, w, _ in pairs), sum(n for _, n in again)
            if len(again) < 2 or repeated < t.repeat_share * total:
                docket.add(
                    "GYR510",
                    State.HOLDS,
                    f"`{distinct.name}` is as large as `{whole.name}`: nothing is taken twice",
                    quantity=distinct.name,
                )
                return
            place = distinct.place(again[0][0])
            docket.add(
                "GYR510",
                State.BROKEN,
                f"`{distinct.name}` is below `{whole.name}` on {len(again)} of {len(pairs)} lines, from line {place.line} on: "
                f"{count(repeated)} of {count(total)} ({share(repeated, total)}) are repeats within their batch",
                quantity=distinct.name,
                value=repeated,
                unit=whole.key.unit.value,
                first=place,
                because=[Because(place, "first line with repeats"), Because(distinct.last_place, "last line")],
                hint="give each rank its own part of the data, and take each id once",
            )
            return


def _paired(whole: Series, distinct: Series) -> list[tuple[int, float, float]]:
    """(index in `distinct`, whole, distinct) of the lines that tell both; running totals as what each line adds."""
    at = {order: i for i, order in enumerate(whole.orders)}
    found = [(i, whole.values[at[order]], distinct.values[i]) for i, order in enumerate(distinct.orders) if order in at]
    if len(found) >= 3 and whole.falls == distinct.falls == 0 and whole.rises >= whole.count - 1:
        before = [(0, 0.0, 0.0), *found]
        return [(i, w - a, d - b) for (i, w, d), (_, a, b) in zip(found, before, strict=False)]
    return found
