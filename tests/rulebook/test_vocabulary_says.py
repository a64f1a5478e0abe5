"""What the vocabulary says of well-known symbols, and that its words are sound."""

from __future__ import annotations

import pytest

from gyrecheck.model.roles import Side
from gyrecheck.rulebook.lexicon import fold, load_lexicon
from gyrecheck.rulebook.regions import load_regions

LEXICON = load_lexicon()
REGIONS = load_regions()


@pytest.mark.parametrize(
    ("symbol", "role"),
    [
        ("torch.autograd.grad", "loss.backward"),
        ("torch.amp.GradScaler.step", "scaler.step"),
        ("torch.optim.Optimizer.zero_grad", "optimizer.zero_grad"),
        ("optax.apply_updates", "optimizer.step"),
        ("tensorflow.GradientTape.gradient", "loss.backward"),
        ("deepspeed.DeepSpeedEngine.step", "optimizer.step"),
        ("lightning.Fabric.backward", "loss.backward"),
        ("envpool.make", "env.make"),
        ("pettingzoo.AECEnv.last", "env.read"),
        ("dm_env.Environment.step", "env.step"),
        ("queue.Queue.put", "carrier.write"),
        ("tianshou.data.Collector.collect", "rollout.run"),
        ("trl.generation.vllm_client.VLLMClient.generate", "policy.generate"),
    ],
)
def test_a_known_symbol_has_its_role(symbol: str, role: str) -> None:
    """One symbol a family, read from the joined table."""
    assert LEXICON.symbols[symbol] == role


@pytest.mark.parametrize(
    ("constructor", "kind"),
    [
        ("torch.optim.AdamW", "optimizer"),
        ("torch.optim.lr_scheduler.CosineAnnealingLR", "scheduler"),
        ("torch.distributions.Normal", "distribution"),
        ("gymnasium.wrappers.RecordEpisodeStatistics", "env"),
        ("gymnasium.vector.SyncVectorEnv", "env"),
        ("gymnasium.spaces.Box", "space"),
        ("stable_baselines3.PPO", "trainer"),
        ("torchrl.collectors.SyncDataCollector", "collector"),
        ("vllm.LLM", "generator"),
        ("torch.utils.data.IterableDataset", "dataset"),
        ("transformers.AutoModelForSequenceClassification.from_pretrained", "reward"),
        ("mbrl.models.ModelEnv", "world_model"),
    ],
)
def test_a_constructor_gives_its_kind(constructor: str, kind: str) -> None:
    """Exact names, every CapWord of an open module, and factories lead to a kind."""
    assert LEXICON.kinds[LEXICON.type_made_by(constructor)] == kind


@pytest.mark.parametrize(
    ("dotted", "role"),
    [
        ("gymnasium", "env.make"),
        ("gymnasium.spaces.Box", ""),
        ("torch.optim.Adam", "optimizer.make"),
        ("torch.optim.Optimizer", ""),
        ("torch.nn", ""),
    ],
)
def test_an_import_means_what_its_longest_prefix_says(dotted: str, role: str) -> None:
    """Importing spaces or a base class means nothing; importing the maker does."""
    assert LEXICON.import_role(dotted) == role


@pytest.mark.parametrize(
    ("variable", "kind"),
    [("self.env", "env"), ("eval_envs", "env"), ("actor_opt", "optimizer"), ("optimizer_1", "optimizer"), ("lr_scheduler", "scheduler"),
     ("world_model", "world_model"), ("target_net", "target"), ("reward_model", "reward"), ("obs_rms", "normaliser"), ("rb", "buffer")],
)  # fmt: skip
def test_a_variable_is_known_by_its_folded_name(variable: str, kind: str) -> None:
    """Case, outer underscores and digits do not matter; the first entry that fits decides."""
    named = LEXICON.named(variable)
    assert named is not None
    assert named.kind == kind


def test_folding_cuts_self_case_and_digits() -> None:
    """`self._Env_2` is compared as `env`."""
    assert fold("self._Env_2") == "env"


@pytest.mark.parametrize(
    ("function", "region"),
    [("compute_loss", "loss"), ("_value_loss", "loss"), ("update_actor", "update"), ("collect_rollouts", "rollout"), ("evaluate_policy", "evaluation"),
     ("soft_update", "target"), ("sync_weights", "sync"), ("imagine_ahead", "simulation"), ("__getitem__", "dataset"), ("learn", "driver"),
     ("compute_reward", "reward")],
)  # fmt: skip
def test_a_function_is_in_its_region(function: str, region: str) -> None:
    """The plain names of each region."""
    assert region in REGIONS.of(function)


@pytest.mark.parametrize(
    ("function", "region"),
    [("plot_loss", "loss"), ("make_loss", "loss"), ("evaluate_actions", "evaluation"), ("collect_stats", "rollout"), ("log_reward", "reward"),
     ("train_step", "driver"), ("reward_like", "loss")],
)  # fmt: skip
def test_a_name_that_only_holds_the_word_is_not_in_the_region(function: str, region: str) -> None:
    """Exceptions win over the patterns."""
    assert region not in REGIONS.of(function)


def test_gradient_roles_are_on_the_training_side() -> None:
    """Whatever needs gradients belongs to training, and nothing of the sampling side does."""
    assert {role.side for role in LEXICON.roles.values() if role.gradient} == {Side.TRAINING}


def test_every_method_role_is_a_role() -> None:
    """No type, shape or receiver names a role outside the closed list."""
    roles = set(LEXICON.roles) | {""}
    used = {role for methods in LEXICON.methods.values() for role in methods.values()}
    used |= {shape.role for shapes in LEXICON.calls.values() for shape in shapes}
    used |= {role for receiver in LEXICON.receivers for role in receiver.methods.values()}
    assert used <= roles
