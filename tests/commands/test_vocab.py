"""`gyrecheck vocab`: which role has a symbol, and which file says so."""

from __future__ import annotations

import pytest

from gyrecheck.commands.vocab import look_up, overview
from gyrecheck.model.errors import GyreError
from gyrecheck.rulebook.symbol_lookup import load_vocabulary

VOCABULARY = load_vocabulary()


@pytest.mark.parametrize(
    ("name", "means", "file"),
    [
        ("torch.nn.utils.clip_grad_norm_", "grad.clip", "torch.toml"),
        ("torch.optim.Adam", "optimizer.make", "torch.toml"),
        ("gymnasium.make", "env.make", "gymnasium.toml"),
        ("gymnasium.Env.step", "env.step", "gymnasium.toml"),
        ("stable_baselines3.common.vec_env.DummyVecEnv", "env.make", "stable_baselines3.toml"),
        ("vllm.LLM.generate", "policy.generate", "vllm.toml"),
        ("accelerate.Accelerator.backward", "loss.backward", "accelerate.toml"),
        ("generate_sequences", "policy.generate", "generic.toml"),
    ],
)
def test_a_symbol_has_its_role_and_its_file(name: str, means: str, file: str) -> None:
    """The first row of a known symbol is its role, with the file that says so."""
    row = look_up(VOCABULARY, (name,)).tables["sayings"].rows[0]
    assert (row[2], row[5]) == (means, file)


def test_a_variable_and_its_method_show_only_the_shapes_that_fit_it() -> None:
    """`env.step` is never listed as a scheduler's step."""
    roles = {row[2] for row in look_up(VOCABULARY, ("my_env.step",)).tables["sayings"].rows}
    assert "env.step" in roles
    assert "scheduler.step" not in roles


def test_names_only_are_hints() -> None:
    """What a bare name says is never more than a hint."""
    rows = look_up(VOCABULARY, ("compute_rm_score",)).tables["sayings"].rows
    assert {row[4] for row in rows if row[1] == "bare name"} == {"hint"}


def test_an_unknown_symbol_names_the_nearest() -> None:
    """A misspelt symbol is an error with the nearest known name, not an empty table."""
    with pytest.raises(GyreError, match=r"did you mean `torch\.optim`"):
        look_up(VOCABULARY, ("torch.optin.Adam",))


def test_one_known_name_is_enough_and_the_other_is_named() -> None:
    """An unknown name beside a known one is said, and does not hide the known one."""
    report = look_up(VOCABULARY, ("gymnasium.make", "qqqq.zzzz"))
    assert report.tables["sayings"].rows
    assert report.not_judged == ("`qqqq.zzzz`: no vocabulary file names it",)


def test_the_overview_has_a_row_a_file() -> None:
    """Without a name each vocabulary file is listed with its counts."""
    rows = overview(VOCABULARY).tables["files"].rows
    assert len(rows) == len(VOCABULARY.files)
    assert {"torch.toml", "gymnasium.toml", "verl.toml"} <= {row[5] for row in rows}
