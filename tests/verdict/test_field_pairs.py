"""The three grades and what they leave out: each pair of fields graded as its names, dtypes, shapes and numbers say."""

from __future__ import annotations

import numpy as np
import pytest

from gyrecheck.model.field_sides import DataSide, Layout, SideField
from gyrecheck.model.fields import Kind, Tier
from gyrecheck.model.finding import Severity
from gyrecheck.model.key_reads import KeyRead
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.rulebook.contract import load_contract
from gyrecheck.verdict.field_pairs import pair_fields
from gyrecheck.verdict.pair_findings import PairFindings, pair_summary
from gyrecheck.verdict.pair_values import same_content

CONTRACT = load_contract()


def _side(path: str, layout: str = "BT", arrays=None, **shapes) -> DataSide:
    """A side of float32 fields with the given shapes; `key=(shape, dtype)` for another dtype."""
    given = {key: value if isinstance(value[1:2] and value[1], str) else (value, "float32") for key, value in shapes.items()}
    roles = CONTRACT.assign(given)
    fields = []
    for key, (shape, dtype) in given.items():
        kind = Kind.BOOL if dtype == "bool" else Kind.INT if dtype.startswith("int") else Kind.FLOAT
        fields.append(SideField(key, roles.roles.get(key, ""), kind, dtype, shape, fractional=kind is Kind.FLOAT))
    return DataSide(path, tuple(fields), layout=Layout(layout), records=4, arrays=arrays or {})


def _source(**reads) -> DataSide:
    """A source that reads these keys; a value is the `how`, or (how, default)."""
    fields = []
    roles = CONTRACT.assign(reads)
    for line, (key, how) in enumerate(reads.items(), 10):
        word, default = how if isinstance(how, tuple) else (how, "")
        read = KeyRead(key, "trainer.py", line, "train_step", "train", word, default)
        fields.append(SideField(key, roles.roles.get(key, ""), read=read))
    return DataSide("trainer.py", tuple(fields), source=True)


def _grades(mine: DataSide, theirs: DataSide) -> dict[str, str]:
    pairs = pair_fields(mine, theirs, CONTRACT)
    return {(p.sampler or p.trainer).key: p.tier.value + (" renamed" if p.renamed and p.tier is Tier.CONVERT else "") for p in pairs}


def _codes(mine: DataSide, theirs: DataSide) -> dict[str, Severity]:
    codes = load_codes()
    severity = {code: rule.severity for code, rule in codes.items()}
    return {f.code: f.severity for f in PairFindings(mine, theirs, codes, severity).of(pair_fields(mine, theirs, CONTRACT))}


def test_same_renamed_and_convert():
    """Equal keys and shapes are same, aliases renamed, another dtype a conversion."""
    mine = _side("a", obs=(4, 6, 3), logprob=(4, 6), reward=((4, 6), "float64"))
    theirs = _side("b", obs=(2, 6, 3), old_logp=(2, 6), reward=(2, 6))
    assert _grades(mine, theirs) == {"obs": "same", "logprob": "renamed", "reward": "convert"}
    assert set(_codes(mine, theirs)) == {"GYR305"}


def test_layout_differences_are_conversions():
    """[T,B] against [B,T], and rows of steps against [B,T], are said with their axes."""
    mine, theirs = _side("a", "TB", obs=(6, 4, 3), reward=(6, 4)), _side("b", "BT", obs=(2, 6, 3), reward=(2, 6))
    pairs = pair_fields(mine, theirs, CONTRACT)
    assert [p.reason for p in pairs] == ["[T,B,D] -> [B,T,D]", "[T,B] -> [B,T]"]
    rows = _side("c", "N", obs=(24, 3), reward=(24,))
    assert [p.reason for p in pair_fields(rows, theirs, CONTRACT)] == ["[N,D] -> [B,T,D]", "[N] -> [B,T]"]
    assert not _codes(mine, theirs)


def test_merged_flags_are_found():
    """Terminated and truncated under one done are merged, a warning, and neither is missing."""
    mine = _side("a", terminated=((4, 6), "bool"), truncated=((4, 6), "bool"), reward=(4, 6))
    theirs = _side("b", done=((2, 6), "bool"), reward=(2, 6))
    assert _grades(mine, theirs) == {"terminated": "merged", "truncated": "merged", "reward": "same"}
    assert _codes(mine, theirs) == {"GYR309": Severity.WARNING}


