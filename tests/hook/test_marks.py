"""What a project writes into its own code."""

from __future__ import annotations

import asyncio
import inspect
import logging
import pickle
import threading

import pytest

from gyrecheck.hook import ledger, load, log_calls, publish, sampling, tag, training
from gyrecheck.hook import runtime as runtimes
from gyrecheck.hook.environments import Environments
from gyrecheck.stream.shards import events_of, read_run


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A runtime of its own in `tmp_path`; calling the fixture reads what it has written."""
    monkeypatch.setattr(runtimes, "_CURRENT", [])
    monkeypatch.setattr(runtimes.os, "register_at_fork", lambda **_: None)
    runtimes.open_in(str(tmp_path), "r1")

    def read():
        found = read_run(tmp_path)
        assert found is not None
        return found

    return read


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


class Inner:
    """An environment of our own."""

    def reset(self):
        return 0

    def step(self, action):
        return action + 1


class Wrapped(Inner):
    """One that steps another through a method of its own; it waits inside its step when asked to."""

    def __init__(self):
        self.inner, self.entered, self.leave = Inner(), threading.Event(), threading.Event()
        self.leave.set()

    def _advance(self, action):
        return self.inner.step(action)

    def step(self, action):
        self.entered.set()
        self.leave.wait(10)
        return self._advance(action)


@pytest.fixture
def counted(run, monkeypatch):
    """Both classes counted as environments; put back afterwards."""
    for kind in (Inner, Wrapped):
        monkeypatch.setattr(kind, "step", kind.__dict__["step"])
        monkeypatch.setattr(kind, "reset", Inner.__dict__["reset"])
    found = Environments(runtimes.current(), {"step": ["step"], "reset": ["reset"], "never": []})
    for kind in (Inner, Wrapped):
        found.consider(kind)
    return run


def test_a_step_within_a_step_counts_once(counted):
    """Three steps of an env that steps another are three sample calls, two of the inner one alone are two more, an error leaves none open."""
    env = Wrapped()
    assert [env.step(n) for n in range(3)] == [1, 2, 3]
    assert [Inner().step(n) for n in range(2)] == [1, 2]
    with pytest.raises(TypeError):
        env.step("x")
    assert counted().calls("S") == 6


def test_an_env_that_stood_alone_is_no_second_call_inside_a_wrapper(counted):
    """2,100 steps of an env alone, 1,500 of a wrapper around it and 7 alone are 3,607: where it lies is seen at the first step after a reset."""
    env, alone = Wrapped(), Inner()
    for n in range(2_100):
        alone.step(n)
    for n in range(1_200):
        env.step(n)
        if n == 600:
            env.reset()
    for n in range(300):
        env.step(n)
    for n in range(7):
        alone.step(n)
    assert counted().calls("S") == 3_607


def test_an_env_that_is_wrapped_late_counts_once(counted, monkeypatch):
    """An env class that takes 1,500 steps around another kind and then around one that had 1,500 of its own: 1,500 + 1,500 + 20."""

    class Other(Inner):
        """Not counted."""

    monkeypatch.setattr(Other, "step", lambda _self, action: action)
    env, alone = Wrapped(), Inner()
    inner, env.inner = env.inner, Other()
    for n in range(1_500):
        env.step(n)
        alone.step(n)
    env.inner = inner
    env.reset()
    for n in range(20):
        env.step(n)
    assert counted().calls("S") == 3_020


def test_a_step_that_waits_hides_no_other_thread(counted):
    """While one thread is inside its step, the four steps of another thread count."""
    slow = Wrapped()
    slow.leave.clear()
    thread = threading.Thread(target=slow.step, args=(1,))
    thread.start()
    slow.entered.wait(10)
    for n in range(4):
        Inner().step(n)
    slow.leave.set()
    thread.join()
    assert counted().calls("S") == 5


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


def test_ledger_terms_add_up_and_are_one_set(run):
    """What is told per batch adds up, a level is set; the sequence is even when no set is being written; an unknown name is an event."""
    ledger(sampled=100, taken=60, dropped_stale=30, left=10)
    ledger(sampled=20, taken=30, left=0, nonsense=3)
    cells = run().processes[0].cells
    assert [cells[name] for name in ("sampled", "taken", "dropped_stale", "left")] == [120, 90, 30, 0]
    assert cells["sequence"] == 4
    assert run().of("unknown_term")[0].words("names") == ("nonsense",)


def test_a_running_total_is_set_and_its_fall_is_noticed(run):
    """`sampled_total` is the total itself; one that falls is an event with both values, once, and its ledger is not balanced any more."""
    ledger(sampled_total=100, taken_total=90)
    ledger(sampled_total=130, taken_total=120)
    assert [run().processes[0].cells[name] for name in ("sampled", "taken")] == [130, 120]
    assert [(e.kind, e.value) for e in events_of(run())][:2] == [("sampled", 130), ("taken", 120)]
    ledger(sampled_total=40)
    ledger(sampled_total=30)
    told = run().of("total_fell")
    assert [(e.text("name"), e.number("before"), e.number("after")) for e in told] == [("sampled_total", 130, 40)]
    assert told[0].text("site").split()[-1] == "test_a_running_total_is_set_and_its_fall_is_noticed"
    assert not list(events_of(run()))


def test_an_update_within_an_update_is_no_further_one(run):
    """A marked update that holds two others, as it may hold optimizer steps, counts once; beside it they count themselves."""

    @training("step")
    def step():
        pass

    @training("update")
    def update():
        step()
        step()

    update()
    step()
    process = run().processes[0]
    assert process.calls("T") == 2
    assert process.calls("T", marked=True) == 4


def test_tags_carry_step_time_and_version(run):
    """A record's tags name the sample step, the wall clock and the newest loaded version, or what the caller says."""
    before = tag()
    load(7)
    after = tag(sample_step=40)
    assert before["policy_version"] == -1
    assert after["policy_version"] == 7
    assert after["sample_step"] == 40
    assert after["wall_clock"] >= before["wall_clock"]
    assert tag(policy_version=3)["policy_version"] == 3


def test_versions_are_noted(run):
    """publish() and load() leave their newest version in the counters and an event each."""
    publish(1)
    publish(2)
    load(1)
    cells = run().processes[0].cells
    assert (cells["published"], cells["published_version"], cells["loaded"], cells["loaded_version"]) == (2, 2, 1, 1)
    assert [e.number("version") for e in run().of("publish")] == [1, 2]


def test_human_lines_are_the_source_texts(run, caplog):
    """`sample_call n=... args=...` and `update_call n=...` come through logging when asked for, and stop when no longer wanted."""

    @sampling
    def rollout(count):
        pass

    @training
    def update():
        pass

    with caplog.at_level(logging.INFO, "gyrecheck"):
        log_calls()
        rollout(3)
        update()
        rollout(3)
        log_calls(on=False)
        rollout(3)
    assert [r.getMessage() for r in caplog.records] == ["sample_call n=1 args=int", "update_call n=1 args=", "sample_call n=2 args=int"]


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
