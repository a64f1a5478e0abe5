"""What two runs do differently before anything is compared: updates per sampled thing, passes over the data, age limits.

Runs that differ in updates for each sampled thing are set side by side over what was sampled; where no setting declares that difference they
are not alike, whatever else differs. An age limit that changes nothing is not on the path of the data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.rulebook.thresholds import Thresholds
from gyrecheck.verdict.flows import Flow, build_flows
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.running_totals import usual_step
from gyrecheck.verdict.view import View

_DECLARED = ("declared_reuse", "updates_per_step", "updates_per_call", "update_interval", "minibatch_size", "batch_size")


MANY_STEPS, LARGEST = 100, 1e9
"""Environment steps pass by hundreds between two lines, train steps hardly; what is larger is a time."""


@dataclass(frozen=True, slots=True)
class Cadence:
    """Updates per sampled thing in both runs, and the settings that declare a difference."""

    rates: tuple[float, float] | None
    declared: tuple[str, float, float] | None
    """A setting's name and its two values."""

    def apart(self, t: Thresholds) -> bool:
        """Whether one run makes clearly more updates of the same samples."""
        return self.rates is not None and max(self.rates) >= t.compare_rate * min(self.rates) > 0

    def suspect(self, t: Thresholds) -> tuple[bool, str] | None:
        """Whether the first run is the one with more reuse, and by what, in words; None when they do not differ."""
        if self.declared is not None and self.declared[0] in {"declared_reuse", "updates_per_step"}:
            _, a, b = self.declared
            return a > b, f"declared uses {count(a)} and {count(b)}"
        if self.apart(t) and self.rates is not None:
            a, b = self.rates
            return a > b, f"updates per sampled {a:.3g} and {b:.3g}"
        return None


def cadence(a: View, b: View) -> Cadence:
    """The cadence of two runs."""
    rates = _rate(a), _rate(b)
    declared = None
    for term in _DECLARED:
        one, other = a.setting(term), b.setting(term)
        if one is not None and other is not None and one.last != other.last:
            declared = term, one.last, other.last
            break
    if declared is None and rates[0] and rates[1]:
        declared = _stated(a, b, rates[0] / rates[1])
    return Cadence((rates[0], rates[1]) if rates[0] and rates[1] else None, declared)


_STATED = re.compile(r"([A-Za-z_][\w./-]*)[\"']?\s*[=:]\s*(\d+(?:\.\d+)?)(?![\w.])")
_LENGTH = re.compile(r"(?i)len|total|max|steps$|seed")


def _stated(a: View, b: View, ratio: float) -> tuple[str, float, float] | None:
    """A number on the lines of settings whose name says nothing to us, and whose two values stand in the ratio of the rates."""
    said = [
        {name: float(value) for s in run.snapshot.series if s.count == 1 for name, value in _STATED.findall(s.first_place.text)}
        for run in (a, b)
    ]
    for name, one in said[0].items():
        other = said[1].get(name, one)
        if one > 0 and other > 0 and one != other and not _LENGTH.search(name) and 0.9 < (one / other) / ratio < 1.1:
            return name, one, other
    return None


def sampled_in(run: View) -> Flow | None:
    """What sampling produced, in a balance, on its own, or as a position told in steps of the environment."""
    if run.sampled is not None:
        return run.sampled
    told = [*run.series("sampled", least=3), *(s for s in run.series("step", least=3) if _counts_environment(s))]
    marks = [mark.order for mark in run.restarts]
    return next(iter(build_flows(told[:1], frozenset(("sampled", "step")), frozenset(), marks)), None)


def _counts_environment(axis: Series) -> bool:
    """Whether a position is told in steps of the environment: by its name, or by the many that pass from line to line."""
    named = any(word in axis.name.lower() for word in ("env", "timestep", "frame"))
    return axis.rises >= 0.8 * (axis.count - 1) and axis.high < LARGEST and (named or usual_step(axis.values) >= MANY_STEPS)


def _rate(run: View) -> float | None:
    """Updates per sampled thing, over the part of the run that tells both."""
    updates, sampled = run.updates, sampled_in(run)
    if updates is None or sampled is None or len(updates.orders) < 3:
        return None
    start, end = updates.orders[0], updates.orders[-1]
    first, last = sampled.at(start), sampled.at(end)
    if first is None or last is None or last <= first:
        return None
    return (updates.values[-1] - updates.values[0]) / (last - first)


def judge_cadences(a: View, b: View, found: Cadence, names: tuple[str, str], docket: Docket) -> None:
    """Enter that the runs are not alike, and that an age limit has no effect."""
    _unlike(a, b, found, names, docket)
    _inert(a, b, names, docket)


def _unlike(a: View, b: View, found: Cadence, names: tuple[str, str], docket: Docket) -> None:
    if found.declared is not None or found.rates is None or not found.apart(docket.rules.thresholds):
        return
    less = 0 if found.rates[0] < found.rates[1] else 1
    run, name, other = (a, b)[less], names[less], names[1 - less]
    low, high = found.rates[less], found.rates[1 - less]
    updates = run.updates
    assert updates is not None  # noqa: S101 - there is no rate without it
    copies = [s for s in (a.setting("env_copies"), b.setting("env_copies")) if s is not None]
    why = ""
    if len(copies) == 2 and copies[0].last != copies[1].last:
        why = f"; they step {count(copies[0].last)} and {count(copies[1].last)} environments at a time, so updates are counted in calls"
    docket.add(
        "GYR525",
        State.BROKEN,
        f"the runs are not alike: {low:.3g} updates for each sampled in {name}, {high:.3g} in {other}, and no setting declares it{why}. At the "
        "same number of samples they have not trained alike, which explains a difference in reward by itself",
        quantity="updates_per_sample",
        value=round(low, 3),
        first=updates.last_place,
        because=[Because(updates.last_place, updates.name)],
        hint="make the gradient steps a multiple of the environments stepped at a time, or compare by updates",
        at_most=Severity.WARNING,
    )


def _inert(a: View, b: View, names: tuple[str, str], docket: Docket) -> None:
    limits = a.setting("max_age"), b.setting("max_age")
    if limits[0] is None or limits[1] is None or limits[0].last == limits[1].last:
        return
    tight = 0 if limits[0].last < limits[1].last else 1
    run, limit = (a, b)[tight], limits[tight]
    drops = [next(iter(r.series("dropped_stale", least=3)), None) for r in (a, b)]
    own = drops[tight]
    over = next((s for s in run.series("age_max", "age", least=3) if limit is not None and s.high > limit.last), None)
    if own is None or limit is None or over is None or any(s is None or s.high > 0 for s in drops):
        return
    docket.add(
        "GYR524",
        State.BROKEN,
        f"the age limit changes nothing: `{own.name}` is 0 with `{limit.name}` {count(limit.last)} in {names[tight]} as in {names[1 - tight]}, and "
        f"`{over.name}` goes to {count(over.high)}: it is not on the path of the data",
        quantity=own.name,
        value=0,
        first=own.last_place,
        because=[Because(limit.first_place, "the limit"), Because(over.last_place, over.name)],
        hint="look at the age where the data is handed to training, not where it is still being made",
        at_most=Severity.WARNING,
    )
