"""A policy that does not move: a divergence of exactly 0 after several passes over a batch, a target network that is never refreshed."""

from __future__ import annotations

import re

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View

_FINE = re.compile(r"(?<![\d.])1\.0{5,}(?!\d)")


def judge_unmoved(run: View, docket: Docket) -> None:
    """Enter the verdicts."""
    _same_policy(run, docket)
    _old_target(run, docket)


def _same_policy(run: View, docket: Docket) -> None:
    """After the first pass the ratio leaves 1; a divergence and a clip fraction of exactly 0 say that no update arrived."""
    least = docket.rules.thresholds.inert_readings
    if any(v.code in {"GYR516", "GYR517", "GYR503"} and v.state is State.BROKEN for v in docket.verdicts):
        return
    divergence = (*_ratios_of_one(run, least), *run.series("kl", "clip_fraction", least=least))
    if not divergence:
        return
    series = divergence[0]
    passes = next((s for s in (run.setting("declared_reuse"), *run.series("reuse")) if s is not None and s.high > 1), None)
    if any((s.high != 0 or s.low != 0) and s.key.term != "ratio" for s in divergence):
        if passes is None:
            return
        text = f"the policy moves: `{series.name}` {count(series.low)} to {count(series.high)} over {series.count} readings"
        docket.add("GYR516", State.HOLDS, text, quantity=series.name, value=series.last)
        return
    dead = next((s for s in run.series("loss", "grad_norm", "lr", least=least) if s.low == s.high == 0), None)
    both = len({s.key.term for s in divergence} - {"ratio"}) > 1
    if passes is None and not (dead is not None and both):
        return  # one pass over each batch: the ratio is 1 as it must be
    others = "".join(f", `{s.name}` too" for s in divergence[1:3]) + (f", {dead.name} is 0" if dead is not None else "")
    stays = count(series.last)
    why = f" although each batch is used {count(passes.high)} times (`{passes.name}`)" if passes is not None else ""
    docket.add(
        "GYR516",
        State.BROKEN,
        f"`{series.name}` is exactly {stays} in all {series.count} readings{others}{why}: updates do not change the policy",
        quantity=series.name,
        value=series.last,
        first=series.first_place,
        because=[Because(series.first_place, "first reading"), Because(series.last_place, "last reading")],
        hint="see whether the optimizer holds the parameters that act, whether gradients reach it, and whether its step is ever called",
        at_most=None if passes is not None and (dead is not None or both) else Severity.WARNING,
    )


def _ratios_of_one(run: View, least: int) -> tuple[Series, ...]:
    """Ratios that are exactly 1 on every line, printed finely enough to show that they moved, in a run that goes over a batch again."""
    again = any(s.high > 1 for s in run.series("within", "reuse"))
    return tuple(s for s in run.series("ratio", least=least) if again and s.low == s.high == 1 and _FINE.search(s.last_place.text))


def _old_target(run: View, docket: Docket) -> None:
    """A target network whose interval lies beyond the run, or that was not refreshed when its interval had passed."""
    interval, planned, updates = run.setting("target_interval"), run.setting("total_steps"), run.updates
    syncs = next(iter(run.series("target_syncs", least=3)), None)
    done = updates.last if updates is not None else 0.0
    never = syncs is not None and syncs.high == 0 and done > 0
    beyond = interval is not None and planned is not None and interval.last > planned.last > 0
    passed = interval is not None and never and done >= 2 * interval.last
    if not beyond and not passed:
        if interval is not None and (planned is not None or (syncs is not None and syncs.high > 0)):
            text = f"the target network is refreshed: `{interval.name}` {count(interval.last)}"
            docket.add("GYR514", State.HOLDS, text, quantity=interval.name, value=interval.last)
        return
    assert interval is not None  # noqa: S101 - both need it
    told = f"`{interval.name}` {count(interval.last)} lies beyond the run's {count(planned.last)} updates" if planned and beyond else ""
    told = told or f"{count(done)} updates are done, {interval.name} is {count(interval.last)}"
    what = f"{told}: the target network keeps its first weights" + (f", `{syncs.name}` is 0" if syncs is not None and never else "")
    place = interval.first_place
    docket.add(
        "GYR514",
        State.BROKEN,
        what,
        quantity=interval.name,
        value=interval.last,
        first=place,
        because=[Because(place, "the interval")] + ([Because(syncs.last_place, syncs.name)] if syncs is not None else []),
        hint="count the interval in the unit in which updates are counted, and keep it well below the run's length",
    )
