"""Weights that are sent and change nothing: the same to the last digit at every sync, or a gap that no new version makes smaller.

Versions and ages say that the sampler follows; a norm of what is sent and the distance between both sides say whether it does.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import pairwise

from gyrecheck.model.finding import Severity, State
from gyrecheck.model.snapshot import Series
from gyrecheck.rulebook.thresholds import Thresholds
from gyrecheck.verdict.noise import beyond_noise, warming_up
from gyrecheck.verdict.ruling import Because, Docket, count
from gyrecheck.verdict.view import View, quarters

CODE = "GYR420"
HINT = (
    "compare a checksum of the acting weights before and after a sync with the trainer's; adapters and buffers belong into the parcel too"
)
LEAST_SENT, LEAST_DIGITS = 6, 7
"""Syncs, and figures of the number printed, from which on a norm that never moves is no rounding."""
SMALL_RATE = 5e-6
"""A learning rate below which weights of usual size turn by less than a thousandth in a hundred steps."""
LEAST_LOADS, APART = 4, 2.0
"""New versions, and readings from one to the next, from which on the gap's course says whether they arrive."""
FALLS = 0.8
"""A gap that is below this part of what it was before a load has fallen."""
_GOT = re.compile(
    r"(?i)(?<![a-z])(loaded|received|engines?|rollout|samplers?|actors?|acting|inference|vllm|sglang|servers?|workers?|gen)(?![a-z])"
)
"""A norm of what the sampler has, not of what is sent to it."""
_FROZEN = re.compile(
    r"(?i)(?<![a-z])(wte|wpe|embed\w*|frozen|base|backbone|encoder|vision|visual|tower|vit|ref|reference|teacher|lm_?\s?head|rotary)(?![a-z])"
)
"""A part that is often not trained: its norm is printed to see that it stays."""
_NOT_YET = re.compile(r"(?i)(critic|value|vf)[ _-]*(only|warm)|froz|freez")
"""Words of a line on which another network is trained."""
_SENDS = re.compile(r"(?i)sync|sent\b|send|push|broadcast|refit|transfer|publish|parcel|\bload|deliver|ship|upload|weights? update")
"""Words of a line that tells of weights on their way."""


def judge_deliveries(run: View, docket: Docket) -> None:
    """Enter the verdicts on what a sync really changes."""
    _same_parcel(run, docket)
    _never_nearer(run, docket)


def _same_parcel(run: View, docket: Docket) -> None:
    prints = run.series("weight_print", least=LEAST_SENT)
    still, moving = [s for s in prints if s.low == s.high], [s for s in prints if s.low != s.high]
    got = [s for s in still if _GOT.search(s.name) and any(not _GOT.search(m.name) for m in moving)]
    if not still or (moving and not got) or not (moving or _learns(run)):
        return
    series = (got or still)[0]
    sent = next((m for m in moving if not _GOT.search(m.name)), None)
    if sent is None and not _SENDS.search(series.first_place.text):
        return  # a part of the network that is frozen has such a norm, too
    if _FROZEN.search(_full_name(series)) or _NOT_YET.search(series.last_place.text):
        return
    if len(repr(abs(series.last)).replace(".", "").lstrip("0")) < LEAST_DIGITS:
        return
    apart = sent is not None or any(v.code == "GYR417" and v.state is State.BROKEN for v in docket.verdicts)
    why = f"`{sent.name}` moves: what is sent does not arrive" if sent else "the trainer makes steps: what is sent is not what is trained"
    docket.add(
        CODE,
        State.BROKEN,
        f"`{series.name}` is {series.last!r} in all {series.count} readings, to the last digit, while {why}",
        quantity=series.name,
        value=series.last,
        first=series.first_place,
        because=[Because(series.last_place, "still the same")],
        hint=HINT,
        at_most=None if apart else Severity.NOTE if _crawls(run) else Severity.WARNING,
    )


def _full_name(series: Series) -> str:
    """The name with the words before it on its line, as far as no number lies between: `ref workers` of a `workers norm`."""
    before = series.last_place.text.partition(series.name)[0]
    return re.split(r"[\d|,;:]", before)[-1] + series.name


def _crawls(run: View) -> bool:
    """Whether the learning rate is so small that a norm of seven figures may stand for many steps: they turn the weights, and hardly stretch them."""
    rates = run.series("lr")
    return bool(rates) and max(s.high for s in rates) < SMALL_RATE


def _learns(run: View) -> bool:
    """Whether steps are made that change weights."""
    rates = run.series("lr")
    return any(s.low > 0 for s in run.series("grad_norm", least=LEAST_SENT)) and (not rates or any(s.high > 0 for s in rates))


def _never_nearer(run: View, docket: Docket) -> None:
    if warming_up(run):
        return  # each step is larger than the one before, and so is the distance at the same lag
    for series in run.series("logp_gap", "mismatch_kl", least=4 * LEAST_LOADS):
        loads = load_orders(run, series)
        if len(loads) < LEAST_LOADS or len(series) < APART * len(loads) or not climbs(series, docket.rules.thresholds):
            continue
        far = [abs(v) for v in series.values]
        at = [bisect_left(series.orders, order) for order in loads]
        pairs = [(far[i - 1], far[i]) for i in at if 0 < i < len(far)]
        if len(pairs) < LEAST_LOADS or any(after < FALLS * before for before, after in pairwise(far)):
            continue
        docket.add(
            CODE,
            State.BROKEN,
            f"`{series.name}` falls after none of {len(pairs)} new versions of the sampler and climbs to {count(series.last)}: it is the distance "
            "from the weights of the start, whatever version is written beside the data",
            quantity=series.name,
            value=series.last,
            first=series.place(at[0]),
            because=[Because(series.place(at[0]), "first new version"), Because(series.last_place, "last reading")],
            hint=HINT,
            at_most=Severity.WARNING,
        )
        return


def load_orders(run: View, beside: Series) -> list[int]:
    """Orders at which the sampler has a new version, as far as `beside` tells what follows."""
    told = next((s for s in run.series("loaded", "sample_version", least=LEAST_LOADS) if s.rises >= LEAST_LOADS and not s.falls), None)
    if told is None:
        return []
    rises = [o for o, a, b in zip(told.orders[1:], told.values, told.values[1:], strict=False) if b > a]
    return [order for order in rises if beside.orders[0] < order <= beside.orders[-1]]


def climbs(series: Series, t: Thresholds) -> bool:
    """Whether a distance grows from quarter to quarter, to many times what it was and more than noise."""
    parts = quarters([abs(v) for v in series.values])
    start = sum(abs(v) for v in series.values[:3]) / 3
    return parts[0] < parts[1] < parts[2] < parts[3] and 0 < t.gap_climb * start <= parts[3] and beyond_noise(series, parts[3], t)
