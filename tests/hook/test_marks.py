"""What a project writes into its own code."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import threading

import pytest

from gyrecheck.hook import ledger, sampling, training
from gyrecheck.hook import runtime as runtimes
from gyrecheck.hook.environments import Environments
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.rulebook.hook_table import load_hook_table
from gyrecheck.rulebook.thresholds import load_thresholds
from gyrecheck.stream.shards import events_of
from gyrecheck.verdict.live import judge_live
from gyrecheck.verdict.ruling import Rules


def module_level(a, b=2, *, c=3):
    """A function that a pickle can name."""
    return a + b + c


def test_decorated_calls_are_counted_and_passed_on(run):
    """Five calls of either side are five, and results, defaults and keywords are the function's own."""

    @sampling
    def rollout(a, b=10):
        return a + b

    @training
    def update(a, *, scale=1):
        return a * scale

    assert [rollout(1), rollout(1, 2), rollout(a=1, b=3)] == [11, 3, 4]
    assert [rollout(2), rollout(2)] == [12, 12]
    assert [update(3), update(3, scale=4)] == [3, 12]
    assert run().calls("S", marked=True) == 5
    assert run().calls("T", marked=True) == 2


def test_wrappers_keep_the_face_of_the_function(run):
    """Name, signature, docstring and errors of the wrapped function are as they were; generators and varargs pass through."""
    counted = sampling(module_level)
    assert counted.__name__ == "module_level"
    assert inspect.signature(counted) == inspect.signature(module_level)
    with pytest.raises(TypeError, match="module_level"):
        counted()

    @sampling
    def many(*args, **kwargs):
        yield from args
        yield from kwargs.values()

    assert list(many(1, 2, z=3)) == [1, 2, 3]


def test_an_exception_passes_unchanged(run):
    """What the function raises comes out, the call is counted, and the side is closed again."""

    @training
    def update():
        raise KeyError("x")

    with pytest.raises(KeyError):
        update()

    @sampling
    def rollout():
        pass

    rollout()
    assert run().calls("T", marked=True) == 1
    assert not run().of("crossing")


def test_scopes_count_and_nest(run):
    """Each entry of a `with` scope is one call, and an update inside a sampling scope is a crossing with its path."""
    for _ in range(3):
        with sampling("rollout"):
            pass
    with sampling("rollout"), training("update"):
        pass
    found = run()
    assert found.calls("S", marked=True) == 4
    assert found.calls("T", marked=True) == 1
    assert [e.text("inner") for e in found.of("crossing")] == ["training"]


def test_a_marked_rollout_is_the_sample_call_and_its_env_steps_are_shown(run):
    """100 marked rollouts of five env steps and 100 marked updates: 100 sample calls to 100 updates, and 500 env steps beside them."""

    class Env:
        def reset(self):
            return 0

        def step(self, action):
            return action

    runtime = runtimes.current()
    Environments(runtime, {"step": ["step"], "reset": ["reset"], "never": []}).consider(Env)
    env = Env()

    @training
    def update():
        pass

    for _ in range(100):
        with sampling("rollout"):
            for action in range(5):
                env.step(action)
        update()
    found = run()
    assert (found.calls("S"), found.env_steps, found.calls("T")) == (100, 500, 100)
    assert [event.value for event in events_of(found) if event.kind == "sample_call"] == [100]
    live = judge_live(found, Rules(load_codes(), load_thresholds(), "decoupled", None), load_hook_table())
    assert "100 sample calls (500 env steps), 100 update calls" in live.heading[0]
    assert any("100 sample calls, 100 update calls: ratio 1 : 1" in v.message for v in live.verdicts)
    assert live.tables is not None
    assert dict(zip(live.tables["processes"].columns, live.tables["processes"].rows[0], strict=True))["env steps"] == 500
    assert (live.statistics or {})["env_steps"] == 500


def test_an_update_below_a_sample_names_the_frames(run):
    """The crossing's path runs from the sampling function to the place that calls the update."""

    @training
    def update():
        pass

    def helper():
        update()

    @sampling
    def rollout():
        helper()

    rollout()
    path = run().of("crossing")[0].words("path")
    assert [word.rpartition(" ")[2] for word in path] == ["rollout", "helper"]


