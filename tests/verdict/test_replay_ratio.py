"""The importance ratio on replay: each pattern named from data made with exactly that fault, and the twins silent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import State
from gyrecheck.rulebook.ratio_limits import RatioLimits, load_ratio_limits
from gyrecheck.verdict.replay_ratio import judge_ratio
from gyrecheck.verdict.replay_rows import ReplayRows, ratio_of, ratio_stats

LIMITS = RatioLimits()


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def _tokens(seed: int = 0, records: int = 12, length: int = 20, vocabulary: int = 50, spread: float = 2.5):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(records * length, vocabulary)) * spread
    return rng, logits, np.repeat(np.arange(1, records + 1), length)


def _sampled(rng: np.random.Generator, log_probs: np.ndarray) -> np.ndarray:
    return (log_probs + rng.gumbel(size=log_probs.shape)).argmax(-1)


def _rows(recorded, replayed, record=None, **columns) -> ReplayRows:
    recorded = np.asarray(recorded, dtype=np.float64)
    record = np.arange(1, recorded.size + 1) if record is None else record
    columns.setdefault("weights", "recorded")
    return ReplayRows(recorded=recorded, replayed=np.asarray(replayed, dtype=np.float64), record=record, **columns)


def _gaussian(seed: int = 1, n: int = 300, dims: int = 1):
    """Pre-squash actions, their summed normal log-probs at sigma 1."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(n, dims))
    return rng, u, (-0.5 * u**2 - 0.5 * np.log(2 * np.pi)).sum(1)


def _only_fault(rows: ReplayRows):
    judged = judge_ratio(rows, LIMITS)
    assert len(judged.faults) == 1, judged
    return judged.faults[0]


def test_figures_are_those_of_the_definition():
    """Ratios 1, 1, 2, 0.5 give mean 1.125, ESS 4.5^2 / (4 * 6.25), and half of them clipped."""
    stats = ratio_stats(ratio_of(np.zeros(4), np.log(np.array([1.0, 1.0, 2.0, 0.5]))), clip=0.2)
    assert stats.n == 4
    assert stats.mean == pytest.approx(1.125)
    assert stats.ess == pytest.approx(4.5**2 / (4 * 6.25))
    assert stats.clipped == pytest.approx(0.5)
    assert (stats.low, stats.high) == (pytest.approx(0.5), pytest.approx(2.0))


def test_equal_columns_hold():
    """The same numbers on both sides are a ratio of 1: no fault, and the figures say so."""
    _, _, log_prob = _gaussian()
    judged = judge_ratio(_rows(log_prob, log_prob), LIMITS)
    assert judged.state is State.HOLDS
    assert judged.overall.ess == pytest.approx(1.0)
    assert judged.overall.clipped == 0.0


def test_small_numeric_noise_holds():
    """Noise of 0.01 nats stays within mean +-0.02 and p99 +-0.2."""
    rng, _, log_prob = _gaussian()
    judged = judge_ratio(_rows(log_prob, log_prob + rng.normal(size=log_prob.size) * 0.01), LIMITS)
    assert judged.state is State.HOLDS


@pytest.mark.parametrize("temperature", [0.5, 0.65, 0.8, 1.25, 1.6])
@pytest.mark.parametrize(("vocabulary", "spread"), [(4, 2.0), (50, 2.5), (500, 4.0)])
def test_temperature_on_the_sampler_only(temperature, vocabulary, spread):
    """A temperature that only the sampler divides by is named as consistent with the data, never as certain, in every record."""
    rng, logits, record = _tokens(vocabulary=vocabulary, spread=spread)
    cold, plain = _log_softmax(logits / temperature), _log_softmax(logits)
    chosen = (np.arange(record.size), _sampled(rng, cold))
    fault = _only_fault(_rows(cold[chosen], plain[chosen], record, unit="token", temperature=np.full(record.size, temperature)))
    assert (fault.code, fault.pattern) == ("GYR402", "temperature")
    assert "consistent with" in fault.message
    assert f"recorded temperature {temperature:g}" in fault.message
    assert fault.records == tuple(range(1, 13))


