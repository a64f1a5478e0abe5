"""More idioms of code bases that were no model for the rules, each with a near twin that is still told."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app

COLLECT = """
import torch

class Actor(torch.nn.Module):
    def forward(self, obs):
        return self.net(obs)

def {name}(env, obs, rows):
    actor = Actor()
    for _ in range(8):
        action = actor(torch.as_tensor(obs))
        obs, reward, done, info = env.step(action)
        rows.append((obs, action))
"""


def told(folder, code, least=("warning", "error")):
    """How many findings of one code stand at one of the levels `least`."""
    done = CliRunner().invoke(build_app(), ["lint", "--no-cache", "--topology", "decoupled", "--output-format", "json", str(folder)])
    return len([f for f in json.loads(done.stdout)["findings"] if f["code"] == code and f["severity"] in least])


@pytest.mark.parametrize(
    ("clear", "count"),
    [("zero_optim_grads(self.optimizer)", 0), ("zero_optim_grads(self.optimizer._optimizer)", 0), ("look(self.optimizer)", 1)],
)
def test_a_function_that_clears_by_name(tmp_path, clear, count):
    """`zero_optim_grads(optimizer)` of another package clears like `optimizer.zero_grad()`, also on the optimizer that is wrapped."""
    (tmp_path / "fit.py").write_text(
        "import torch\nfrom functions import look, zero_optim_grads\n\nclass Fit:\n    def __init__(self, net):\n"
        "        self.net, self.optimizer = net, torch.optim.Adam(net.parameters())\n\n    def run(self, batches):\n"
        f"        for batch in batches:\n            loss = self.net(batch).mean()\n            {clear}\n            loss.backward()\n"
        "            self.optimizer.step()\n"
    )
    (tmp_path / "functions.py").write_text("def look(it):\n    print(it)\n\ndef zero_optim_grads(it):\n    print(it)\n")
    assert told(tmp_path, "GYR206") == count


@pytest.mark.parametrize(("first", "count"), [("None", 0), ("Net()", 1)])
def test_two_names_for_nothing_are_no_copy(tmp_path, first, count):
    """`self.net = None` and `self.net_target = self.net` stand there until a subclass fills both; after a network it is one object."""
    (tmp_path / "agent.py").write_text(
        "import torch\n\nclass Net(torch.nn.Module):\n    pass\n\nclass Agent:\n    def __init__(self):\n"
        f"        self.net = {first}\n        self.net_target = self.net\n        self.optimizer = torch.optim.Adam(self.net.parameters())\n\n"
        "    def update(self, batch):\n        with torch.no_grad():\n            aim = batch['reward'] + self.net_target(batch['next_obs'])\n"
        "        loss = (self.net(batch['obs']) - aim).square().mean()\n        self.optimizer.zero_grad()\n        loss.backward()\n"
        "        self.optimizer.step()\n"
    )
    assert told(tmp_path, "GYR109") == count


@pytest.mark.parametrize(
    ("file", "more", "count"),
    [
        ("collect.py", "", 1),
        ("evaluator.py", "", 0),
        ("collect.py", "\ndef train():\n    torch.set_grad_enabled(False)\n", 0),
        ("collect.py", "\ndef train():\n    torch.set_grad_enabled(True)\n", 1),
    ],
)
def test_a_recorded_forward_weighs_by_its_place(tmp_path, file, more, count):
    """It is a warning where samples are collected, and a note in an evaluator or where a statement may have switched recording off."""
    (tmp_path / file).write_text(COLLECT.replace("{name}", "collect") + more)
    assert told(tmp_path, "GYR103") == count
    assert count or told(tmp_path, "GYR103", ("note",))


@pytest.mark.parametrize(("name", "count"), [("rewards", 0), ("values", 1)])
def test_a_reward_that_a_network_hands_back_carries_no_graph(tmp_path, name, count):
    """A solver gives rewards with its log-probs; less a baseline they are an advantage that pulls on nothing. A value's would."""
    (tmp_path / "solve.py").write_text(
        "import torch\n\ndef train(net: torch.nn.Module, optimizer, batches, mean):\n    for batch in batches:\n"
        f"        {name}, logp, actions = net(batch)\n        advantage = mean - {name}\n        loss = (advantage * logp).mean()\n"
        "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n"
    )
    assert told(tmp_path, "GYR214") == count


