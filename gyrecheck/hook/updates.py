"""What the training side does, seen from its own calls: steps without gradients, gradients used twice or cleared unused, the schedule.

Every first occurrence and every power of two of a fact is one event line with the count so far, so a process that is killed has said what
was known. All functions are called by wrappers and hooks that swallow whatever goes wrong here.
"""

from __future__ import annotations

from _thread import get_ident

from gyrecheck.hook import side
from gyrecheck.hook.count import begin_update, remember
from gyrecheck.hook.gradients import held_by, is_left, mark, replaced, shared_with, size_of
from gyrecheck.hook.modes import Modes
from gyrecheck.hook.networks import fingerprint, shape_of
from gyrecheck.hook.optimizer_state import OptimizerState
from gyrecheck.hook.rates import Rates
from gyrecheck.hook.schedules import Schedules
from gyrecheck.hook.threads import Threads

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from contextvars import Token
    from typing import Any

    from gyrecheck.hook.phases import Phases
    from gyrecheck.hook.runtime import Runtime

FIRST = 64
"""Steps of one optimizer whose findings are all said one by one; gradients on a device other than the CPU at every 64th after that: a look waits for it."""
SETTLED = 16
"""Steps of one optimizer without a finding after which not all are looked at."""
CALM, LATER, CALMER = 62, 256, 254
"""From then on, steps that are only counted between two that are looked at, and from step `LATER` on: of code that is cold each time, it
counts how much there is."""
UNSEEN = (0, 0)
"""Stands for the gradient that a step used which was only counted."""