def test_a_sample_below_an_update_is_the_reverse(run):
    """A sampling call from inside an update is a crossing of the other kind."""

    @sampling
    def rollout():
        pass

    @training
    def update():
        rollout()

    update()
    assert [e.text("inner") for e in run().of("crossing")] == ["sampling"]


def test_calls_in_turn_are_no_crossing(run):
    """A driver that calls one side after the other crosses nothing, and its turns are counted."""

    @sampling
    def rollout():
        pass

    @training
    def update():
        pass

    for _ in range(4):
        rollout()
        update()
    found = run()
    assert not found.of("crossing")
    assert found.total("turns_marked") == 4


async def test_an_awaiting_sample_does_not_accuse_another_task(run):
    """While one task awaits a sample another one trains: same thread, no crossing."""
    inside = asyncio.Event()

    @sampling
    async def rollout():
        inside.set()
        await asyncio.sleep(0.01)
        return 5

    @training
    async def update():
        await inside.wait()

    assert (await asyncio.gather(rollout(), update()))[0] == 5
    assert not run().of("crossing")
    assert run().calls("S", marked=True) == run().calls("T", marked=True) == 1


def test_four_threads_lose_nothing(run):
    """4 x 20,000 calls are 80,000."""

    @sampling
    def rollout():
        pass

    threads = [threading.Thread(target=lambda: [rollout() for _ in range(20_000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert run().calls("S", marked=True) == 80_000


def test_call_sites_are_told_apart(run):
    """Two callers of one entry are two sites, and both sums agree with the entry below 1,024 calls."""

    @sampling
    def rollout():
        pass

    for _ in range(7):
        rollout()
    rollout()
    sites = [s for p in run().processes for s in p.sites if not s.entry]
    assert sorted(s.calls for s in sites) == [1, 7]


def test_many_calls_stand_for_more_at_their_site(run):
    """Beyond 1,024 calls one in 1,024 is looked at and stands for all: the site's count stays within one such step of the truth."""

    @sampling
    def rollout():
        pass

    for _ in range(10_000):
        rollout()
    found = [s for p in run().processes for s in p.sites]
    assert next(s.calls for s in found if s.entry) == 10_000
    assert abs(next(s.calls for s in found if not s.entry) - 10_000) <= 1024


def test_marks_without_a_run_folder_do_nothing_visible(monkeypatch, tmp_path):
    """With no run folder the marks count in memory: no file, no message, the same results."""
    monkeypatch.setattr(runtimes, "_CURRENT", [])
    monkeypatch.delenv(runtimes.FOLDER, raising=False)
    monkeypatch.chdir(tmp_path)

    @sampling("entry")
    def rollout():
        return 1

    ledger(sampled=1)
    assert rollout() == 1
    assert not list(tmp_path.iterdir())


def test_a_marked_function_is_pickled_by_its_name(run):
    """A function that its module marks is found again under its name, as process pools need it."""
    globals()["module_level_marked"] = marked = sampling(module_level_for_pickle)
    marked.__qualname__ = marked.__name__ = "module_level_marked"
    if marked.__module__ in __import__("sys").modules:
        assert pickle.loads(pickle.dumps(marked)) is marked


def module_level_for_pickle():
    """Marked above."""


def test_a_wrapper_pickled_by_value_counts_where_it_arrives(run):
    """A class of the main program sent to a worker by value takes no memory of ours along: its cell is found again by name."""
    cloudpickle = pytest.importorskip("cloudpickle")
    space = {"__name__": "__main__", "sampling": sampling}
    exec(  # noqa: S102 - a class of the main program
        "class Env:\n    @sampling('Env.step')\n    def step(self, action):\n        return action + 1", space
    )
    raw = cloudpickle.dumps(space["Env"])
    assert pickle.loads(raw)().step(1) == 2
    assert space["Env"]().step(2) == 3
    assert run().calls("S", marked=True) == 2