def test_done_cannot_be_split():
    """A trainer that tells the flags apart cannot get them from one done."""
    mine = _side("a", done=((4, 6), "bool"), reward=(4, 6))
    theirs = _side("b", terminated=((2, 6), "bool"), truncated=((2, 6), "bool"), reward=(2, 6))
    assert "GYR309" in _codes(mine, theirs)


def test_prompt_and_answer_in_one_sequence_lose_nothing():
    """prompt_ids and response_ids joined to input_ids are merged, which is no finding."""
    mine = _side("a", "", prompt_ids=((4, 5), "int64"), response_ids=((4, 7), "int64"))
    theirs = _side("b", "", input_ids=((4, 12), "int64"))
    assert _grades(mine, theirs)["prompt_ids"] == "merged"
    assert "GYR309" not in _codes(mine, theirs)
    assert "GYR303" not in _codes(mine, theirs)


def test_missing_version_in_the_batch_is_an_error():
    """The sampler writes the policy version and the trainer's batch lacks it: missing, not extra."""
    mine = _side("a", reward=(4, 6), policy_version=((4,), "int64"), entropy=(4, 6))
    theirs = _side("b", reward=(2, 6))
    assert _grades(mine, theirs) == {"reward": "same", "policy_version": "missing", "entropy": "extra"}
    assert _codes(mine, theirs) == {"GYR303": Severity.ERROR}


def test_the_trainers_own_products_are_not_missing():
    """Advantages, returns and recomputed log-probs are the trainer's to make."""
    mine = _side("a", reward=(4, 6), logprob=(4, 6))
    theirs = _side("b", reward=(2, 6), logprob=(2, 6), advantage=(2, 6), returns=(2, 6), ref_logprobs=(2, 6), position_ids=(2, 6))
    assert not _codes(mine, theirs)


def test_rewards_used_up_in_advantages_are_not_missing():
    """A token batch that holds advantages need not carry rewards."""
    mine = _side("a", "", tokens=((4, 7), "int64"), reward=(4,), logprob=(4, 7))
    theirs = _side("b", "", tokens=((4, 7), "int64"), advantage=(4, 7), logprob=(4, 7))
    assert not _codes(mine, theirs)


@pytest.mark.parametrize(
    ("how", "code", "severity"),
    [
        ("subscript", "GYR303", Severity.ERROR),
        ("attribute", "GYR303", Severity.ERROR),
        (("default", "0.0"), "GYR304", Severity.ERROR),
        (("get", ""), "GYR303", Severity.WARNING),
    ],
)
def test_what_the_source_reads_and_the_files_lack(how, code, severity):
    """A core field that no record has: an error where it raises or is filled, a warning where it becomes None."""
    mine = _side("a", obs=(4, 6, 3), reward=(4, 6))
    assert _codes(mine, _source(obs="subscript", reward="subscript", logprob=how)) == {code: severity}


@pytest.mark.parametrize("how", ["attribute", ("get", ""), "test"])
def test_unknown_names_read_loosely_are_notes(how):
    """An attribute or optional key that is no role of the contract may be the object's own: a note at most."""
    codes = _codes(_side("a", obs=(4, 6, 3)), _source(obs="subscript", weird=how))
    assert set(codes.values()) <= {Severity.NOTE}


def test_a_filled_mask_is_a_note():
    """A default for something that is not learned from is not an error."""
    assert _codes(_side("a", obs=(4, 6, 3)), _source(obs="subscript", mask=("default", "1"))) == {"GYR304": Severity.NOTE}


def test_lossy_conversions_are_found_and_lossless_ones_are_not():
    """Fractions cut by an integer dtype and two-byte log-probs lose; float64 to float32 does not count."""
    mine = _side("a", reward=(4, 6), logprob=(4, 6), obs=((4, 6, 3), "float64"))
    assert _codes(mine, _side("b", reward=((2, 6), "int64"), logprob=(2, 6), obs=(2, 6, 3))) == {"GYR306": Severity.WARNING}
    assert _codes(mine, _side("b", reward=(2, 6), logprob=((2, 6), "bfloat16"), obs=(2, 6, 3))) == {"GYR306": Severity.WARNING}
    assert not _codes(mine, _side("b", reward=(2, 6), logprob=(2, 6), obs=(2, 6, 3)))


def test_another_number_of_features_is_found():
    """24 features at the sampler and 25 at the trainer are no layout question."""
    assert "GYR306" in _codes(_side("a", obs=(4, 6, 24), reward=(4, 6)), _side("b", obs=(2, 6, 25), reward=(2, 6)))