@pytest.mark.parametrize(("head", "count"), [("if __name__ == '__main__':", 0), ("def collect(Env):", 1)])
def test_a_file_that_shows_its_environment_may_seed_each_reset(tmp_path, head, count):
    """An interactive loop below `__main__` shows the same question each time; a sampler that does so sees one episode only."""
    (tmp_path / "env.py").write_text(
        "import gymnasium as gym\nimport torch\n\nclass Ask(gym.Env):\n    pass\n\n"
        f"{head}\n    env = gym.make('Ask-v0')\n    while True:\n        obs = env.reset(seed=42)\n        done = False\n"
        "        while not done:\n            obs, reward, done, cut, info = env.step(0)\n"
    )
    assert told(tmp_path, "GYR318") == count


@pytest.mark.parametrize(("fill", "count"), [("5", 0), ("0", 1)])
def test_a_larger_whole_number_is_a_setting(tmp_path, fill, count):
    """A timeout that is set to 5 is no end flag that was made up; one of 0 may be."""
    (tmp_path / "batch.py").write_text(
        "import torch\n\ndef update(optimizer, batch, net):\n    if 'timeout' not in batch:\n"
        f"        batch['timeout'] = {fill}\n    loss = net(batch['obs']).mean()\n    optimizer.zero_grad()\n    loss.backward()\n"
        "    optimizer.step()\n"
    )
    assert told(tmp_path, "GYR304") + told(tmp_path, "GYR312") == count


@pytest.mark.parametrize(("after", "count"), [("net.load_state_dict(torch.load('net.pt'))\nprint(net)", 0), ("fit(net, optimizer)", 1)])
def test_a_network_made_to_look_at_what_was_saved(tmp_path, after, count):
    """A second network after the last step belongs to no optimizer and needs none; one that is trained on does."""
    (tmp_path / "tutorial.py").write_text(
        "import torch\n\nclass Net(torch.nn.Module):\n    pass\n\ndef fit(net, optimizer):\n    loss = net(torch.ones(2)).mean()\n"
        "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n\nnet = Net()\n"
        f"optimizer = torch.optim.Adam(net.parameters())\nfit(net, optimizer)\nnet = Net()\n{after}\n"
    )
    assert told(tmp_path, "GYR224") == count


@pytest.mark.parametrize(("base", "count"), [("PPOTrainer", 0), ("Sampler", 1)])
def test_a_trainer_of_another_package_makes_its_schedule(tmp_path, base, count):
    """A class that inherits another package's trainer learns by it, whatever of it is seen here; a sampler that makes a schedule does not."""
    (tmp_path / "ppo.py").write_text(
        f"import torch\nfrom transformers.optimization import get_scheduler\nfrom elsewhere import {base}\n\nclass Custom({base}):\n"
        "    def rounds(self, prompts, optimizer):\n        schedule = get_scheduler('linear', optimizer=optimizer)\n"
        "        for prompt in prompts:\n            answer = self.model.generate(prompt)\n            self.keep(prompt, answer)\n        return schedule\n"
    )
    assert told(tmp_path, "GYR106") == count


@pytest.mark.parametrize(("then", "count"), [("shutdown_event.set()", 0), ("pass", 1)])
def test_a_handler_that_ends_the_run_swallows_nothing(tmp_path, then, count):
    """A producer that sets the event all others wait for has told them; one that passes goes on as if nothing were."""
    (tmp_path / "feed.py").write_text(
        "def producer(env, queue, shutdown_event):\n    while not shutdown_event.is_set():\n        try:\n"
        "            row = env.step(env.action_space.sample())\n            queue.put(row)\n"
        f"        except Exception:\n            {then}\n"
    )
    assert told(tmp_path, "GYR311") == count


DRAWS = """
import random
import torch

class ReplayBuffer:
    def __init__(self):
        self.rows = []

    def insert(self, *row):
        self.rows.append(row)

    def sample(self, count):
        return random.choices(self.rows, k=count)

class Trainer:
    def __init__(self, net):
        self.net, self.opt = net, torch.optim.Adam(net.parameters())

    def train_on(self, rows):
        loss = self.net.loss(rows)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

class Runner:
    def __init__(self, env, net):
        self.env, self.net, self.buffer, self.trainer, self.seen = env, net, ReplayBuffer(), Trainer(net), 0

    def batch_train(self):
        self.trainer.train_on({rows})

    def collect_rollout(self, obs):
        for _ in range(200):
            nxt, reward, terminated, truncated, _ = self.env.step(self.net.act(obs))
            self.buffer.insert(obs, reward, nxt, terminated)
            obs, self.seen = nxt, self.seen + 1
            if self.seen % 50 == 0:
                self.batch_train()
"""


