"""Advantages that no own group gives: the right values at other rows, the whole batch's baseline, a mean that is not 0, a turned sign (GYR339).

Each is said only where the other explanation fits all rows, or where the rest of the file keeps the rule that these groups break.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.batch_advantages import batch_baseline
from gyrecheck.verdict.records.group_models import MODELS, affine, close
from gyrecheck.verdict.records.group_table import GroupTable
from gyrecheck.verdict.records.question import Case, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Floats, Ints


def displaced(case: Case, table: GroupTable, members: list[Ints], reward: Floats, advantage: Floats, scale: float) -> Iterator[Finding]:
    """The right values at other rows; or values of the whole batch; or none that a group can give."""
    if len(members) < 2:
        return
    rows = np.sort(np.concatenate(members))
    have = advantage[rows]
    for name, model in MODELS.items():
        made = np.full(len(reward), np.nan)
        for m in members:
            made[m] = model(reward[m])
        right = made[rows]
        if not close(np.sort(have), np.sort(right), scale) or np.ptp(right) == 0:
            continue
        off = np.abs(have - right) > load_record_limits().group_rounding * scale + 1e-4
        if not off.any():
            return
        where = Ranges()
        table.add(where, rows[off])
        shift = next((k for k in (1, -1, 2, -2, 3, -3) if close(np.roll(right, k), have, scale)), 0)
        how = f"shifted by {abs(shift)} row{'s' if abs(shift) > 1 else ''}" if shift else "in another order"
        text = (
            f"advantage not of own group: the values are those of the groups ({name}), {how}: at {int(off.sum())} of "
            f"{len(rows)} records the advantage belongs to another record"
        )
        at = int(rows[off][0])
        yield case.finding(
            "GYR339",
            text,
            where=where,
            role="advantage",
            evidence=((int(table.records[at]), f"advantage {show(advantage[at])}, own group gives {show(made[at])}"),),
            side="training",
        )
        return
    found = batch_baseline(case, table, members, reward, advantage, scale)
    if found is not None:
        yield found
        return
    yield from _neighbours_baseline(case, table, members, reward, advantage, scale)
    yield from _impossible(case, table, members, reward, advantage, scale)


def _neighbours_baseline(
    case: Case, table: GroupTable, members: list[Ints], reward: Floats, advantage: Floats, scale: float
) -> Iterator[Finding]:
    """Groups whose advantage is 0 at the mean of the group before or behind: the baseline was taken one group too late or too early."""
    zero: dict[int, float] = {}
    for at, m in enumerate(members):
        if np.ptp(reward[m]) > 0 and np.ptp(advantage[m]) > 0 and affine(reward[m], advantage[m], scale):
            slope = float(np.cov(reward[m], advantage[m], bias=True)[0, 1] / reward[m].var())
            zero[at] = float(reward[m].mean() - advantage[m].mean() / slope)
    means = [float(reward[m].mean()) for m in members]
    limit = 3 * (load_record_limits().group_rounding * scale + 1e-4)
    for shift in (1, -1):
        there = [at for at in zero if 0 <= at - shift < len(members) and abs(means[at - shift] - means[at]) > 2 * limit]
        hit = [at for at in there if abs(zero[at] - means[at - shift]) <= limit and abs(zero[at] - means[at]) > limit]
        if len(hit) >= 4 and len(hit) >= 0.8 * len(there):
            where = Ranges()
            table.add(where, np.concatenate([members[at] for at in hit]))
            side, first = "before" if shift == 1 else "behind", hit[0]
            text = (
                f"advantage not of own group: in {len(hit)} of {len(there)} groups it is 0 at the mean reward of the group {side}: group "
                f"{table.names[first]} has the baseline {show(zero[first])}, its own mean is {show(means[first])}"
            )
            yield case.finding("GYR339", text, where=where, role="advantage", side="training", severity=Severity.WARNING)
            return


def _impossible(case: Case, table: GroupTable, members: list[Ints], reward: Floats, advantage: Floats, scale: float) -> Iterator[Finding]:
    """Where no known model fits: members of one group with equal rewards and unequal advantages, or the order turned round."""
    limit = load_record_limits().group_rounding
    turned = [
        m
        for m in members
        if len(m) > 1 and np.ptp(reward[m]) > 0 and affine(-reward[m], advantage[m], scale) and np.ptp(advantage[m]) > limit
    ]
    rising = [
        m
        for m in members
        if len(m) > 1 and np.ptp(reward[m]) > 0 and affine(reward[m], advantage[m], scale) and np.ptp(advantage[m]) > limit
    ]
    level = [m for m in rising if abs(float(advantage[m].mean())) <= limit * scale + 1e-4]
    lifted = [m for m in rising if abs(float(advantage[m].mean())) > 10 * (limit * scale + 1e-4)]
    if len(level) >= 3 and 0 < len(lifted) <= 0.3 * len(rising):
        where = Ranges()
        table.add(where, np.concatenate(lifted))
        mean = float(advantage[lifted[0]].mean())
        text = (
            f"advantage not of own group: the advantages of {len(lifted)} of {len(rising)} groups do not add up to 0 "
            f"(their mean is {show(mean)}), those of the others do: another group's baseline"
        )
        yield case.finding("GYR339", text, where=where, role="advantage", side="training", severity=Severity.WARNING)
    if len(turned) >= 2 and not rising:
        where = Ranges()
        table.add(where, np.concatenate(turned))
        yield case.finding(
            "GYR339",
            f"advantage falls as the reward rises in all {len(turned)} groups with spread: the sign is turned",
            where=where,
            role="advantage",
            side="training",
        )
