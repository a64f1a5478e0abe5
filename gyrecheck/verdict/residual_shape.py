"""How the residuals of a balance run along the log: half a cycle at its end, a loss that adds up, a log begun in mid-run.

Each answer is read from the residuals and the terms' last moves alone; nothing is entered here.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations, pairwise
from math import gcd

from gyrecheck.model.events import Unit
from gyrecheck.model.snapshot import Snapshot
from gyrecheck.verdict.balance import Balance, balance
from gyrecheck.verdict.flows import Flow, last_move

LEAST_NAMED = 10
"""A smaller number may stand on a line by chance."""
LEAST_ENDS = 4
"""Lines of a balance from which on its first and its last say something together."""
_NAMED = re.compile(r"([A-Za-z][\w./-]*)[\"']?\s*[=:]?\s*(\d[\d,]*(?:\.\d+)?)(?![\w.%/])")
_THINGS = re.compile(
    r"(?<![a-z])(frame|timestep|step|transition|sample|episode|trajector|rollout|group|prompt|token|row|sequence|completion)(?:s|y|ies)?(?![a-z])"
)
_UNFINISHED = re.compile(r"(?i)cancel|in_?flight|raised|abort|interrupt")
_SAYS_MISSING = re.compile(r"(?i)missing|unaccounted|gap|diff|delta|leak|vanish|balance|residual")


def mid_cycle(found: Balance, last_good: int, good: list[int]) -> bool:
    """Whether the log just ends between two lines that belong together: some term was not told again since it last closed."""
    if len(good) < 2:
        return False
    tail = found.rows[last_good + 1 :]
    longest = max((b - a for a, b in pairwise(good)), default=1)
    since = found.rows[last_good][0]
    main = [f for f in (found.account.sampled, found.account.taken, found.account.left) if f is not None]
    untold = any(f.orders[-1] <= since for f in main)
    # More used than sampled is half a cycle only in a log that has said uses before their samples in earlier cycles too.
    ahead = any(r < -found.tolerance for _, r in tail)
    was_ahead = any(r < -found.tolerance for _, r in found.rows[good[0] : last_good])
    return untold and len(tail) <= max(longest, 1) and (was_ahead or not ahead)


def in_other_things(found: Balance) -> int:
    """How many times all the rest what was sampled is, where that is one whole number on every line and the two are named for other things."""
    sampled, taken = found.account.sampled, found.account.taken
    if sampled is None or taken is None or len(found.rows) < LEAST_NAMED:
        return 0
    nouns = [set(_THINGS.findall(f.name.lower())) for f in (sampled, taken)]
    ratios = [made / (made - r) for order, r in found.rows if (made := sampled.at(order) or 0.0) and made > r]
    k = round(ratios[-1]) if ratios else 0
    same = nouns[0] == nouns[1] or not nouns[0]
    return k if k >= 2 and not same and all(abs(ratio - k) <= 1e-3 * k for ratio in ratios) else 0


def closes_without_drops(snapshot: Snapshot, found: Balance) -> bool:
    """Whether the balance closes on nearly every line when nothing is dropped."""
    kept = balance(replace(found.account, drops=()), snapshot) if found.account.drops else None
    return kept is not None and len(kept.rows) >= LEAST_ENDS and sum(map(kept.good, kept.rows)) >= 0.9 * len(kept.rows)


def unfinished(found: Balance) -> list[Flow]:
    """Drops that may never have been among what is counted as sampled: cancelled or failed before their end."""
    return [f for f in found.account.drops if f.reason in {"cancelled", "failed"} or _UNFINISHED.search(f.name)]


def without_unfinished(snapshot: Snapshot, found: Balance) -> Balance | None:
    """The balance without them, where it then leaves on every line what open groups can hold; None elsewhere."""
    gone = unfinished(found)
    if not gone:
        return None
    account = replace(found.account, drops=tuple(f for f in found.account.drops if f not in gone))
    for tried in (account, replace(account, left=None, given_left=None)):  # what waits may wait after its use is counted
        kept = balance(tried, snapshot)
        if kept is not None and kept.rows and min(r for _, r in kept.rows) >= -kept.tolerance and in_open_groups(snapshot, kept):
            return kept
    return None


def in_open_groups(snapshot: Snapshot, found: Balance) -> str:
    """The level of open groups that can hold what is missing on every line, one group its size at most; empty where there is none."""
    size = next((s.last for s in snapshot.of("group_size") if s.low == s.high and s.last >= 2), 0.0)
    sampled = found.account.sampled
    in_members = sampled is not None and sampled.series[0].key.unit is not Unit.GROUP
    for groups in snapshot.of("in_flight", "left") if size and in_members else ():
        if groups.key.unit is Unit.GROUP and groups.orders[-1] >= found.rows[-1][0]:
            held = [r <= size * groups.values[at] for order, r in found.rows if (at := groups.index(order)) >= 0]
            if held and all(held):
                return groups.name
    return ""


def named_as(snapshot: Snapshot, text: str, missing: float) -> str:
    """The name that nobody understood before a number of that size on the line; empty without, or where it says itself that it is a gap."""
    if missing < LEAST_NAMED:
        return ""
    return next((name for name, number in _unnamed(snapshot, text).items() if number == missing), "")


def named_as_sum(snapshot: Snapshot, found: Balance) -> tuple[str, str] | None:
    """Two names that nobody understood, whose numbers make up what is missing on the first line and on the last one."""
    sampled = found.account.sampled
    if sampled is None or found.residual < LEAST_NAMED or len(found.rows) < LEAST_ENDS or found.rows[0][0] != sampled.first_order:
        return None
    first, last = _unnamed(snapshot, sampled.first_place.text), _unnamed(snapshot, sampled.last_place.text)
    for one, other in combinations([name for name in last if name in first], 2):
        ends = (last[one] + last[other], found.residual), (first[one] + first[other], found.rows[0][1])
        if all(abs(told - missing) <= found.tolerance for told, missing in ends) and min(last[one], last[other]) > 0:
            return one, other
    return None


def _unnamed(snapshot: Snapshot, text: str) -> dict[str, float]:
    """Numbers of a line behind names of which no word is in a name that was understood."""
    known = {word for s in snapshot.series for word in re.findall(r"[a-z]+", s.name.lower())}
    return {
        str(name): float(number.replace(",", ""))
        for name, number in _NAMED.findall(text)
        if not _SAYS_MISSING.search(name) and not known.intersection(re.findall(r"[a-z]+", name.lower()))
    }


def stopped(found: Balance, last_good: int) -> bool:
    """Whether consumption just ended where the balance last closed: the surplus waits, it need not be lost."""
    taken = found.account.taken
    return taken is not None and last_good >= 0 and last_move(taken) <= found.rows[last_good][0]


def over_capacity(snapshot: Snapshot, found: Balance) -> bool:
    """Whether more is missing than the buffer can hold; a queue that could not hold what is taken at once counts batches."""
    capacity = max((s for s in snapshot.of("capacity")), key=lambda s: s.last, default=None)
    if capacity is None or found.account.mode != "queue":
        return False
    batch = taken_at_once(found)
    if capacity.key.unit is not Unit.BATCH and (capacity.key.unit is found.account.unit or batch <= capacity.last):
        return found.residual > capacity.last * 1.0001
    rises = sum(b > a for (_, a), (_, b) in pairwise(found.rows))
    sampled = found.account.sampled
    step = max((b - a for a, b in pairwise(sampled.values)), default=0.0) if sampled is not None else 0.0
    return batch > 0 and rises >= 0.8 * (len(found.rows) - 1) and found.residual > 2 * capacity.last * batch + step


def taken_at_once(found: Balance) -> float:
    """The largest number of which all that was taken is a multiple: no batch is larger; 0 where it is not told in whole numbers."""
    taken = found.account.taken
    if taken is None or any(v != int(v) for v in taken.values):
        return 0.0
    return float(gcd(*(int(v) for v in taken.values)))


def adds_up(residuals: list[float]) -> bool:
    """A loss that adds up: it never falls back and ends well above where it began."""
    rises = sum(b > a for a, b in pairwise(residuals))
    falls = sum(b < a for a, b in pairwise(residuals))
    return rises >= 2 and falls == 0


def floor(residuals: list[float]) -> list[float]:
    """The lowest residual of each cycle: what is still missing when all lines of a cycle have been read."""
    if len(residuals) < 8:
        return residuals
    ends = [*residuals[1:], residuals[-1]]
    lows = [r for before, r, after in zip([residuals[0], *residuals], residuals, ends, strict=False) if r <= before and r <= after]
    floors = [low for low, following in zip(lows, [*lows[1:], None], strict=True) if low != following]
    return floors if len(floors) >= 3 else residuals


def steady_offset(found: Balance) -> bool:
    """A log that begins in the middle of a run: the same offset on every line, nothing lost within the log."""
    values = [r for _, r in found.rows]
    sampled = found.account.sampled
    if len(values) < 4 or max(values) - min(values) > found.tolerance or sampled is None or not sampled.cumulative:
        return False
    return sampled.values[0] > 3.0 * (sampled.values[1] - sampled.values[0]) > 0