@pytest.mark.parametrize(("rows", "count"), [("self.buffer.sample(64)", 0), ("self.buffer.rows[-50:]", 1)])
def test_a_memory_of_the_projects_own(tmp_path, rows, count):
    """Learning between environment steps is off-policy code when its rows are drawn from a memory, of whatever class; else a crossing."""
    (tmp_path / "runner.py").write_text(DRAWS.replace("{rows}", rows))
    assert told(tmp_path, "GYR101", ("error",)) == count


@pytest.mark.parametrize(("length", "count"), [("total", 0), ("total // 2048", 1)])
def test_a_schedule_as_long_as_the_loop_it_advances_in(tmp_path, length, count):
    """Advanced with every environment step and as long as there are steps: a rate by steps. Counted in updates it ends too early."""
    (tmp_path / "fit.py").write_text(
        "import torch\nfrom torch.optim.lr_scheduler import CosineAnnealingLR\n\ndef fit(env, net, memory, total):\n"
        f"    opt = torch.optim.Adam(net.parameters())\n    schedule = CosineAnnealingLR(opt, T_max={length})\n    done, obs = 0, env.reset()[0]\n"
        "    while done < total:\n        obs, reward, terminated, truncated, _ = env.step(net.act(obs))\n        memory.add(obs, reward)\n"
        "        if done > 1000:\n            loss = net.loss(memory.sample(64))\n            opt.zero_grad()\n            loss.backward()\n"
        "            opt.step()\n        done += 1\n        schedule.step()\n"
    )
    assert told(tmp_path, "GYR205") == count


@pytest.mark.parametrize(("flag", "count"), [("self.log_video_flag", 0), ("self.refill", 1)])
def test_samples_for_a_video(tmp_path, flag, count):
    """A trainer that generates behind a condition on its log or video shows what the model can do; behind another one it crosses."""
    (tmp_path / "cloning.py").write_text(
        "import torch\n\nclass CloneTrainer:\n    def __init__(self, model, opt):\n        self.model, self.opt = model, opt\n\n"
        "    def sample(self, batch):\n        self.model.generate(batch['input_ids'], max_new_tokens=64, do_sample=True)\n\n"
        "    def forward(self, batches):\n        for at, batch in enumerate(batches):\n            loss = self.model(batch).loss\n"
        "            self.opt.zero_grad()\n            loss.backward()\n            self.opt.step()\n"
        f"            if {flag} and at % 100 == 0:\n                self.sample(batch)\n\n    def again(self, batches):\n        self.forward(batches)\n"
    )
    assert told(tmp_path, "GYR204") == count


@pytest.mark.parametrize(("folder", "count"), [("math_eval", 0), ("math_train", 1)])
def test_scores_read_back_by_an_evaluation(tmp_path, folder, count):
    """A folder named after evaluation counts what it reads back; elsewhere an absent score must not become a value."""
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "collect.py").write_text(
        "import json\n\ndef tally(lines):\n    rows = []\n    for line in lines:\n        record = json.loads(line)\n"
        "        rows.append({'reward': record.get('score', 0.0), 'tokens': record['tokens']})\n    return rows\n"
    )
    assert told(tmp_path, "GYR312") == count


@pytest.mark.parametrize(("made", "count"), [("torch.where(action == 1)[1]", 0), ("torch.randint(0, 4, (1,))", 1)])
def test_an_action_in_another_form(tmp_path, made, count):
    """A one-hot action kept as its index is the same action; another draw under its name is not the one that the log-prob is of."""
    (tmp_path / "act.py").write_text(
        "import torch\n\ndef act(actor, feat, rows):\n    dist = actor(feat)\n    action = dist.sample()\n    logprob = dist.log_prob(action)\n"
        f"    action = {made}\n    rows.append({{'action': action, 'logprob': logprob}})\n"
    )
    assert told(tmp_path, "GYR315") == count