def test_fields_meet_by_content_when_no_name_tells():
    """Equal numbers under an unknown name are the same field, said as told by content."""
    wide = np.random.default_rng(0).normal(size=(40, 6))
    mine = _side("a", arrays={"shaped": wide}, shaped=(40, 6))
    theirs = _side("b", arrays={"phi": wide[:20].astype(np.float32)}, phi=(20, 6))
    (pair,) = pair_fields(mine, theirs, CONTRACT)
    assert (pair.tier, pair.by_content) == (Tier.RENAMED, True)


def test_few_or_whole_numbers_never_meet_by_content():
    """Flags and small counts are equal by chance."""
    assert not same_content(np.array([0.0, 1.0] * 50), np.array([1.0, 0.0] * 10))
    assert not same_content(np.arange(1000) % 7, np.arange(100) % 7)
    noise = np.random.default_rng(0).normal(size=500)
    assert same_content(noise, noise[:100].astype(np.float32))
    assert not same_content(noise, np.random.default_rng(1).normal(size=100))


def test_returns_under_the_name_of_rewards():
    """The trainer's reward that holds the sampler's returns is an error with both names."""
    rng = np.random.default_rng(0)
    reward, returns = rng.normal(size=(40, 6)), rng.normal(size=(40, 6))
    mine = _side("a", arrays={"reward": reward, "returns": returns}, reward=(40, 6), returns=(40, 6))
    wrong = _side("b", arrays={"reward": returns[:10]}, reward=(10, 6))
    right = _side("b", arrays={"reward": reward[:10]}, reward=(10, 6))
    assert "GYR308" in _codes(mine, wrong)
    assert "GYR308" not in _codes(mine, right)


def test_of_two_record_types_the_fitting_one_is_demanded():
    """A source that decodes slices or steps demands the fields of the one that the files are."""
    read = {
        "obs": "Slice|Step",
        "final_obs": "Slice",
        "next_obs": "Step",
    }
    fields = tuple(SideField(key, key, read=KeyRead(key, "d.py", 1, owner, "loader", "struct")) for key, owner in read.items())
    theirs = DataSide("d.py", fields, source=True)
    assert _grades(_side("a", obs=(4, 6, 3), final_obs=(4, 3)), theirs) == {"obs": "same", "final_obs": "same"}
    assert _grades(_side("a", "N", obs=(24, 3), next_obs=(24, 3)), theirs) == {"obs": "same", "next_obs": "same"}


def test_time_major_files_read_as_batch_major_need_an_exchange():
    """The source unpacks B, T, D and no transpose is seen: the files are [T, B, D]."""
    mine = _side("a", "TB", obs=(6, 4, 3), reward=(6, 4))
    read = KeyRead("obs", "t.py", 3, "train_step", "train", "subscript", axes=("B", "T", "D"))
    swapped = KeyRead("obs", "t.py", 3, "train_step", "train", "subscript", axes=("B", "T", "D"), swaps=True)
    for given, expected in ((read, {"GYR306"}), (swapped, set())):
        theirs = DataSide("t.py", (SideField("obs", "obs", axes=("B", "T", "D"), read=given),), layout=Layout("BT"), source=True)
        assert set(_codes(mine, theirs)) == expected


def test_summary_counts_every_row_once():
    """The closing line adds up to the number of rows."""
    mine = _side(
        "a",
        obs=(4, 6, 3),
        logprob=(4, 6),
        policy_version=((4,), "int64"),
        entropy=(4, 6),
        terminated=((4, 6), "bool"),
        truncated=((4, 6), "bool"),
    )
    theirs = _side("b", obs=((2, 6, 3), "float64"), old_logp=(2, 6), done=((2, 6), "bool"))
    pairs = pair_fields(mine, theirs, CONTRACT)
    assert pair_summary(pairs) == "same 0 · renamed 1 · needs conversion 1 · merged 2 · missing 1 · extra 1"
    assert len(pairs) == 6


def test_a_source_that_never_reads_the_version_is_noted():
    """The sampler writes the policy version and the trainer's source does not look at it: a note, since a synchronous loop need not."""
    mine = _side("a", obs=(4, 6, 3), policy_version=((4,), "int64"))
    assert _codes(mine, _source(obs="subscript")) == {"GYR303": Severity.NOTE}
    assert not _codes(mine, _source(obs="subscript", policy_version="subscript"))