class Updates:
    """The training side of one process."""

    def __init__(self, runtime: Runtime, libraries: tuple[str, ...] = ()) -> None:
        self.runtime = runtime
        self.libraries = libraries
        self.entry = runtime.entry("T", "optimizer.step", "optimizer.step")
        self.states: dict[int, OptimizerState] = {}
        """By identity of the optimizer: a dictionary of weak keys costs a step more than all else here."""
        self.schedules = Schedules(runtime, self)
        self.steps = 0
        """Steps of all optimizers of this process: the policy version as the hook counts it."""
        self.backwards = self.sampled_backwards = 0
        self.rates = Rates(runtime)
        self.modes = Modes(runtime)
        self.threads = Threads()
        self.token: Token[str] | None = None
        self.calm = self.window = 0
        """Further steps that are only counted, and how many windows of such steps there were."""
        self.phases: Phases | None = None
        self.passed = False
        """The newest step was only counted, and no round ends with it: nothing is left to do after it."""
        self.left: list[OptimizerState] = []
        """Optimizers whose used gradients may still be there since before steps were only counted."""
        self.cell = runtime.cells["optimizer_steps"]
        self.loose = 0
        """Backward passes since the newest step that were only counted."""
        self.thread = 0
        """The thread that stepped last."""
        self.trying = False
        """An optimizer is calling its closure: what it clears there it has seen."""
        runtime.renewers.append(self._renew)

    def _renew(self) -> None:
        self.calm = self.loose = 0
        self.passed = False
        self.rates = Rates(self.runtime)
        self.threads = Threads()
        self.steps = self.backwards = self.sampled_backwards = 0
        for state in self.states.values():
            state.steps = state.looked = 0
            state.counts.clear()

    def made(self, optimizer: Any) -> None:
        """An optimizer exists now."""
        state = self._state(optimizer)
        if not state.said:
            state.said = True
            tensors = held_by(optimizer)
            self.runtime.events.write("optimizer", i=state.number, cls=state.kind, params=len(tensors), site=side.caller(self.libraries, 3))

    def loaded(self, optimizer: Any, before: float | None) -> None:
        """The state of an optimizer was restored, whose learning rate was `before` until then."""
        self.calm = 0
        self.rates.loaded(self._state(optimizer), optimizer, before, side.caller(self.libraries, 3))

    def before_step(self, optimizer: Any, given: tuple[object, ...], named: dict[str, object]) -> None:
        """Before `optimizer.step()`: count, and look at the gradients it is about to use."""
        runtime = self.runtime
        self.passed = False  # the step before may have broken off
        self._flush()
        if not self.calm:
            self.window += 1
        state = self._state(optimizer)
        state.quick = False
        state.window = self.window
        state.full += 1
        self._close()
        site = begin_update(self.entry, (), self.libraries)
        runtime.turns.update()
        self.token = side.OPEN.set(side.TRAINING)
        self.cell[0] += 1
        self.thread = get_ident()
        if self.threads.acting:
            self.threads.at_step()
        self.trying = len(given) > 1 or named.get("closure") is not None
        if self.trying:
            return
        number = state.steps + 1
        size = self._gradient(optimizer, state)
        if size is not None:
            state.looked += 1
            if size == "none":
                self._say(state, "empty_step", number, why="none", seen=self.backwards)
            elif size == "zero":
                self._say(state, "empty_step", number, why="zero", backward=state.backward, seen=self.backwards)
            elif size == "nan":
                self._say(state, "nan_step", number)
            elif not state.backward and state.steps and self.backwards and not replaced(optimizer, state):
                self._say(state, "same_gradients", number)
            elif state.pending and not replaced(optimizer, state):
                self._say(state, "uncleared", number)
            if len(self.states) > 1 and size == "some":
                self._shared(optimizer, state, number)
        self.rates.before_step(state, optimizer)
        if self.modes.watched:
            self.modes.before_step(state.number, number)
        if (
            site is not None
            and size == "some"
            and number > SETTLED
            and state.full > 1
            and not state.counts
            and not self.modes.watched
            and self.rates.steady(state.rate)
        ):
            if not self.calm:
                self.calm = CALM if number < LATER else CALMER
                self.left = [s for s in tuple(self.states.values()) if s is not state and (s.stepped_uncleared or s.pending)]
            state.site = site
        else:
            self.calm = 0

    def _shared(self, optimizer: Any, state: OptimizerState, number: int) -> None:
        """Whether another optimizer has just stepped some of the same parameters with the same gradients."""
        for other in tuple(self.states.values()):
            if other is not state and (shared := shared_with(other, held_by(optimizer))):
                self._say(state, "stepped_again", number, other=other.kind, params=len(shared))
                return

    def counted(self, optimizer: Any, given: tuple[object, ...]) -> bool:
        """Count a step and do no more, where it is of an optimizer that was looked at in this window and calls no closure."""
        state = self.states.get(id(optimizer))
        if state is None or state.window != self.window or len(given) > 1 or state.optimizer() is not optimizer:
            return False
        steps = state.steps + 1
        if not steps & (steps - 1):
            return False
        self.calm -= 1
        state.steps, state.quick = steps, True
        if self.token is not None:  # of a step that this one lies in, or that broke off
            self._close()
        entry, runtime = self.entry, self.runtime
        entry.n = n = entry.n + 1
        entry.cell[0] = n
        state.site[0] += 1
        self.cell[0] += 1
        self.steps += 1
        if runtime.marked and side.OPEN.get() == side.TRAINING:
            runtime.cells["nested_updates"][0] += 1
        samples = 0
        for sampler in runtime.active:
            samples += sampler.n
        phases, self.passed = self.phases, False
        if samples != runtime.seen["hooked"]:
            runtime.turn(entry.role)
        elif phases is not None and phases.since + 1 < phases.usual:  # as its `after_update` would have it, for much less
            phases.since += 1
            self.passed = True
        runtime.turns.passed = None  # which activations lie under a step, those that are looked at say
        if len(self.states) > 1:
            for other in tuple(self.states.values()):
                other.backward += self.loose
                other.unstepped = 0
        if state.full or state.backward or state.used is not UNSEEN:  # nothing of it changes between most steps that are only counted
            state.full = state.backward = state.unstepped = 0
            state.used, state.stepped_uncleared, state.pending = UNSEEN, False, False
        self.loose = 0
        return True

    def _flush(self) -> None:
        """The backward passes that were only counted are every optimizer's."""
        for state in tuple(self.states.values()) if self.loose else ():
            state.backward += self.loose
            state.unstepped += self.loose
        self.loose = 0

    def after_step(self, optimizer: Any) -> None:
        """After `optimizer.step()`: a new version of the weights; the next sampling call begins a new phase."""
        self._flush()
        state = self._state(optimizer)
        self.trying = False
        state.steps += 1
        state.backward = state.unstepped = 0
        state.stepped_uncleared, state.pending = not self.calm, False  # what comes next is only counted while it is calm
        state.used = UNSEEN if self.calm else mark(optimizer)
        for other in tuple(self.states.values()):
            other.unstepped = 0
        self.steps += 1
        if not state.steps & (state.steps - 1):
            tensors = held_by(optimizer)
            self.runtime.events.write("weights", i=state.number, form=shape_of(tensors), fp=fingerprint(tensors), step=state.steps)
        self._close()
        self.runtime.want("phase")

    def before_backward(self) -> None:
        """Before a backward pass."""
        self.backwards += 1
        self.runtime.cells["backward_calls"][0] += 1
        runtime = self.runtime
        if not runtime.turns.over:
            runtime.turns.backward()
        if self.calm:
            self.loose += 1
            if self.left:
                self.left = [s for s in tuple(self.left) if is_left(s)]
            return
        if runtime.sampling_codes and (under := side.find_under(runtime.sampling_codes)) is not None:
            self.sampled_backwards += 1
            if self.sampled_backwards & (self.sampled_backwards - 1) == 0:
                path = side.path_to(under, 2, runtime.libraries)
                runtime.events.write("sampling_backward", n=self.sampled_backwards, path=path)
        for state in tuple(self.states.values()):
            is_left(state)
            state.backward += 1
            state.unstepped += 1

    def cleared(self, optimizer: Any) -> None:
        """Gradients of an optimizer are about to be cleared."""
        self.runtime.cells["zero_grad_calls"][0] += 1
        self._flush()
        state = self._state(optimizer)
        # the backward passes since then were another network's
        untouched = state.used is not None and state.used in (UNSEEN, mark(optimizer))
        size = size_of(held_by(optimizer), first=True) if state.unstepped and not untouched and not self.trying else ""
        if size == "nan":
            self._say(state, "cleared_nan", state.unstepped, add=state.unstepped, total=self.backwards)
        elif size == "some":
            others = (o for o, _ in self.alive() if o is not optimizer)
            if not any(size_of(held_by(o), first=True) == "some" for o in others):
                self._say(state, "cleared_unused", state.unstepped, add=state.unstepped, total=self.backwards)
        state.unstepped = 0
        state.used = None
        state.stepped_uncleared = state.pending = False

    def module_cleared(self, module: Any) -> None:
        """`module.zero_grad()`: the same for every optimizer that holds one of its parameters."""
        first = next(iter(module.parameters()), None)
        for optimizer, _ in self.alive():
            if first is not None and any(first is p for p in held_by(optimizer)):
                self.cleared(optimizer)

    def clipped(self) -> None:
        """Gradients are clipped: too late when their step has been made already."""
        states = tuple(self.states.values()) if self.backwards else ()
        for state in states:
            if state.backward or not state.steps:
                return
        if states:
            self._say(states[0], "late_clip", states[0].steps, total=states[0].steps)

    def summary(self) -> None:
        """At the end of the process: the totals that the events before could only give up to a power of two."""
        for state in tuple(self.states.values()):  # also of optimizers that a function held which has returned
            self.runtime.events.write(
                "totals", i=state.number, cls=state.kind, steps=state.steps, looked=state.looked, zero_rate=state.rate.zero,
                in_eval=self.modes.watched[state.number].off if state.number in self.modes.watched else 0,
                rate_most=state.rate.most, rate_changes=state.rate.changes, backwards=self.backwards,
                **{f"n_{key}": value for key, value in state.counts.items()},
            )  # fmt: skip
        self.schedules.summary()

    def _state(self, optimizer: Any) -> OptimizerState:
        state = self.states.get(id(optimizer))
        if state is None or state.optimizer() is not optimizer:
            state = OptimizerState(len(self.alive()), optimizer)
            self.states[id(optimizer)] = state
            remember(type(optimizer).step, self.runtime.update_codes)
        return state

    def alive(self) -> list[tuple[Any, OptimizerState]]:
        """The optimizers that there still are; those that are gone are forgotten."""
        found = [(optimizer, state) for state in tuple(self.states.values()) if (optimizer := state.optimizer()) is not None]
        if len(found) < len(self.states):
            self.states = {id(optimizer): state for optimizer, state in found}
        return found

    def _close(self) -> None:
        if self.token is not None:
            token, self.token = self.token, None
            self.runtime.unwant("update")
            try:
                side.OPEN.reset(token)
            except ValueError:  # stepped in another context
                side.OPEN.set("")

    def _say(self, state: OptimizerState, fact: str, number: int, add: int = 1, **more: Any) -> None:
        before = state.counts.get(fact, 0)
        state.counts[fact] = after = before + add
        if after <= FIRST or after.bit_length() > before.bit_length():
            place = side.caller(self.libraries, 4)
            self.runtime.events.write(fact, i=state.number, step=number, n=after, at_step=state.steps, site=place, **more)

    def _gradient(self, optimizer: Any, state: OptimizerState) -> str | None:
        tensors = held_by(optimizer)
        device = getattr(getattr(tensors[0], "device", None), "type", "") if tensors else ""
        if device != "cpu" and state.steps >= FIRST and state.steps % FIRST:
            return None
        return size_of(tensors)
