"""Whatever is edited between two runs, a kept cache gives what a run without one gives: findings, duties, counts, layout."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gyrecheck.commands.lint_check import Judged, judge_texts
from gyrecheck.commands.lint_rules import Rules, load_rules
from gyrecheck.model.finding import Topology
from gyrecheck.rulebook.project_config import Entrypoints, ProjectConfig
from gyrecheck.source import cache as kept
from gyrecheck.source.cache import Cache, digest
from gyrecheck.source.files import SourceFile
from gyrecheck.source.texts import Text

TREE = {
    "lib/__init__.py": "",
    "lib/envs.py": "import gymnasium\n\n\ndef make():\n    return gymnasium.make('CartPole-v1')\n",
    "lib/roll.py": (
        "from lib.envs import make\n\n\nclass Roller:\n    def __init__(self, policy):\n        self.env = make()\n        self.policy = policy\n\n"
        "    def collect(self, store):\n        obs, _ = self.env.reset()\n        for _ in range(8):\n            action = self.policy(obs)\n"
        "            obs, reward, done, cut, _ = self.env.step(action)\n            store.append((obs, action, reward))\n"
    ),
    "lib/learn.py": (
        "import torch\n\n\ndef helper(batch):\n    return batch\n\n\ndef update(policy, batch):\n    optimizer = torch.optim.Adam(policy.parameters())\n"
        "    loss = policy(helper(batch)).mean()\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    ),
    "main.py": (
        "from lib.roll import Roller\nfrom lib.learn import update\n\n\ndef main(policy):\n    store = []\n    roller = Roller(policy)\n"
        "    for _ in range(3):\n        roller.collect(store)\n        update(policy, store)\n\n\nif __name__ == '__main__':\n    main(None)\n"
    ),
}
Edit = Callable[[dict[str, str], str], None]


def _append(text: str) -> Edit:
    def edit(tree: dict[str, str], path: str) -> None:
        tree[path] += text

    return edit


def _swap(old: str, new: str) -> Edit:
    def edit(tree: dict[str, str], path: str) -> None:
        del path
        tree.update({name: text.replace(old, new) for name, text in tree.items()})

    return edit


def _shift(tree: dict[str, str], path: str) -> None:
    tree[path] = "# moved\n\n" + tree[path]


def _within(tree: dict[str, str], path: str) -> None:
    tree[path] = tree[path].replace("\n    ", "\n    # a word\n    ", 1)


def _rename(tree: dict[str, str], path: str) -> None:
    if path != "main.py":
        tree[path.replace(".py", "_two.py")] = tree.pop(path)


def _remove(tree: dict[str, str], path: str) -> None:
    if len(tree) > 1:
        del tree[path]


EDITS: dict[str, Edit] = {
    "comment": _append("# a word\n"),
    "shift": _shift,
    "comment within": _within,
    "added function": _append("\n\ndef added(value):\n    return str(value)\n"),
    "new callee that steps": _append("\n\ndef peek(env: 'gymnasium.Env'):\n    import gymnasium\n    return env.step(0)\n"),
    "callee begins to step": _swap("    return batch\n", "    import gymnasium\n    return gymnasium.make('a').step(batch)\n"),
    "callee stops": _swap("    import gymnasium\n    return gymnasium.make('a').step(batch)\n", "    return batch\n"),
    "learning removed": _swap("    loss.backward()\n", "    del loss\n"),
    "crossing": _swap("            store.append", "            update(self.policy, store)\n            store.append"),
    "another maker": _swap("return gymnasium.make('CartPole-v1')", "return object()"),
    "renamed module": _rename,
    "removed module": _remove,
    "broken": _append("def (:\n"),
    "ignored": _append("# gyre: ignore-file[GYR301] on purpose\n"),
}
SETTINGS = (
    ProjectConfig(),
    ProjectConfig(carrier="lib.roll"),
    ProjectConfig(entrypoints=Entrypoints(sampler=("lib/roll.py",), trainer=("lib/learn.py",))),
)


@cache
def _rules() -> Rules:
    return load_rules(Cache(None))


def _judged(tree: dict[str, str], store: Cache, topology: Topology | None, config: ProjectConfig, rules: Rules | None = None) -> Judged:
    texts = tuple(Text(SourceFile(Path(n), n), t.encode(), digest(t.encode()), t.encode()) for n, t in sorted(tree.items()))
    return judge_texts(texts, rules or _rules(), store, declared=topology, settings=config, jobs=1)


STEP = st.tuples(
    st.sampled_from(sorted(EDITS)), st.integers(0, 9), st.sampled_from([None, *Topology]), st.sampled_from(range(len(SETTINGS)))
)


@given(st.lists(STEP, min_size=1, max_size=5))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_kept_cache_never_changes_the_result(tmp_path: Path, steps: list[tuple[str, int, Topology | None, int]]) -> None:
    """After each of up to five edits (moved lines, callees that come and go, renamed and broken files, other settings): as without."""
    store, tree = Cache(tmp_path / "kept"), dict(TREE)
    for name, at, topology, config in steps:
        EDITS[name](tree, sorted(tree)[at % len(tree)])
        expected = _judged(tree, Cache(None), topology, SETTINGS[config])
        assert _judged(tree, store, topology, SETTINGS[config]) == expected
        assert _judged(tree, store, topology, SETTINGS[config]) == expected


def test_changed_rules_and_changed_code_are_never_answered_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another rule file and another version of the code each start anew: what was kept before is not read again."""
    before = _judged(TREE, Cache(tmp_path / "kept"), None, ProjectConfig())
    own = tmp_path / "own" / "codes"
    own.mkdir(parents=True)
    text = next((Path(__file__).parents[2] / "rules" / "codes").glob("GYR301-*.toml")).read_text()
    own.joinpath("GYR301-no-standalone-entry.toml").write_text(
        "replaces = true\n" + text.replace('synchronous = "note"', 'synchronous = "warning"')
    )
    rules = load_rules(Cache(None), tmp_path / "own")
    changed = _judged(TREE, Cache(tmp_path / "kept"), None, ProjectConfig(), rules)
    assert changed == _judged(TREE, Cache(None), None, ProjectConfig(), rules)
    assert rules.stamp != _rules().stamp
    monkeypatch.setattr(kept, "code_stamp", lambda: f"another-{os.getpid()}")
    newer = Cache(tmp_path / "kept")
    assert newer.load("results", "0" * 32) is None
    folders = {p.name for p in (tmp_path / "kept").glob("results-*")}
    assert _judged(TREE, newer, None, ProjectConfig()) == before
    assert len({p.name for p in (tmp_path / "kept").glob("results-*")} - folders) == 1
