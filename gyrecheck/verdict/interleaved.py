"""One name, several processes: running totals that take turns under one key go up and down, and add up to nothing.

Where no process id tells them apart the sum is not known. It is seen from the values: they fall all the time, and yet each is below all that
come a few readings later.
"""

from __future__ import annotations

from itertools import accumulate

from gyrecheck.model.snapshot import Series
from gyrecheck.verdict.accounts import Account
from gyrecheck.verdict.flows import Flow
from gyrecheck.verdict.view import quarters

LEAST, OFTEN, GROWN = 12, 0.1, 2.5
"""Readings, the share of them that fall, and how many times the first quarter's level the last one's is."""
MOST_TURNS = 64
"""So many processes may take turns."""


def takes_turns(series: Series) -> bool:
    """Whether these are totals of several processes in turn."""
    values = list(series.values)
    if len(values) < LEAST or series.key.cumulative == "no" or series.low < 0 or not OFTEN * len(values) <= series.falls:
        return False
    first, second, third, last = quarters(values)
    if not (first < second < third < last and last >= GROWN * first):
        return False
    lowest = list(accumulate(reversed(values), min))[::-1]  # of all values from here on
    width = next(
        (w for w in range(2, min(MOST_TURNS, len(values) // 4) + 1) if all(a <= b for a, b in zip(values, lowest[w:], strict=False))), 0
    )
    return width > 0


def in_turns(account: Account) -> Flow | None:
    """The first flow of a balance whose one series several processes print in turn."""
    flows = (account.sampled, account.taken, *account.drops)
    if _closes_line_by_line(account):
        return None  # counts of each line, which grow and waver
    return next((f for f in flows if f is not None and len(f.series) == 1 and takes_turns(f.series[0])), None)


def _closes_line_by_line(account: Account) -> bool:
    """Whether on each line alone what was sampled is what was taken and dropped."""
    flows = [f for f in (account.sampled, account.taken, *account.drops) if f is not None]
    if account.sampled is None or account.taken is None or any(len(f.series) != 1 for f in flows):
        return False
    made, *ways = (dict(zip(f.series[0].orders, f.series[0].values, strict=True)) for f in flows)
    gaps = [abs(value - sum(way.get(order, 0.0) for way in ways)) for order, value in made.items()]
    return all(gap <= 1e-6 * max(account.sampled.series[0].high, 1.0) for gap in gaps)