@pytest.mark.parametrize("noise", [0.3, 0.6, 1.0])
def test_other_weights_are_not_called_a_temperature(noise):
    """Weights that differ by noise leave no line over the log-prob: the tag, the weights or dropout are named together."""
    rng, logits, record = _tokens(records=30)
    mine, theirs = _log_softmax(logits), _log_softmax(logits + noise * rng.normal(size=logits.shape))
    chosen = (np.arange(record.size), _sampled(rng, mine))
    fault = _only_fault(_rows(mine[chosen], theirs[chosen], record, unit="token"))
    assert fault.pattern == "unexplained"
    assert "wrong version tag" in fault.message
    assert "dropout" in fault.message


@pytest.mark.parametrize("keep", [5, 12])
def test_top_k_on_the_sampler_only(keep):
    """Renormalising over the best k on one side puts every replayed log-prob below: consistent with truncation."""
    rng, logits, record = _tokens(vocabulary=20, spread=1.5)
    floor = np.sort(logits, -1)[:, -keep, None]
    cut, full = _log_softmax(np.where(logits >= floor, logits, -1e9)), _log_softmax(logits)
    chosen = (np.arange(record.size), _sampled(rng, cut))
    fault = _only_fault(_rows(cut[chosen], full[chosen], record, unit="token"))
    assert fault.pattern == "truncation"
    assert "consistent with" in fault.message


def test_a_mask_on_replay_alone_makes_actions_impossible():
    """Minus infinity on replay is a probability of zero for something that was sampled."""
    _, _, log_prob = _gaussian(n=40)
    replayed = log_prob.copy()
    replayed[[3, 9, 20, 31]] = -np.inf
    fault = _only_fault(_rows(log_prob, replayed))
    assert fault.pattern == "impossible"
    assert fault.records == (4, 10, 21, 32)


@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize("dims", [1, 3])
@pytest.mark.parametrize("side", ["trainer", "sampler"])
def test_squash_term_on_one_side(scale, dims, side):
    """Log ratio = -sum log(1 - (a/c)^2) whichever side counts it, for one and several dimensions and scaled actions."""
    _, u, log_prob = _gaussian(dims=dims)
    squashed = log_prob - np.log(1 - np.tanh(u) ** 2).sum(1)
    recorded, replayed = (log_prob, squashed) if side == "trainer" else (squashed, log_prob)
    fault = _only_fault(_rows(recorded, replayed, action=np.tanh(u) * scale))
    assert fault.pattern == "squash-term"
    assert f"the {side} counts" in fault.message


def test_squash_term_seen_from_actions_before_the_squash():
    """When the file holds the pre-squash action, the term is log(1 - tanh(a)^2)."""
    _, u, log_prob = _gaussian()
    fault = _only_fault(_rows(log_prob, log_prob - np.log(1 - np.tanh(u[:, 0]) ** 2), action=u))
    assert fault.pattern == "squash-term"
    assert "tanh(a)" in fault.message


def test_only_clipped_rows_are_off():
    """Clipping before the log-prob on one side touches rows at the bound alone, and only they are named."""
    _, u, log_prob = _gaussian()
    action = np.clip(u, -1.2, 1.2)
    replayed = (-0.5 * action**2 - 0.5 * np.log(2 * np.pi)).sum(1)
    at_bound = np.flatnonzero(np.abs(u[:, 0]) > 1.3) + 1
    fault = _only_fault(_rows(log_prob, replayed, action=action))
    assert fault.pattern == "action-bound"
    assert set(at_bound) <= set(fault.records)
    assert len(fault.records) < 100


