"""Do advantages come from the own group? The model that most complete groups fit is found first; the others are held against it (GYR339).

Values that fit blocks of rows in file order, or no group at all, are told apart; where no model fits, only what none can give is said.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.batch_advantages import compared
from gyrecheck.verdict.records.displaced_advantages import displaced
from gyrecheck.verdict.records.group_models import MODELS, affine, close, same
from gyrecheck.verdict.records.group_table import GroupTable
from gyrecheck.verdict.records.question import Case, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Floats, Ints


def judge_advantages(case: Case, table: GroupTable, reward: Floats, advantage: Floats, target: Floats) -> Iterator[Finding]:
    """Advantages that the own group cannot give; `reward` and `advantage` are [rows], `target` the wanted size of each group."""
    members, records = table.members, table.records
    whole = [i for i, m in enumerate(members) if np.isfinite(reward[m]).all() and np.isfinite(advantage[m]).all()]
    scale = max(float(np.nanmax(np.abs(advantage))), 1e-6)
    complete = [i for i in whole if len(members[i]) == target[i] and len(members[i]) > 1]
    telling = [i for i in complete if np.ptp(reward[members[i]]) > 0]
    if _no_baseline([members[i] for i in whole], reward, advantage, scale):
        where = Ranges()
        table.add(where, np.concatenate([members[i] for i in whole]))
        text = f"`{case.roles.key('advantage')}` equals `{case.roles.key('reward')}` in all {len(whole)} groups: no baseline was subtracted"
        severity = Severity.WARNING if compared(case, table) else Severity.NOTE  # plain REINFORCE has none
        yield case.finding("GYR339", text, where=where, role="advantage", side="training", severity=severity)
        return
    advantage = _undivided(table, [members[i] for i in telling], reward, advantage, scale)
    scale = max(float(np.nanmax(np.abs(advantage))), 1e-6)
    fits = {name: [i for i in telling if close(advantage[members[i]], model(reward[members[i]]), scale)] for name, model in MODELS.items()}
    name = max(fits, key=lambda n: len(fits[n]))
    n = int(np.median(target)) if len(target) else 0
    blocks = _block_model(reward, advantage, n, scale)
    good = len(fits[name])
    if good * 2 <= len(telling) and blocks is None:
        yield from displaced(case, table, [members[i] for i in complete], reward, advantage, scale)
        if good == 0:
            return
    model = MODELS[name]
    exact_scale = "divided" not in name
    wrong: list[int] = []
    for i in whole:
        m = members[i]
        if len(m) < 2:
            continue
        if len(m) == target[i]:
            ok = close(advantage[m], model(reward[m]), scale)
        elif name == "leave-one-out":
            ok = same(advantage[m] - reward[m] * target[i] / (target[i] - 1), scale)
        elif exact_scale:
            ok = same(reward[m] - advantage[m], scale)
        else:
            ok = affine(reward[m], advantage[m], scale)
        if not ok:
            wrong.append(i)
    if not wrong or (good == 0 and blocks is None):
        return
    by_block = blocks is not None and _explained(blocks, [members[i] for i in wrong], advantage, scale)
    if not by_block and good < 2 * max(1, len([i for i in wrong if i in telling])) and good < 2:
        return
    flags = np.zeros(len(members), np.bool_)
    flags[wrong] = True
    where = table.where(flags)
    worst = wrong[0]
    baselines = sorted({round(float(b), 4) for b in (reward[members[worst]] - advantage[members[worst]])})
    told = (
        f"in group {table.names[worst]} reward minus advantage is {', '.join(show(b) for b in baselines[:4])}"
        if len(baselines) > 1
        else f"group {table.names[worst]} has the baseline {show(baselines[0])}, its own mean is {show(reward[members[worst]].mean())}"
    )
    why = f"; the values are those of blocks of {n} in file order, which no longer are the groups" if by_block else ""
    text = f"advantage not of own group: the implied baseline does not fit the group in {len(wrong)} of {len(members)} groups: {told}{why}"
    evidence = [
        (int(records[k]), f"reward {show(reward[k])}, advantage {show(advantage[k])}, baseline {show(reward[k] - advantage[k])}")
        for k in members[worst][:5].tolist()
    ]
    yield case.finding(
        "GYR339",
        text,
        where=where,
        role="advantage",
        evidence=evidence,
        side="training",
        severity=None if by_block else Severity.WARNING,
    )


def _undivided(table: GroupTable, members: list[Ints], reward: Floats, advantage: Floats, scale: float) -> Floats:
    """[rows] advantages times the spread of their batch, where most groups are centred on themselves and divided by one spread of the batch."""
    out = advantage.copy()
    for batch in np.unique(table.batches):
        own = [m for m in members if table.batches[m[0]] == batch]
        if len(own) < 3:
            return advantage
        centred = [reward[m] - reward[m].mean() for m in own]
        slope = float(sum(float(c @ advantage[m]) for c, m in zip(centred, own, strict=True)) / sum(float(c @ c) for c in centred))
        if slope <= 0 or sum(close(advantage[m], slope * c, scale) for c, m in zip(centred, own, strict=True)) < 0.8 * len(own):
            return advantage
        out[table.batches == batch] /= slope
    return out


def _no_baseline(members: list[Ints], reward: Floats, advantage: Floats, scale: float) -> bool:
    """Whether advantages are the rewards themselves, in groups whose mean reward is not 0."""
    many = [m for m in members if len(m) > 1]
    lifted = [m for m in many if abs(float(reward[m].mean())) > 10 * (load_record_limits().group_rounding * scale + 1e-4)]
    spread = [m for m in lifted if np.ptp(reward[m]) > 0]
    return len(spread) >= 2 and all(close(advantage[m], reward[m], scale) for m in many)


def _block_model(reward: Floats, advantage: Floats, n: int, scale: float) -> Floats | None:
    """[rows] the advantages that blocks of n rows in file order give, when that explains at least 90 % of all; None otherwise."""
    if n < 2 or len(reward) < 2 * n:
        return None
    best: Floats | None = None
    best_share = 0.9
    for model in MODELS.values():
        made = np.concatenate([model(reward[at : at + n]) for at in range(0, len(reward), n)])
        share = float((np.abs(made - advantage) <= load_record_limits().group_rounding * scale + 1e-4).mean())
        if share >= best_share:
            best, best_share = made, share
    return best


def _explained(blocks: Floats, wrong: list[Ints], advantage: Floats, scale: float) -> bool:
    rows = np.concatenate(wrong)
    return float((np.abs(blocks[rows] - advantage[rows]) <= load_record_limits().group_rounding * scale + 1e-4).mean()) >= 0.8