@pytest.mark.parametrize(("fresh", "count"), [("rows = net.generate(part, max_new_tokens=5)", 0), ("rows = part", 1)])
def test_passes_over_answers_that_are_sampled_for_each_batch(tmp_path, fresh, count):
    """Prompts come in parts, and the passes over their fresh answers lie inside; over the parts of rows that are there they lie outside."""
    (tmp_path / "tune.py").write_text(
        "import torch\n\ndef tune(net, opt, prompts, ppo_epochs, size):\n    for part in prompts.split(size):\n"
        f"        {fresh}\n        for _ in range(ppo_epochs):\n            loss = net.loss(part, rows)\n            opt.zero_grad()\n"
        "            loss.backward()\n            opt.step()\n"
    )
    assert told(tmp_path, "GYR219") == count


@pytest.mark.parametrize(("given", "count"), [("params", 0), ("net.parameters()", 1)])
def test_parameters_that_are_gathered_in_a_list(tmp_path, given, count):
    """A plain tensor is held when the list that the optimizer is given was joined with it, however often its name was bound."""
    (tmp_path / "fit.py").write_text(
        "import torch\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.body = torch.nn.Linear(4, 2)\n"
        "        self.spread = torch.zeros(2, requires_grad=True)\n\n    def forward(self, x):\n        return self.body(x) * self.spread.exp()\n\n"
        "def fit(batches):\n    net = Net()\n    params = list(net.parameters())\n    params = params + [net.spread]\n    params = list(params)\n"
        f"    opt = torch.optim.Adam({given}, lr=3e-4)\n    for batch in batches:\n        loss = net(batch).mean()\n        opt.zero_grad()\n"
        "        loss.backward()\n        opt.step()\n"
    )
    assert told(tmp_path, "GYR224") == count


@pytest.mark.parametrize(("inside", "count"), [("self.register_buffer('at', torch.arange(n))", 0), ("self.at = torch.nn.Linear(n, n)", 1)])
def test_a_plain_list_of_parts_without_weights(tmp_path, inside, count):
    """Parts of a network that hold buffers only have nothing to train, and may lie in a plain list; parts with layers may not."""
    (tmp_path / "fit.py").write_text(
        "import torch\n\nclass Part(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        f"        {inside}\n\n    def forward(self, x):\n        return x\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.body = torch.nn.Linear(4, 2)\n        self.parts = [Part(n) for n in (2, 3)]\n\n"
        "    def forward(self, x):\n        for part in self.parts:\n            x = part(x)\n        return self.body(x)\n\n"
        "def fit(batches):\n    net = Net()\n    opt = torch.optim.Adam(net.parameters(), lr=3e-4)\n    for batch in batches:\n"
        "        loss = net(batch).mean()\n        opt.zero_grad()\n        loss.backward()\n        opt.step()\n"
    )
    assert told(tmp_path, "GYR224") == count


ACT = """
import torch

class Policy(torch.nn.Module):
    def forward(self, obs):
        return self.net(obs), self.spread(obs)

    def get_action(self, obs, greedy):
        mean, spread = self.forward(torch.as_tensor(obs))
        action = torch.tanh(mean + spread * torch.randn(()))
        action = torch.tanh(mean){cut} if greedy else action{cut}
        return action

def collect(env, policy: torch.nn.Module, rows):
    obs = env.reset()
    for _ in range(8):
        action = policy.get_action(obs, False)
        obs, reward, done, info = env.step(action)
        rows.append((obs, action))
"""


@pytest.mark.parametrize(("cut", "count"), [(".detach().cpu().numpy()[0]", 0), ("[0]", 1)])
def test_an_action_given_as_numbers(tmp_path, cut, count):
    """A method that gives its action back as numbers keeps no graph, whatever is computed on the way; as a tensor it does."""
    (tmp_path / "collect.py").write_text(ACT.replace("{cut}", cut))
    assert told(tmp_path, "GYR103") == count