@pytest.mark.parametrize(("position", "pattern"), [(0, "first-step"), (-1, "last-step")])
@pytest.mark.parametrize("length", [10, 400])
def test_only_one_end_of_each_episode_is_off(position, pattern, length):
    """A difference at the first or last step alone is named even where it is rarer than one in a hundred."""
    _, _, log_prob = _gaussian(n=4000)
    steps = np.arange(4000) % length
    replayed = log_prob.copy()
    replayed[steps == (0 if position == 0 else length - 1)] += 0.9
    rows = _rows(log_prob, replayed, first=steps == 0, last=steps == length - 1)
    fault = _only_fault(rows)
    assert fault.pattern == pattern
    assert len(fault.records) == 4000 // length


def test_only_one_version_is_off():
    """One wrong tag among several versions is named by its number and its records."""
    rng, _, log_prob = _gaussian(n=120)
    version = np.repeat([4, 5, 6], 40)
    replayed = log_prob + np.where(version == 5, rng.normal(size=120) * 0.5, 0.0)
    fault = _only_fault(_rows(log_prob, replayed, version=version))
    assert fault.pattern == "one-version"
    assert "version 5" in fault.message
    assert set(fault.records) <= set(range(41, 81))


def test_one_discrete_action_is_off():
    """An index that means something else on the other side is named by its number."""
    rng = np.random.default_rng(3)
    action = rng.integers(0, 4, size=(200, 1)).astype(float)
    log_prob = np.log(rng.uniform(0.1, 0.6, size=200))
    replayed = log_prob - np.where(action[:, 0] == 2, 0.7, 0.0)
    fault = _only_fault(_rows(log_prob, replayed, action=action, discrete=True))
    assert fault.pattern == "one-action"
    assert "action is 2" in fault.message


def test_padding_counted_without_a_mask():
    """Zeros on one side at padded positions, and no mask in the file, is worded as consistent and kept below error."""
    _, logits, record = _tokens(records=10, length=12)
    log_prob = _log_softmax(logits)[:, 0]
    padded = np.arange(record.size) % 12 >= 9
    fault = _only_fault(_rows(np.where(padded, 0.0, log_prob), log_prob, record, unit="token"))
    assert fault.pattern == "padding"
    assert not fault.grave


def test_masked_tokens_are_left_out_and_mentioned():
    """With the mask applied the same file holds; the difference under the mask is a note."""
    _, logits, record = _tokens(records=10, length=12)
    log_prob = _log_softmax(logits)[:, 0]
    padded = np.arange(record.size) % 12 >= 9
    judged = judge_ratio(_rows(np.where(padded, 0.0, log_prob), log_prob, record, unit="token", mask=~padded), LIMITS)
    assert judged.state is State.HOLDS
    assert "masked tokens alone (30)" in judged.notes[0]


@pytest.mark.parametrize(
    ("factor", "words"),
    [(1 / np.log(2), "base 2 on the sampler's side"), (np.log(2), "base 2"), (-1.0, "sign"), (0.5, "mean over 2"), (2.0, "mean over 2")],
)
def test_a_constant_factor_names_its_usual_cause(factor, words):
    """Replayed = k x recorded in every row is exact, so it is stated: base of the logarithm, sign, mean over dimensions."""
    rng, u, _ = _gaussian(dims=2)
    recorded = rng.normal(size=u.shape[0]) - 2.0
    fault = _only_fault(_rows(recorded, recorded * factor, action=u))
    assert fault.pattern == "multiple"
    assert words in fault.message


def test_probabilities_in_place_of_log_probs():
    """Numbers in (0, 1] whose logarithm is the other column are probabilities."""
    probability = np.random.default_rng(5).uniform(0.05, 0.95, size=50)
    fault = _only_fault(_rows(probability, np.log(probability)))
    assert fault.pattern == "probabilities"
    assert fault.side == "sampling"


def test_columns_shifted_by_one_token():
    """replayed[t + 1] = recorded[t] within each record is a shift, not noise."""
    _, logits, record = _tokens()
    log_prob = _log_softmax(logits)[:, 0]
    fault = _only_fault(_rows(log_prob, np.roll(log_prob, 1), record, unit="token"))
    assert fault.pattern == "shifted"
    assert "later" in fault.message


