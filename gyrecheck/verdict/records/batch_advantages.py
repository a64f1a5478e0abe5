"""Advantages whose baseline is the mean of the whole batch, not that of the own group (GYR339), whatever they are divided by.

The batch is all rows of the file, or those that name one training batch. Within it advantage is one rising line over reward, and its mean is 0;
dividing by a spread of the batch changes only the slope. Groups that are centred each on their own give such a line only where their means agree.

REINFORCE++ and plain REINFORCE with a baseline take the mean of the batch by design, so this is a note, unless the file says that its groups are
there to be compared: a record holds a whole group of a declared size, or the size's name speaks of a group.
"""

from __future__ import annotations

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.field_names import leaf, normal
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.group_models import close
from gyrecheck.verdict.records.group_table import GroupTable
from gyrecheck.verdict.records.question import Case
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Floats, Ints


def batch_baseline(case: Case, table: GroupTable, members: list[Ints], reward: Floats, advantage: Floats, scale: float) -> Finding | None:
    """The finding where one baseline serves all groups of each batch; None where the groups' own may."""
    rows = np.concatenate(members)
    names = table.batches[rows]
    parts = [rows]
    if len(np.unique(names)) > 1:
        parts = [rows[names == name] for name in np.unique(names)]
    limit = 10 * (load_record_limits().group_rounding * scale + 1e-4)
    lifted = sum(1 for m in members if abs(float(advantage[m].mean())) > limit)
    slopes = [_slope(reward[part], advantage[part], scale) for part in parts]
    if lifted < 2 or any(slope is None for slope in slopes):
        if len(parts) == 1:
            return None
        slopes, parts = [_slope(reward[rows], advantage[rows], scale)], [rows]
        if lifted < 2 or slopes[0] is None:
            return None
    where = Ranges()
    table.add(where, np.sort(rows))
    spread = max(float(reward[parts[0]].std()), 1e-9)
    undivided = all(slope is not None and abs(slope - 1) < 1e-2 for slope in slopes)
    divided = "" if undivided else ", divided by its standard deviation" if abs((slopes[0] or 0) * spread - 1) < 0.05 else ", scaled"
    baseline = f"the baseline is the mean of all {len(parts[0])} {'records' if len(parts) == 1 else 'records of a batch'}{divided}, not that of each group"
    if compared(case, table):
        text = f"advantage not of own group: {baseline}: easy prompts are rewarded, hard ones punished"
        return case.finding("GYR339", text, where=where, role="advantage", side="training", severity=Severity.WARNING)
    text = (
        f"{baseline}: right for REINFORCE++ or REINFORCE with a baseline of the batch, wrong for GRPO or RLOO (easy prompts are rewarded)"
    )
    return case.finding("GYR339", text, where=where, role="advantage", side="training", severity=Severity.NOTE)


def compared(case: Case, table: GroupTable) -> bool:
    """Whether the file says that answers are compared within their group, and does not only repeat a prompt."""
    names = frozenset(normal(leaf(case.roles.key("group_size"))).split("_"))
    return table.declared or not case.contract.words.get("of_groups", frozenset()).isdisjoint(names)


def _slope(reward: Floats, advantage: Floats, scale: float) -> float | None:
    """Slope of advantage over reward where it is one rising line whose mean is 0; None elsewhere."""
    if len(reward) < 4 or np.ptp(reward) == 0 or np.ptp(advantage) == 0:
        return None
    slope = float(np.cov(reward, advantage, bias=True)[0, 1] / reward.var())
    return slope if slope > 0 and close(advantage, slope * (reward - reward.mean()), scale) else None
