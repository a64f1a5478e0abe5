"""What only grows: a buffer without a bound, and work in flight whose slots are never given back (GYR604)."""

from __future__ import annotations

from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.verdict.accounts import Account
from gyrecheck.verdict.ruling import Docket, count
from gyrecheck.verdict.view import View


def unbounded(run: View, docket: Docket) -> None:
    """A buffer without a bound that only fills."""
    account = run.main
    left = account.left if account else None
    if (
        left is None
        or len(left.values) < 12
        or run.snapshot.of("capacity", "max_age", "dropped_stale")
        or account is None
        or account.mode == "replay"
    ):
        return
    rises = sum(b > a for a, b in zip(left.values, left.values[1:]))  # noqa: B905
    if rises >= 0.9 * (len(left.values) - 1) and left.last >= 10 * max(left.values[0], 1):
        docket.add(
            "GYR604",
            State.BROKEN,
            (f"`{left.name}` grows from {count(left.values[0])} to {count(left.last)}, and neither a capacity nor an age limit is logged"),
            quantity=left.name,
            value=left.last,
            first=left.last_place,
            because=[left.first_place],
            hint="bound the buffer, or limit the age",
            at_most=Severity.WARNING if _outruns(account) else Severity.NOTE,
        )


def _outruns(account: Account) -> bool:
    """Whether over the later half of a long log a quarter more comes in than is taken, and what lies there is many times what is taken a line."""
    sampled, taken, left = account.sampled, account.taken, account.left
    if sampled is None or taken is None or left is None or len(left.orders) < 20 or not sampled.cumulative or not taken.cumulative:
        return False
    half, end = left.orders[len(left.orders) // 2], left.orders[-1]
    made, used = ((flow.at(end) or 0.0) - (flow.at(half) or 0.0) for flow in (sampled, taken))
    return used > 0 and made >= 1.25 * used and left.last >= 10 * taken.last / len(left.orders)


def leaking(run: View, docket: Docket) -> None:
    """Work in flight that only grows, line after line up to the last: slots that are never given back."""
    for series in run.series("in_flight", least=12):
        rises = sum(b > a for a, b in pairwise(series.values))
        late = series.values[3 * len(series) // 4 :]
        if (
            series.falls
            or rises < 0.8 * (series.count - 1)
            or series.thinned > 1
            or late[-1] <= late[0]
            or series.last < 2 * max(series.first, 1)
        ):
            continue
        done = next((s for s in run.series("done", "taken", "sampled") if s.rises >= 0.8 * (s.count - 1)), None)
        if done is None:
            continue
        ceiling = any(s.low == s.high == series.last and s.count <= 2 and s is not series for s in run.snapshot.series)
        if ceiling and len(done) > 1 and done.values[-1] > done.values[-2]:
            continue  # filled up to a number of the settings, and all goes on
        docket.add(
            "GYR604",
            State.BROKEN,
            f"`{series.name}` grows from {count(series.first)} to {count(series.last)} and never falls while `{done.name}` goes on: slots are "
            "taken and not given back",
            quantity=series.name,
            value=series.last,
            first=series.first_place,
            because=[series.first_place, series.last_place],
            hint="release the slot where a request fails or is cancelled, too",
            at_most=Severity.WARNING,
        )
        return