def test_rows_in_another_order():
    """The same numbers attached to other rows are named as a reordering."""
    rng, _, log_prob = _gaussian()
    fault = _only_fault(_rows(log_prob, rng.permutation(log_prob)))
    assert fault.pattern == "reordered"


def test_a_constant_term():
    """A constant difference is a term without the action, such as an action scale."""
    _, _, log_prob = _gaussian()
    fault = _only_fault(_rows(log_prob, log_prob - np.log(2.0)))
    assert fault.pattern == "constant"
    assert "0.6931" in fault.message


def test_difference_that_grows_along_the_record():
    """Tokens late in each record off, early ones not: weights exchanged meanwhile, or another context."""
    rng, logits, record = _tokens(records=10, length=40)
    log_prob = _log_softmax(logits)[:, 0]
    place = np.arange(record.size) % 40
    fault = _only_fault(_rows(log_prob, log_prob + rng.normal(size=record.size) * 0.02 * np.maximum(place - 8, 0), record, unit="token"))
    assert fault.pattern == "growing"


def test_kernel_noise_with_a_tail_is_never_grave():
    """Small centred noise with rare outliers is consistent with numerics, and no error."""
    rng, _, log_prob = _gaussian(n=2000)
    noise = rng.standard_t(1.5, size=2000) * 0.02
    fault = _only_fault(_rows(log_prob, log_prob + np.clip(noise, -1.0, 1.0)))
    assert fault.pattern == "numerics"
    assert not fault.grave


def test_drift_with_age_is_no_fault():
    """Rows of positive age may differ: the growth with age is a note and the rows of age 0 hold."""
    rng, _, log_prob = _gaussian(n=400)
    version = np.repeat([9, 8, 7, 6], 100)
    replayed = log_prob + rng.normal(size=400) * 0.1 * (9 - version)
    judged = judge_ratio(_rows(log_prob, replayed, version=version, trainer_version=np.full(400, 9), weights="trainer"), LIMITS)
    assert judged.state is State.HOLDS
    assert any("drift with age" in note for note in judged.notes)


def test_exactly_one_at_positive_age_is_a_recomputed_denominator():
    """Ratios of exactly 1 on data two versions old cannot come from the sampler's own log-probs."""
    _, _, log_prob = _gaussian(n=60)
    fault = _only_fault(_rows(log_prob, log_prob, version=np.full(60, 3), trainer_version=np.full(60, 5), weights="trainer"))
    assert (fault.code, fault.pattern) == ("GYR407", "exactly-one")
    assert not fault.grave


def test_only_aged_rows_cannot_be_judged_against_one():
    """Where nothing is of age 0 and nothing is exact, the answer is undecided with its reason."""
    rng, _, log_prob = _gaussian(n=60)
    replayed = log_prob + rng.normal(size=60) * 0.3
    judged = judge_ratio(_rows(log_prob, replayed, version=np.full(60, 3), trainer_version=np.full(60, 5), weights="trainer"), LIMITS)
    assert judged.state is State.UNDECIDED
    assert "older" in judged.message


def test_squash_term_shows_through_age():
    """A relation to the action alone is no drift, so it is found on aged rows too."""
    _, u, log_prob = _gaussian()
    replayed = log_prob - np.log(1 - np.tanh(u[:, 0]) ** 2)
    aged = {"version": np.full(300, 3), "trainer_version": np.full(300, 4), "weights": "trainer"}
    fault = _only_fault(_rows(log_prob, replayed, action=np.tanh(u), **aged))
    assert (fault.code, fault.pattern) == ("GYR402", "squash-term")


def test_without_versions_a_loose_difference_is_undecided():
    """No version on either side: noise may be drift, so nothing is claimed; an exact relation still is."""
    rng, _, log_prob = _gaussian()
    noisy = _rows(log_prob, log_prob + rng.normal(size=300) * 0.4, weights="unknown")
    assert judge_ratio(noisy, LIMITS).state is State.UNDECIDED
    shuffled = _rows(log_prob, rng.permutation(log_prob), weights="unknown")
    assert judge_ratio(shuffled, LIMITS).faults[0].pattern == "reordered"


