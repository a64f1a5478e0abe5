"""What calling the policy again adds to a ratio judgement: a policy that is not deterministic, and tags that fit other weights.

Imports numpy through `replay_ratio`: import this module inside the function that calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gyrecheck.model.finding import State
from gyrecheck.verdict.replay_ratio import RatioFault, RatioJudgement, record_numbers
from gyrecheck.verdict.replay_rows import ReplayRows

OPEN = frozenset({"unexplained", "one-version", "numerics", "growing", "temperature"})
"""Patterns that other weights can cause, so that neighbouring versions are tried."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Weights of another version that give the recorded log-probs. Gaps are medians of |log ratio| in nats."""

    other: int
    gap: float
    tagged_gap: float


def off_versions_of(judged: RatioJudgement) -> tuple[int, ...]:
    """Versions whose ratio is off by itself, where the pattern leaves open which weights sampled."""
    if not any(fault.code == "GYR402" and fault.pattern in OPEN for fault in judged.faults):
        return ()
    labels = [group.label.removeprefix("version ") for group in judged.groups if group.off and group.label.startswith("version ")]
    return tuple(int(label) for label in labels)


def with_unsteady(judged: RatioJudgement, rows: ReplayRows, nats: float) -> RatioJudgement:
    """The judgement of a policy whose two calls on one input differ by up to `nats`."""
    sentence = (
        f"ratio cannot be trusted: the policy gives other log-probs when called twice on the same input (up to {nats:.3g} nats apart): "
        "dropout left on (train mode), or a draw inside the policy"
    )
    hint = "call eval() on the model in the policy function, and before log-probs are recorded"
    grave = any(fault.grave for fault in judged.faults)
    fault = RatioFault("GYR402", "dropout", sentence, record_numbers(rows), 1.0, hint, "training", grave=grave)
    return replace(judged, state=State.BROKEN, message=sentence, faults=(fault,))


def with_fits(judged: RatioJudgement, rows: ReplayRows, fits: Mapping[int, Fit]) -> RatioJudgement:
    """The judgement where the log-probs tagged with these versions fit other versions' weights; unchanged when none does."""
    if not fits or rows.version is None:
        return judged
    shifts = {fit.other - version for version, fit in fits.items()}
    if len(shifts) == 1:
        shift = next(iter(shifts))
        by = f"the tag is {abs(shift)} {'ahead' if shift < 0 else 'behind'}"
    else:
        by = "the tags name other weights"
    words = ", ".join(f"{version} fit the weights of {fit.other}" for version, fit in list(fits.items())[:6])
    version, fit = next(iter(fits.items()))
    message = (
        f"ratio off at the same version: log-probs tagged {words} (median |log ratio| {fit.gap:.2g}, against {fit.tagged_gap:.2g} "
        f"under version {version}): {by}"
    )
    touched = record_numbers(rows, tuple(fits))
    share = len(touched) / max(1, len(record_numbers(rows)))
    hint = "tag each trajectory with the version of the weights that were loaded when it was sampled"
    fault = RatioFault("GYR402", "wrong-tag", message, touched, share, hint, "sampling", grave=True)
    return replace(judged, state=State.BROKEN, message=message, faults=(fault,))
