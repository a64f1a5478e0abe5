"""Which network acts, and whether it is the one that is trained: looked at in the first sampling calls after an update.

A forward hook is on only between an update and those calls, for the first `ALWAYS` phases and every `SOMETIMES`-th after that; it is never
switched while a compiler is at work. The modules called last before an env step (or a draw from a distribution, where the program
has no env) are the acting ones.
"""

from __future__ import annotations

import sys
import weakref
from _thread import get_ident

from gyrecheck.hook import side
from gyrecheck.hook.compare import Comparison
from gyrecheck.hook.count import sample_under_update
from gyrecheck.hook.networks import compiling, fingerprint, parameters_of, roots_of, shape_of

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gyrecheck.hook.runtime import Runtime
    from gyrecheck.hook.updates import Updates

ALWAYS = 12
SOMETIMES = 32
WAIT = 16
"""Sampling calls to wait for a forward pass before a phase is given up."""
GRAPHS = 256
"""Recorded forwards that are followed to see whether a backward pass returns to them."""
FIRINGS = 512
"""Module calls after which a window that saw no sampling call closes."""


class Phases:
    """The sampling phases of one process: from one update to the next."""

    def __init__(self, runtime: Runtime, updates: Updates, register: Callable[..., Any], libraries: tuple[str, ...]) -> None:
        self.runtime, self.updates, self.register, self.libraries = runtime, updates, register, libraries
        self.compared = Comparison(updates)
        self.looking = False
        """This phase is one more look before the first update: no round of the program's own."""
        self.moody: tuple[str, ...] = ()
        """Parts of class names of layers that act otherwise in training mode."""
        self.number = 0
        self.waited = 0
        self.fired: list[weakref.ref[Any]] = []
        self.threads: list[int] = []
        """The thread that called each of `fired`."""
        self.graphs: list[int] = []
        """For each of `fired` its place in `used`; -1 where the graph is not followed, -2 where none was recorded."""
        self.used: list[bool] = []
        self.waiting: list[int] = []
        self.graph_site = ""
        self.recorded = False
        """Whether the forward before this phase's first sampling call recorded a graph."""
        self.asked = False
        """The networks of this phase's first env step are noted; those of the second will confirm which of them act."""
        self.acting: weakref.WeakSet[Any] = weakref.WeakSet()
        self.glance: Callable[[], None] = lambda: None
        """Looks for environments that were defined meanwhile."""
        self.since = self.last = self.usual = self.sampled = 0
        """Optimizer steps since the newest sample call, those of the round before, the same where two rounds agree, and the sample calls then."""
        self.left = 0
        self.handle: Any = None
        self.loads: weakref.WeakKeyDictionary[Any, list[int]] = weakref.WeakKeyDictionary()
        """Of each module that was loaded: how often, and the version it had then."""
        runtime.watchers["phase"] = self.before_sample
        runtime.again = self.again
        runtime.renewers.append(self._renew)
        self.open()

    def _renew(self) -> None:
        self.number = self.waited = self.since = self.last = self.usual = self.sampled = 0
        self.open()

    def open(self) -> None:
        """Begin to watch for the acting network."""
        if self.number >= ALWAYS and self.number % SOMETIMES:
            self.runtime.unwant("phase")
            return
        self.left, self.waited = FIRINGS, 0
        self.fired.clear()
        self.threads.clear()
        self.graphs.clear()
        self.runtime.want("phase")
        if self.handle is None and not compiling():
            self.handle = self.register(self._fire)

    def close(self) -> None:
        """Stop watching until the next update."""
        self.runtime.unwant("phase")
        self.fired.clear()
        self.threads.clear()
        self.graphs.clear()
        if self.handle is not None and not compiling():
            self.handle.remove()
            self.handle = None

    def after_update(self) -> None:
        """An optimizer has stepped: what was called so far was training's."""
        self.looking = False
        if self.asked:  # a phase of one env step
            self.asked = False
            self.number += 1
        if self._ends_round():
            if self.handle is None and self.number >= ALWAYS:
                self.number += 1  # phases that were not watched are counted by their last update
            self.open()
        elif self.handle is not None:
            self.close()

    def _ends_round(self) -> bool:
        """Whether sampling may come before the next step: always, unless the last two rounds took more steps each and the same number."""
        samples = self.runtime.samples
        if samples != self.sampled:
            self.usual = self.since if self.since == self.last else 0
            self.last, self.since, self.sampled = self.since, 0, samples
        self.since += 1
        return self.since >= self.usual

    def _fire(self, module: Any, given: Any, result: Any) -> None:
        """Global forward hook: remember which modules were called, newest last, and whether a graph was recorded."""
        del given
        try:
            self.left -= 1
            if self.left < 0:
                self.fired.clear()
                self.threads.clear()
                self.graphs.clear()
                if self.left < -FIRINGS:
                    self.close()
                return
            first = result[0] if isinstance(result, tuple) and result else result
            node = getattr(first, "grad_fn", None)
            mark = -1
            if node is not None and len(self.used) < GRAPHS:
                mark = len(self.used)
                self.used.append(False)
                node.register_prehook(_Follower(self.used, mark))
            self.fired.append(weakref.ref(module))
            self.threads.append(get_ident())
            self.graphs.append(mark if node is not None else -2)
        except Exception:
            pass

    def _judge_graphs(self) -> None:
        """An update has passed since these forwards were recorded while sampling; say which a backward pass came back to."""
        unused = [mark for mark in self.waiting if not self.used[mark]]
        if self.waiting:
            self.runtime.events.write("graphs", used=len(self.waiting) - len(unused), unused=len(unused), site=self.graph_site)
        self.waiting.clear()

    def before_sample(self, given: tuple[Any, ...], by: str = "step") -> None:
        """Before an env step: the modules fired since the update belong to the acting network."""
        del given
        self.waited += 1
        if self.waited == 1:
            self._judge_graphs()
            if self.runtime.fetches and by == "step":
                sample_under_update(self.runtime, "env.step")
        called = self._called()
        fired = [m for m in (self.fired[at]() for at in called) if m is not None]
        if not fired:
            if self.waited >= WAIT:
                self.close()
            return
        roots = roots_of(fired)
        if self.asked:
            self._confirm(roots)
            return
        try:
            if self.graphs[called[0]] >= 0 and by == "step":
                self.waiting.append(self.graphs[called[0]])
                self.graph_site = side.caller(self.libraries, 3)
            self.recorded = self.graphs[called[0]] >= -1
            known = [root for root in roots if root in self.acting]
            for root in known or roots:
                self.record(root, by)
            self.asked = not known and by == "step"
        finally:
            self.fired.clear()
            self.threads.clear()
            self.graphs.clear()
            if not self.asked:
                self.number += 1
                self.close()

    def _called(self) -> list[int]:
        """Places in `fired` of what this thread called, newest last first; where it called nothing, of what no training thread did."""
        own = get_ident()
        threads = tuple(self.threads)
        called = [at for at, thread in enumerate(threads) if thread == own]
        called = called or [at for at, thread in enumerate(threads) if thread != self.updates.thread]
        return called[::-1]

    def _confirm(self, roots: list[Any]) -> None:
        """What was called between two env steps acts; what else was called since the update may have been an evaluation."""
        self.asked = False
        self.acting.update(roots)
        self.runtime.events.write("acting", n=self.number, nets=[id(root) & 0xFFFFFF for root in roots])
        self.number += 1
        self.close()

    def before_draw(self) -> None:
        """Before a draw from a distribution: who acts, in a program without an env."""
        self.glance()
        torch = sys.modules.get("torch")
        has_env = any(entry.role == "env.step" for entry in self.runtime.entries["S"].values())
        if not has_env and torch is not None and not torch.is_grad_enabled():
            self.before_sample((), "draw")

    def before_backward(self) -> None:
        """Before the first backward pass of a phase that saw no sampling call: who was called without recording a graph.

        That may be a sampler without env, a target or a reference network; the event says `pass`, and the verdicts are careful with it.
        """
        if self.handle is None or self.asked or not self.fired or self.waited:
            return
        silent = [ref() for ref, mark in zip(reversed(self.fired), reversed(self.graphs), strict=False) if mark == -2]
        roots = roots_of([m for m in silent if m is not None])
        if roots:
            try:
                for root in roots:
                    self.record(root, "pass")
            finally:
                self.number += 1
                self.close()

    def end(self) -> None:
        """At the end of the process."""
        if self.updates.steps:
            self._judge_graphs()

    def _moody(self, name: str) -> bool:
        return any(part in name for part in self.moody)

    def again(self) -> None:
        """A process that never updates looks now and then, too: others may train what it acts with."""
        if not self.updates.steps and not self.asked and self.handle is None:
            if self.number >= ALWAYS:
                self.number += 1
            self.looking = self.number > 0
            self.open()

    def record(self, root: Any, by: str) -> None:
        """One event: the acting module, its weights, and how they relate to what the optimizers hold."""
        acting = parameters_of(root)
        if not acting:
            return
        loads = self.loads.get(root, [0, -1])
        fields = self.compared.of(root, acting)
        moody = [m for m in root.modules() if self._moody(type(m).__name__) and getattr(m, "p", True)]
        noisy = [type(m).__name__ for m in moody if m.training]
        alone = get_ident() == self.updates.thread
        inside = not alone and self.updates.threads.acts(self.libraries, 4)
        if fields.get("same"):
            self.updates.modes.watch(fields["opt"], root, [type(m).__name__ for m in moody])
        self.runtime.events.write(
            "phase", n=self.number, version=self.updates.steps, by=by, module=type(root).__name__, net=id(root) & 0xFFFFFF,
            params=len(acting), form=shape_of(acting), fp=fingerprint(acting), loads=loads[0], loaded_at=loads[1],
            noisy=noisy[:4], graph=self.recorded, alone=alone, inside=inside, look=self.looking, site=side.caller(self.libraries, 4), **fields,
        )  # fmt: skip


class _Follower:
    """Notes that a backward pass has come to a recorded forward."""

    __slots__ = ("place", "used")

    def __init__(self, used: list[bool], place: int) -> None:
        self.used, self.place = used, place

    def __call__(self, gradients: Any) -> None:
        del gradients
        self.used[self.place] = True