def test_versions_from_the_future_are_left_to_their_own_code():
    """Rows ahead of the trainer are counted out of the ratio and mentioned."""
    _, _, log_prob = _gaussian(n=40)
    version = np.repeat([5, 9], 20)
    replayed = log_prob + np.where(version == 9, 2.0, 0.0)
    judged = judge_ratio(_rows(log_prob, replayed, version=version, trainer_version=np.full(40, 5), weights="trainer"), LIMITS)
    assert judged.state is State.HOLDS
    assert any("ahead of the trainer" in note for note in judged.notes)


def test_nan_is_counted_out_and_no_element_is_undecided():
    """NaN never enters a mean; a file of nothing else is undecided."""
    _, _, log_prob = _gaussian(n=20)
    broken = log_prob.copy()
    broken[:3] = np.nan
    judged = judge_ratio(_rows(broken, log_prob), LIMITS)
    assert judged.state is State.HOLDS
    assert "3 of 20" in judged.notes[0]
    assert judge_ratio(_rows(np.full(5, np.nan), np.zeros(5)), LIMITS).state is State.UNDECIDED


def test_too_few_elements_name_no_pattern():
    """Four elements off are a fault, but no shape is read into them."""
    fault = _only_fault(_rows([-1.0, -2.0, -0.5, -1.5], [-0.5, -2.5, -0.1, -1.0]))
    assert fault.pattern == "unexplained"
    assert "too few" in fault.message


def test_unlike_lengths_are_refused_by_name():
    """A column of another length is an error that names the column."""
    with pytest.raises(GyreError, match="`action` has 4 elements"):
        _rows([0.0] * 5, [0.0] * 5, action=np.zeros((4, 1)))


def test_groups_carry_every_version():
    """The table has a row for all and one for each version, with the figures of that version alone."""
    version = np.repeat([1, 2], 10)
    log_prob = np.linspace(-2, -1, 20)
    judged = judge_ratio(_rows(log_prob, log_prob + np.where(version == 2, np.log(1.1), 0.0), version=version), LIMITS)
    assert [g.label for g in judged.groups] == ["all", "version 1", "version 2"]
    assert judged.groups[2].stats.mean == pytest.approx(1.1)
    assert [g.off for g in judged.groups] == [True, False, True]


def test_shipped_limits_are_the_documented_ones():
    """rules/replay_ratio.toml says mean +-0.02 and p99 +-0.2; nonsense is refused."""
    assert (load_ratio_limits().mean, load_ratio_limits().p99) == (0.02, 0.2)
    assert replace(LIMITS, mean=-1.0).problems() == ("`mean` must be positive",)


def test_only_some_records_are_off():
    """Two records of other weights among exact ones are named by their numbers, not as numerics."""
    rng, logits, record = _tokens(records=10, length=12)
    log_prob = _log_softmax(logits)[:, 0]
    odd = np.isin(record, (4, 5))
    fault = _only_fault(
        _rows(log_prob, log_prob + odd * rng.normal(size=record.size) * 0.6, record, unit="token", version=np.full(record.size, 3))
    )
    assert (fault.pattern, fault.records) == ("some-records", (4, 5))
    assert fault.grave


def test_a_bound_met_once_on_one_side_belongs_to_the_bound():
    """Rows at +1 and at -1 are one bound, however few lie on either side."""
    action = np.concatenate([np.linspace(-0.9, 0.9, 30), [1.0, 1.0, -1.0]])[:, None]
    log_prob = np.linspace(-2.0, -0.5, 33)
    replayed = log_prob.copy()
    replayed[-3:] += 0.8
    fault = _only_fault(_rows(log_prob, replayed, action=action))
    assert (fault.pattern, fault.records) == ("action-bound", (31, 32, 33))
