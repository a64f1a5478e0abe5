"""What a difference between recorded and replayed log-probs over all rows looks like: units, order, squashing, temperature, truncation.

Exact relations come first and are stated; relations that other causes give as well are stated as `consistent with`. d = replayed -
recorded, in nats. Imports numpy: import this module inside the function that calls it.
"""

from __future__ import annotations

import numpy as np

from gyrecheck.rulebook.ratio_limits import RatioLimits
from gyrecheck.verdict.replay_parts import Pattern
from gyrecheck.verdict.replay_rows import Bools, Floats, ReplayRows, ratio_of

BASES = {float(np.log(2.0)): "base 2 on the trainer's side", float(1.0 / np.log(2.0)): "base 2 on the sampler's side"}
SCALES = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 8.0, 10.0)


def pattern_of(rows: ReplayRows, limits: RatioLimits, *, drift: bool = False) -> Pattern | None:
    """The first relation the rows satisfy. `drift`: the weights differ on purpose, so only exact relations are looked for."""
    finite = np.isfinite(rows.replayed)
    impossible = _impossible(rows, finite, limits)
    if impossible is not None:
        return impossible
    rows = rows.only(finite)
    if rows.size < limits.few:
        return None
    exact = (_filled, _probabilities, _multiple, _shifted, _reordered, _squashed)
    loose = () if drift else (_constant, _truncated, _temperature, _growing, _numerics)
    for relation in exact + loose:
        found = relation(rows, limits)
        if found is not None:
            return found
    return None


def _everywhere(rows: ReplayRows, limits: RatioLimits) -> Bools:
    return np.asarray(np.abs(ratio_of(rows.recorded, rows.replayed) - 1.0) > limits.mean, dtype=np.bool_)


def _impossible(rows: ReplayRows, finite: Bools, limits: RatioLimits) -> Pattern | None:
    count = int((~finite).sum())
    if count < limits.subset:
        return None
    sentence = (
        f"{count} of {rows.size} sampled {rows.unit}s have probability zero on replay: an action mask or a truncation on one side only"
    )
    return Pattern("impossible", sentence, ~finite, hint="apply the same mask (and top-k, top-p) where the log-prob is recomputed")


def _filled(rows: ReplayRows, limits: RatioLimits) -> Pattern | None:
    both = (("recorded", rows.recorded, rows.replayed, "sampling"), ("replayed", rows.replayed, rows.recorded, "training"))
    for words, mine, other, side in both:
        if float(np.ptp(mine)) <= limits.exact and float(np.ptp(other)) > limits.mean:
            sentence = f"every {words} log-prob is {float(mine[0]):g}: a constant that was filled in, not measured"
            return Pattern(
                "filled",
                sentence,
                _everywhere(rows, limits),
                hint="write the log-prob of the sampled action where it is sampled",
                side=side,
            )
    return None


def _probabilities(rows: ReplayRows, limits: RatioLimits) -> Pattern | None:
    recorded, replayed = rows.recorded, rows.replayed
    for mine, other, words, side in ((recorded, replayed, "recorded", "sampling"), (replayed, recorded, "replayed", "training")):
        if mine.min() > 0.0 and mine.max() <= 1.0 and _close(mine, np.exp(other), limits) and not _close(mine, other, limits):
            sentence = f"the {words} numbers are probabilities, not log-probs: their logarithm equals the other column"
            return Pattern("probabilities", sentence, _everywhere(rows, limits), hint="store log p, in nats", side=side)
    return None


def _multiple(rows: ReplayRows, limits: RatioLimits) -> Pattern | None:
    energy = float(np.square(rows.recorded).sum())
    if energy == 0.0:
        return None
    k = float((rows.recorded * rows.replayed).sum()) / energy
    if abs(k - 1.0) < limits.mean or abs(k) < limits.rounding or not _close(k * rows.recorded, rows.replayed, limits):
        return None
    words = next((w for base, w in BASES.items() if abs(k - base) < limits.rounding), "")
    dims = rows.action.shape[1] if rows.action is not None else 1
    if abs(k + 1.0) < limits.rounding:
        words = "the sign is turned on one side"
    elif dims > 1 and abs(k - dims) < limits.rounding * dims:
        words = f"the sampler takes the mean over {dims} action dimensions, the trainer the sum"
    elif dims > 1 and abs(k - 1.0 / dims) < limits.rounding:
        words = f"the trainer takes the mean over {dims} action dimensions, the sampler the sum"
    elif words:
        words = f"logarithm to {words}"
    sentence = f"replayed = {k:.4g} x recorded in every {rows.unit}" + (f": {words}" if words else "")
    hint = "use one definition of the log-prob: natural logarithm, summed over dimensions"
    return Pattern("multiple", sentence, _everywhere(rows, limits), hint=hint)