@pytest.mark.parametrize(("rows", "count"), [("memory.sample(64)", 0), ("memory.rows[-64:]", 1)])
def test_the_loop_itself_draws_from_its_memory(tmp_path, rows, count):
    """A loop that steps the environment, draws from its memory and hands that to the learning step is off-policy code."""
    (tmp_path / "run.py").write_text(
        "import torch\n\nclass Dqn:\n    def __init__(self, net):\n        self.net, self.opt = net, torch.optim.Adam(net.parameters())\n\n"
        "    def learn(self, rows):\n        loss = self.net.loss(rows)\n        self.opt.zero_grad()\n        loss.backward()\n        self.opt.step()\n\n"
        "def rollout(env, model: Dqn, memory, act):\n    obs = env.reset()\n    for _ in range(999):\n        nxt, reward, done, info = env.step(act(obs))\n"
        f"        memory.add((obs, nxt, reward, done))\n        rows = {rows}\n        model.learn(rows)\n        obs = nxt\n"
    )
    assert told(tmp_path, "GYR101") == count


@pytest.mark.parametrize(("reset", "count"), [("self.net.state = None", 0), ("self.seen = None", 1)])
def test_a_state_begun_anew_by_its_owner(tmp_path, reset, count):
    """A recurrent state that the agent begins anew through its network ends there; one that nobody touches runs through all updates."""
    (tmp_path / "agent.py").write_text(
        "import torch\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.cell = torch.nn.GRU(4, 4)\n"
        "        self.state = None\n\n    def values(self, x):\n        out, self.state = self.cell(x, self.state)\n        return out\n\nclass Agent:\n"
        "    def __init__(self):\n        self.net = Net()\n        self.opt = torch.optim.Adam(self.net.parameters())\n\n    def begin(self):\n"
        f"        {reset}\n\n    def update(self, batches):\n        for batch in batches:\n            self.begin()\n            loss = self.net.values(batch).mean()\n"
        "            self.opt.zero_grad()\n            loss.backward()\n            self.opt.step()\n"
    )
    assert told(tmp_path, "GYR215") == count


@pytest.mark.parametrize(
    ("then", "count"), [("net.fit(actions, logps)", 0), ("opt.zero_grad(); net.loss(actions, logps).backward(); opt.step()", 0)]
)
def test_actions_of_a_target(tmp_path, then, count):
    """Actions drawn anew inside an update are nobody's record, in whatever form they are kept."""
    (tmp_path / "target.py").write_text(
        "import torch\n\ndef update(agents, batch, net, opt, one_hot):\n    actions, logps = {}, {}\n    for name, actor in agents.items():\n"
        "        dist = torch.distributions.Categorical(logits=actor(batch[name]))\n        act = dist.sample()\n        logp = dist.log_prob(act)\n"
        f"        act = one_hot(4)\n        actions[name] = act\n        logps[name] = logp\n    {then}\n    net.loss(batch).backward()\n    opt.step()\n"
    )
    assert told(tmp_path, "GYR315") == count


@pytest.mark.parametrize(("name", "count"), [("reset", 0), ("gather", 1)])
def test_a_wrapper_that_resets_with_the_seed_it_is_given(tmp_path, name, count):
    """The reset of a wrapper hands its seed on, however often it tries; a collector that does so begins all episodes alike."""
    (tmp_path / "wrap.py").write_text(
        "import gymnasium as gym\n\nclass Skip:\n    def __init__(self, env: gym.Env):\n        self.env = env\n\n"
        f"    def {name}(self, seed, count, rows):\n        for _ in range(count):\n            obs, info = self.env.reset(seed=seed)\n"
        "            obs, reward, terminated, truncated, info = self.env.step(0)\n            rows.append((obs, reward, terminated, truncated))\n"
    )
    assert told(tmp_path, "GYR318") == count


@pytest.mark.parametrize(("second", "count"), [("self.model.critic", 0), ("Critic()", 1)])
def test_a_network_with_a_second_name(tmp_path, second, count):
    """An optimizer over `self.q`, which is `self.model.critic`, moves what is clipped as `self.model.critic`; over another one it does not."""
    (tmp_path / "agent.py").write_text(
        "import torch\nfrom torch.nn.utils import clip_grad_norm_\nfrom nets import Critic\n\nclass Agent:\n    def __init__(self, model):\n"
        f"        self.model = model\n        self.q = {second}\n        self.q_opt = torch.optim.Adam(self.q.parameters())\n"
        "        self.v_opt = torch.optim.Adam(model.critic.parameters())\n\n    def update(self, batch):\n        loss = self.model.loss(batch)\n"
        "        self.q_opt.zero_grad()\n        loss.backward()\n        clip_grad_norm_(self.model.critic.parameters(), 0.5)\n        self.q_opt.step()\n"
    )
    assert told(tmp_path, "GYR228") == count


