"""When a distance between sampler and trainer that grows says nothing: it is kernel noise, or the steps themselves grow.

Two engines never compute the same number: their distance grows with the length of answers, and with no fault stays below a floor in nats.
While the learning rate is warmed up, each step moves the weights further, and so does the same lag.
"""

from __future__ import annotations

from gyrecheck.model.snapshot import Series
from gyrecheck.rulebook.thresholds import Thresholds
from gyrecheck.verdict.view import View, quarters

WARMS = 2.0
"""How many times the first quarter's rate the last one's is in a log that is all warm-up."""


def beyond_noise(series: Series, end: float, t: Thresholds) -> bool:
    """Whether a distance of `end` (nats) is more than kernels of two engines make; a ratio and an error of probabilities have their own floor."""
    floors = {"logp_gap": t.gap_noise, "mismatch_kl": t.kl_noise}
    return abs(end) >= floors.get(series.key.term, 0.0)


def warming_up(run: View) -> bool:
    """Whether the learning rate grows from quarter to quarter up to the end of the log."""
    for rate in run.series("lr", least=8):
        first, second, third, last = quarters(list(rate.values))
        if 0 <= first < second < third < last and last >= WARMS * first:
            return True
    return False