def _shifted(rows: ReplayRows, limits: RatioLimits) -> Pattern | None:
    within = rows.record[1:] == rows.record[:-1]
    if rows.unit == "step" and rows.first is not None:
        within = ~rows.first[1:]
    if int(within.sum()) < limits.few or np.unique(np.round(rows.recorded, 3)).size < limits.few:
        return None
    late = np.abs(rows.replayed[1:] - rows.recorded[:-1])[within]
    early = np.abs(rows.replayed[:-1] - rows.recorded[1:])[within]
    # another engine's noise is far below the spread of the values, a neighbour's value is not
    noise = max(limits.rounding, min(limits.p99, 0.1 * float(rows.recorded.std())))
    direct = float(np.median(np.abs(rows.replayed - rows.recorded)))
    for gap, words in ((late, "later"), (early, "earlier")):
        exact = float((gap < limits.rounding).mean()) > 0.9
        if exact or (float((gap < noise).mean()) > 0.9 and direct > 5.0 * max(float(np.median(gap)), limits.rounding)):
            sentence = f"the replayed log-probs equal the recorded ones one {rows.unit} {words}: the two columns are shifted by one"
            hint = "align on what was sampled: logits at t score the token at t+1"
            return Pattern("shifted", sentence, _everywhere(rows, limits), hint=hint)
    return None


def _reordered(rows: ReplayRows, limits: RatioLimits) -> Pattern | None:
    if np.unique(np.round(rows.recorded, 3)).size < limits.few:
        return None
    if not _close(np.sort(rows.recorded), np.sort(rows.replayed), limits) or _close(rows.recorded, rows.replayed, limits):
        return None
    sentence = "both columns hold the same numbers in another order: log-probs are attached to other rows"
    hint = "shuffle all columns with one permutation, after the log-prob is stored"
    return Pattern("reordered", sentence, _everywhere(rows, limits), hint=hint)


def _squashed(rows: ReplayRows, limits: RatioLimits) -> Pattern | None:
    if rows.action is None or rows.discrete:
        return None
    d = rows.replayed - rows.recorded
    for formula, term, inner in _log_det(rows.action):
        if int(inner.sum()) < limits.few or float(term[inner].std()) < 0.05:
            continue
        for sign, has, lacks in ((1.0, "trainer", "sampler"), (-1.0, "sampler", "trainer")):
            rest = d[inner] - sign * term[inner]
            centre = float(np.median(rest))
            if float(np.quantile(np.abs(rest - centre), 0.95)) > max(limits.mean, 0.05 * float(term[inner].std())):
                continue
            constant = "" if abs(centre) < limits.mean else f" plus a constant {centre:+.3g}"
            sentence = (
                f"the ratio follows the action alone, log ratio = {'+' if sign > 0 else '-'}sum {formula}{constant}: "
                f"the {has} counts the squashing's change of variables, the {lacks} does not"
            )
            side = "sampling" if sign > 0 else "training"
            hint = f"add the tanh correction on the {lacks}'s side too"
            return Pattern("squash-term", sentence, np.ones(rows.size, np.bool_), hint=hint, side=side)
    return None


def _log_det(action: Floats) -> tuple[tuple[str, Floats, Bools], ...]:
    """The term -log(1 - a^2) summed over dimensions, for actions after and before the squashing, with the rows where it is well defined."""
    largest = float(np.abs(action).max())
    forms: list[tuple[str, Floats, Bools]] = []
    for scale in (s for s in SCALES if s >= largest):
        room = 1.0 - np.square(action / scale)
        inner = np.asarray((room > 1e-5).all(axis=1), dtype=np.bool_)
        term = -np.log(np.maximum(room, 1e-12)).sum(axis=1)
        forms.append(("-log(1 - a^2)" if scale == 1.0 else f"-log(1 - (a/{scale:g})^2)", term, inner))
    before = -2.0 * (np.log(2.0) - action - np.logaddexp(0.0, -2.0 * action))
    forms.append(("-log(1 - tanh(a)^2)", before.sum(axis=1), np.ones(action.shape[0], dtype=np.bool_)))
    return tuple(forms)


def _constant(rows: ReplayRows, limits: RatioLimits) -> Pattern | None:
    d = rows.replayed - rows.recorded
    centre = float(np.median(d))
    if abs(centre) < limits.mean or float(np.quantile(np.abs(d - centre), 0.99)) > max(limits.rounding, 0.02 * abs(centre)):
        return None
    shown = f"{'+' if centre > 0 else '-'} {abs(centre):.4g}"
    sentence = f"replayed = recorded {shown} in every {rows.unit}: a term that does not depend on the action stands on one side"
    hint = "look for an action scale, a normaliser or a log-det constant on one side"
    return Pattern("constant", sentence, _everywhere(rows, limits), hint=hint)


