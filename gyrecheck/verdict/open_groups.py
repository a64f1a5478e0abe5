"""Groups that never fill: open groups and the finished members that lie in them grow together, line after line.

What is finished and neither scored nor dropped is held by groups that wait for their other members: at most the group's size for each open
group. As long as their number stays level that is stock; where it only grows, the others will never come.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

from gyrecheck.model.events import Unit
from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View, quarters

LEAST = 12
"""Readings of the open groups before their course is judged."""
GROWN, HELD = 3.0, 0.9
"""How many times the first quarter's level the last one's is, and the share of lines on which the open groups can hold what is missing."""
_NEVER_COME = re.compile(
    r"(?i)^(?!.*(?:tool|call|pars|judge|reward|request|retr|code|test|exec)).*(?:cancel|fail|abort|error|time[ds]?[ _-]?out|crash|interrupt|kill|preempt|broken|withdrawn|lost)"
)
_NUMBER = re.compile(r"([A-Za-z][\w./-]*)[\"']?\s*[=:]?\s*(\d+)(?![\w.%/])")
_COUNTERS = ("counted", "sampled", "done", "taken", "written", "read")


def judge_open_groups(run: View, docket: Docket) -> None:
    """Enter members that wait in groups which never fill."""
    size = run.setting("group_size")
    if size is None or size.last < 2 or any(v.code == "GYR507" and v.state is State.BROKEN for v in docket.verdicts):
        return
    for groups in run.series("in_flight", "left", least=LEAST):
        if groups.key.unit is not Unit.GROUP or not _only_grows(groups.values) or not _broken_up(run, groups):
            continue
        found = next(_held(run, groups, size.last), None)
        if found is None:
            continue
        whole, used, rest = found
        low = max(groups.values[: len(groups) // 4])
        at = next(i for i in range(len(groups)) if min(groups.values[i:]) > low)
        docket.add(
            "GYR507",
            State.BROKEN,
            f"{count(rest[-1])} of {count(whole.last)} `{whole.name}` are neither `{used.name}` nor dropped, and grow with `{groups.name}`, which "
            f"goes from {count(groups.first)} to {count(groups.last)} and never falls back: they wait in groups that can never fill",
            quantity="unaccounted",
            value=rest[-1],
            first=groups.place(at),
            because=[Because(groups.last_place, groups.name), Because(size.first_place, size.name)],
            hint="when a member is cancelled or fails, count it as the group's, and close the group with the members that it has",
            at_most=Severity.WARNING,
        )
        return


def _broken_up(run: View, groups: Series) -> bool:
    """Whether members are counted that will never come: cancelled, failed, timed out; without them longer answers keep more groups open."""
    if any(s.rises >= 2 and _NEVER_COME.search(f"{s.name} {s.key.reason}") for s in run.snapshot.series):
        return True
    return any(float(number) >= 2 and _NEVER_COME.search(name) for name, number in _NUMBER.findall(groups.last_place.text))


def _only_grows(values: Sequence[float]) -> bool:
    """Whether a level rises from quarter to quarter, is at last many times what it was, and never comes back to its first half."""
    first, second, third, last = quarters(list(values))
    half = len(values) // 2
    if values[-1] <= values[3 * len(values) // 4]:
        return False  # it has found its level
    return 0 < first < second < third < last and last >= GROWN * first and min(values[3 * len(values) // 4 :]) > max(values[:half])


def _held(run: View, groups: Series, size: float) -> Iterator[tuple[Series, Series, list[float]]]:
    """Counters of members, and what the one is ahead of the other and of drops: as much as the open groups can hold, and growing."""
    orders = list(groups.orders)
    beside = [s for s in run.snapshot.series if list(s.orders) == orders and not s.falls and s.rises and s.key.unit is not Unit.GROUP]
    counters = [s for s in beside if s.key.term in _COUNTERS and s.rises >= len(s) // 2]
    sinks = [s for s in beside if s.key.term in {"dropped", "dropped_stale", "dropped_other"}]
    for many in range(len(sinks), -1, -1):
        for gone in combinations(sinks, many):
            for whole, used in permutations(counters, 2):
                rest = [a - b - sum(s.values[i] for s in gone) for i, (a, b) in enumerate(zip(whole.values, used.values, strict=True))]
                fits = sum(0 <= r <= size * g for r, g in zip(rest, groups.values, strict=True))
                if min(rest) >= 0 and fits >= HELD * len(rest) and _only_grows(rest):
                    yield whole, used, rest
