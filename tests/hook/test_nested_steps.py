"""Environment steps that lie inside other ones."""

from __future__ import annotations

import threading

import pytest

from gyrecheck.hook import runtime as runtimes
from gyrecheck.hook.environments import Environments


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
    asked = {entry.label.split(".")[-2]: entry.nested for entry in runtimes.current().entries["S"].values()}
    assert asked == {"Inner": True, "Wrapped": False}  # only the inner one pays for asking


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