def _truncated(rows: ReplayRows, limits: RatioLimits) -> Pattern | None:
    if rows.unit != "token" and not rows.discrete:
        return None
    d = rows.replayed - rows.recorded
    for sign, less, more in ((-1.0, "below", "sampler"), (1.0, "above", "trainer")):
        one_way = float((sign * d > -limits.rounding).mean()) == 1.0 and float((sign * d > limits.rounding).mean()) > 0.3
        if not one_way or _line(rows.recorded, d)[2] > 0.3 or float(d.std()) < limits.rounding:
            continue
        sentence = (
            f"replayed log-probs lie {less} the recorded ones or on them, never on the other side: consistent with top-k, top-p or "
            f"an action mask that renormalises on the {more}'s side only"
        )
        hint = "renormalise over the same candidates on both sides, or record the log-prob of the full distribution"
        return Pattern("truncation", sentence, _everywhere(rows, limits), certain=False, hint=hint)
    return None


def _temperature(rows: ReplayRows, limits: RatioLimits) -> Pattern | None:
    if rows.unit != "token" and not rows.discrete:
        return None
    d = rows.replayed - rows.recorded
    slope, _, explained = _line(rows.recorded, d)
    slope += 1.0
    likely = rows.recorded > np.log(0.5)
    if abs(slope - 1.0) < limits.mean or slope <= 0 or explained < limits.linear:
        return None
    if likely.any() and float(((d * np.sign(slope - 1.0) > -limits.rounding)[likely]).mean()) < 0.95:
        return None
    bound = "at most" if slope < 1 else "at least"  # the line's slope is biased towards 1
    lower = "below" if slope < 1 else "above"
    other = "above" if slope < 1 else "below"
    share = float(((d < 0) if slope < 1 else (d > 0)).mean())
    sentence = (
        f"replayed log-probs lie {lower} the recorded ones for {share:.0%} of {rows.unit}s and {other} them for unlikely ones "
        f"(slope {slope:.2f}): consistent with a temperature on one side only, the sampler's {bound} about {slope:.2g} times the trainer's"
    )
    told = np.unique(rows.temperature[np.isfinite(rows.temperature)]) if rows.temperature is not None else np.zeros(0)
    if told.size == 1 and float(told[0]) != 1.0:
        value = float(told[0])
        for effective, words in ((value, "not applied on replay"), (1.0 / value, "applied on replay alone")):
            if (slope < 1.0) == (effective < 1.0) and 0.4 < (slope - 1.0) / (effective - 1.0) < 1.1:
                sentence += f"; the recorded temperature {value:g}, {words}, would explain it"
    hint = "divide the logits by the recorded sampling temperature where the trainer computes log-probs"
    return Pattern("temperature", sentence, _everywhere(rows, limits), certain=False, hint=hint, side="training")


def _growing(rows: ReplayRows, limits: RatioLimits) -> Pattern | None:
    if rows.unit != "token":
        return None
    _, start, length = np.unique(rows.record, return_index=True, return_counts=True)
    if int(length.min()) < limits.few:
        return None
    away = np.abs(rows.replayed - rows.recorded)
    place = (np.arange(rows.size) - np.repeat(start, length)) / np.repeat(length, length)
    early, late = float(np.median(away[place < 0.25])), float(np.median(away[place >= 0.75]))
    if late < limits.mean or late < 5.0 * max(early, limits.rounding):
        return None
    sentence = (
        f"the difference grows along each record (median |log ratio| {early:.2g} in the first quarter, {late:.2g} in the last): consistent "
        "with weights exchanged while the record was generated, or with another context (position ids, left-out turns) on replay"
    )
    hint = "record the version of every token, and replay with the same context"
    return Pattern("growing", sentence, _everywhere(rows, limits), certain=False, hint=hint)


def _numerics(rows: ReplayRows, limits: RatioLimits) -> Pattern | None:
    d = rows.replayed - rows.recorded
    away = np.abs(ratio_of(rows.recorded, rows.replayed) - 1.0)
    everywhere = float((np.abs(d) > limits.exact).mean()) > 0.5  # numerics touch most elements, a fault of a few leaves the rest exact
    if not everywhere or float(np.median(away)) > limits.numerics or abs(float(d.mean())) > 0.5 * float(d.std()):
        return None
    sentence = (
        f"small differences to both sides (median |ratio - 1| {float(np.median(away)):.3g}) with a tail to {float(away.max()):.2g}: "
        "consistent with other numerics (precision, kernels, batch layout) or with weights one step apart"
    )
    hint = "compare both engines in float32 on one record"
    return Pattern("numerics", sentence, np.asarray(away > limits.p99), certain=False, hint=hint, grave=False)


def _line(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Least squares y = slope x + intercept, and the share of y's variance it explains (0 when y is constant)."""
    spread, total = float(x.var()), float(y.var())
    if spread == 0.0 or total == 0.0:
        return 0.0, float(y.mean()), 0.0
    covariance = float(((x - x.mean()) * (y - y.mean())).mean())
    slope = covariance / spread
    return slope, float(y.mean()) - slope * float(x.mean()), covariance * covariance / (spread * total)


def _close(a: Floats, b: Floats, limits: RatioLimits) -> bool:
    """Equal up to what four decimals explain, in all but one element in a hundred."""
    return float((np.abs(a - b) <= limits.rounding * np.maximum(1.0, np.abs(b))).mean()) >= 0.99
