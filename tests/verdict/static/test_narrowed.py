"""What several shapes ask for before they tell: each sample and its twin differ in one place."""

from __future__ import annotations

import pytest

from tests.verdict.static.test_seen_elsewhere_too import told


@pytest.mark.parametrize(
    ("question", "count"),
    [("r.state != 'failed'", 1), ("r.status != 'failed'", 1), ("not r.aborted", 1), ("len(r.tokens) > 4", 0), ("r.reward_std > 0", 0)],
)
def test_only_a_filter_of_failed_samples_must_not_fall_back(tmp_path, question, count):
    """The filter's own question names a failure; one about a length or a spread leaves out nothing that failed."""
    (tmp_path / "groups.py").write_text(
        f"def keep(group):\n    status = 0\n    usable = [r for r in group if {question}]\n    return usable or group\n"
    )
    assert told(tmp_path, "GYR312") == count


@pytest.mark.parametrize(("more", "count"), [("clip_grad_norm_(self.critic.parameters(), 0.5)", 0), ("log(loss)", 1)])
def test_a_norm_is_measured_beside_the_clip_that_counts(tmp_path, more, count):
    """Where the network that steps is clipped as well, the other clip gives a number for the log."""
    (tmp_path / "learner.py").write_text(
        "import torch\nfrom torch.nn.utils import clip_grad_norm_\n\nclass Learner:\n    def __init__(self, actor, critic):\n"
        "        self.actor, self.critic = actor, critic\n        self.actor_opt = torch.optim.Adam(self.actor.parameters())\n"
        "        self.critic_opt = torch.optim.Adam(self.critic.parameters())\n\n    def update(self, batch):\n"
        "        loss = self.critic.loss(batch)\n        self.critic_opt.zero_grad()\n        loss.backward()\n"
        f"        clip_grad_norm_(self.actor.parameters(), 0.5)\n        {more}\n        self.critic_opt.step()\n"
    )
    assert told(tmp_path, "GYR228") == count


@pytest.mark.parametrize(("density", "count"), [("SquashedNormal(mean, std)", 0), ("Normal(mean, std)", 1)])
def test_a_clip_of_a_draw_that_is_bounded_anyway(tmp_path, density, count):
    """A draw that tanh has squashed lies within the bounds; one of a normal density is another action once it is clipped."""
    (tmp_path / "act.py").write_text(
        f"import torch\n\nclass Actor(torch.nn.Module):\n    def act(self, obs):\n        mean, std = self.net(obs)\n        dist = {density}\n"
        "        action = dist.sample()\n        logp = dist.log_prob(action).sum(-1)\n        return action.clamp(-1.0, 1.0), logp\n\n"
        "def collect(env, actor, buffer):\n    obs, _ = env.reset()\n    for _ in range(100):\n        action, logp = actor.act(obs)\n"
        "        nxt, reward, done, cut, _ = env.step(action)\n        buffer.add(obs, action, logp, reward, done)\n        obs = nxt\n"
    )
    assert told(tmp_path, "GYR315") == count


@pytest.mark.parametrize(("factor", "count"), [("1 - decay_rate * num_elapsed", 0), ("1 - step / total_steps", 1)])
def test_a_share_taken_off_the_rate_is_a_decay(tmp_path, factor, count):
    """Taken off by a rate it is a plain decay; by the progress of the whole run it compounds."""
    given = "decay_rate, num_elapsed, step, total_steps"
    (tmp_path / "rate.py").write_text(
        f"import torch\n\ndef lower(optimizer, {given}):\n    for group in optimizer.param_groups:\n        group['lr'] *= {factor}\n"
    )
    assert told(tmp_path, "GYR230") == count


@pytest.mark.parametrize(("gate", "count"), [("step - last >= 4", 0), ("step > 4", 1)])
def test_two_gates_at_one_pace(tmp_path, gate, count):
    """A gate that is open on every pass delays nothing, but that is told only where something else is trained without an interval."""
    (tmp_path / "fit.py").write_text(
        "def main(envs, agent, model, memory, agent_opt, model_opt):\n    obs, _ = envs.reset()\n    step, last = 0, 0\n    while step < 100000:\n"
        "        actions = agent.act(obs)\n        obs, rewards, terminated, truncated, _ = envs.step(actions)\n        memory.add(actions, rewards)\n"
        "        step += 8\n        if step % 4 == 0:\n            loss = agent.loss(memory.sample(256))\n            agent_opt.zero_grad()\n"
        f"            loss.backward()\n            agent_opt.step()\n        if {gate}:\n            last = step\n"
        "            loss = model.loss(memory.sample(256))\n            model_opt.zero_grad()\n            loss.backward()\n            model_opt.step()\n"
    )
    assert told(tmp_path, "GYR226") == count