@pytest.mark.parametrize(("guard", "count"), [("torch.no_grad()", 0), ("timed()", 1)])
def test_a_caller_in_another_file_switches_recording_off(tmp_path, guard, count):
    """Targets that are put into the batch carry no graph where the only caller, whatever its file, works under `no_grad`."""
    (tmp_path / "agent.py").write_text(
        "class Agent:\n    def __init__(self, policy, critic, opt):\n        self.policy, self.critic, self.opt = policy, critic, opt\n\n"
        "    def prepare(self, batch):\n        batch['advantages'] = batch['returns'] - self.critic.value(batch['obs'])\n        return batch\n\n"
        "    def update(self, batch):\n        loss = -(self.policy.log_prob(batch['obs']) * batch['advantages']).mean()\n"
        "        self.opt.zero_grad()\n        loss.backward()\n        self.opt.step()\n"
    )
    (tmp_path / "main.py").write_text(
        f"import torch\nfrom clock import timed\n\ndef main(agent, feed):\n    for batch in feed:\n        with {guard}:\n"
        "            batch = agent.prepare(batch)\n        agent.update(batch)\n"
    )
    assert told(tmp_path, "GYR214") == count


@pytest.mark.parametrize(("over", "count"), [("[action]", 0), ("policy.parameters()", 1)])
def test_a_planner_that_moves_the_action_trains_nothing(tmp_path, over, count):
    """An optimizer over the action alone, reached from sampling, moves no network; one over the policy's parameters does."""
    (tmp_path / "collect.py").write_text(
        "import torch\n\ndef refine(model, policy, obs):\n    action = policy(obs).detach().requires_grad_(True)\n"
        f"    opt = torch.optim.Adam({over}, lr=0.1)\n    loss = -model(obs, action).sum()\n    opt.zero_grad()\n    loss.backward()\n"
        "    opt.step()\n    return action.detach()\n\ndef rollout(env, model, policy, rows):\n    obs, _ = env.reset()\n"
        "    for _ in range(8):\n        action = refine(model, policy, torch.as_tensor(obs))\n"
        "        obs, reward, terminated, truncated, _ = env.step(action.numpy())\n        rows.append((action, reward))\n"
        "        if terminated or truncated:\n            obs, _ = env.reset()\n"
    )
    assert told(tmp_path, "GYR101") == count


@pytest.mark.parametrize(
    ("around", "count"),
    [
        ("    try:\n        while True:\n            conn.send(env.step(conn.recv()))\n    except Exception as e:\n        print(e)\n", 0),
        ("    while True:\n        try:\n            conn.send(env.step(conn.recv()))\n        except Exception:\n            pass\n", 1),
    ],
)
def test_a_worker_that_says_it_and_ends(tmp_path, around, count):
    """A handler around the whole loop of a worker that prints the error ends the worker; inside of the loop it hides a sample."""
    (tmp_path / "worker.py").write_text(f"import gymnasium as gym\n\ndef work(conn, name):\n    env = gym.make(name)\n{around}")
    assert told(tmp_path, "GYR311") == count


@pytest.mark.parametrize(("drawn", "count"), [("sample().item()", 0), ("log_prob(prob)", 1)])
def test_only_the_parts_that_carry_a_graph_are_followed(tmp_path, drawn, count):
    """An action given back as a number beside the probabilities, of which one number is stored, keeps no graph; a log-prob does."""
    (tmp_path / "act.py").write_text(
        "import torch\n\nclass Agent(torch.nn.Module):\n    def choose_action(self, s):\n        prob = self.pi(torch.from_numpy(s))\n"
        f"        a = torch.distributions.Categorical(prob).{drawn}\n        return a, prob\n\ndef run(env, rows):\n    model = Agent().to(0)\n"
        "    s, _ = env.reset()\n    for _ in range(9):\n        a, prob = model.choose_action(s)\n"
        "        s_prime, r, done, cut, info = env.step(a)\n        rows.append((s, a, r, s_prime, prob[0].item(), done))\n"
        "        s = s_prime\n        if done or cut:\n            s, _ = env.reset()\n"
    )
    assert told(tmp_path, "GYR103") == count
