"""Order of steps, and flags that end episodes: placed, told apart, and consistent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.ends_told import time_limit, told_apart
from gyrecheck.verdict.records.episode_segments import Episode, Segments, segments, update
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.steps import Steps, steps_of, uncounted
from gyrecheck.verdict.records.unfinished import RolloutEnds, unfinished
from gyrecheck.verdict.records.view import Bools, Ints, View

MAX_EPISODES = 1_000_000
SHOWN = 5


class Episodes(Question):
    """Follows every episode to its end."""

    about = "episodes, steps and end flags"
    needs = (("terminated",), ("truncated",), ("done",), ("step", "episode_id"), ("step", "sample_id"), ("step", "trajectory_id"))

    def __init__(self) -> None:
        self.episodes: dict[int, Episode] = {}
        self.order = Ranges()
        self.order_seen: list[tuple[int, str]] = []
        self.repeats = Ranges()
        self.repeats_seen: list[tuple[int, str]] = []
        self.after = Ranges()
        self.after_seen: list[tuple[int, str]] = []
        self.pairs = 0
        self.steps = 0
        self.any_true = {"terminated": 0, "truncated": 0, "done": 0}
        self.both = Ranges()
        self.flagged = 0
        self.flagged_where = Ranges()
        self.limit_hit = Ranges()
        self.contradict = Ranges()
        self.contradict_seen: list[tuple[int, str]] = []
        self.done_is_terminated = True
        self.limit: float = np.nan
        self.labelled = self.per_record = self.named = False
        self.rollouts = RolloutEnds()
        self.flags_seen: set[str] = set()

    def feed(self, view: View) -> None:
        """Read one batch."""
        steps = steps_of(view)
        if steps is None or not len(steps) or len(self.episodes) > MAX_EPISODES:
            return
        limit = view.number("max_steps")
        if limit is not None and np.isfinite(limit).any():
            self.limit = float(np.nanmax(limit))
        self.labelled |= steps.labelled
        self.per_record |= steps.per_record
        self.named |= view.has("episode_id")
        self.rollouts.read(view)
        self.steps += len(steps)
        self._flags(view, steps)
        runs = segments(steps)
        self._begin(view, steps, runs)
        if steps.step is not None:
            self._steps(view, steps, steps.step, runs)
        if steps.labelled:
            self._after(view, steps, runs)
        update(self.episodes, steps, runs, view.path)

    def _begin(self, view: View, steps: Steps, runs: Segments) -> None:
        """Episodes that were not seen before."""
        begins = zip(runs.code, runs.start.tolist(), runs.end.tolist(), strict=True)
        for code, start, end in begins:
            if code not in self.episodes:
                first_flag = steps.labelled and end - start > 1 and bool(runs.flags[start])
                first = int(steps.step[start]) if steps.step is not None else 0
                self.episodes[code] = Episode(
                    path=view.path, first_record=int(steps.record[start]), first_flag=first_flag, first_step=first
                )

    def _flags(self, view: View, steps: Steps) -> None:
        for role in ("terminated", "truncated", "done"):
            flag = getattr(steps, role)
            if flag is not None:
                self.any_true[role] += int(flag.sum())
                self.flags_seen.add(role)
        every = steps.ends
        if every is not None:
            self.flagged += int(every.sum())
            self.flagged_where.add(view.path, np.sort(steps.record[every]))
        limit = view.flag("limit_reached")
        if limit is not None and not steps.per_record and steps.terminated is not None:
            hit = limit[steps.order] & steps.terminated
            if steps.truncated is not None:
                hit &= ~steps.truncated
            self.limit_hit.add(view.path, np.sort(steps.record[hit]))
        if steps.terminated is not None and steps.truncated is not None:
            self.both.add(view.path, np.sort(steps.record[steps.terminated & steps.truncated]))
        if steps.done is not None and (steps.terminated is not None or steps.truncated is not None):
            either = np.any([f for f in (steps.terminated, steps.truncated) if f is not None], axis=0)
            only = steps.terminated if steps.terminated is not None else either
            self.done_is_terminated &= bool((steps.done == only).all())
            # without `terminated` nothing says that `done` is wrong; without `truncated` it may be true at cut-offs, too
            wrong = steps.done != either if steps.terminated is not None else np.zeros(len(steps), np.bool_)
            if steps.truncated is None and not (either & ~steps.done).any():
                wrong = np.zeros(len(steps), np.bool_)
            if wrong.any():
                self.contradict.add(view.path, np.sort(steps.record[wrong]))
                at = int(wrong.argmax())
                self.contradict_seen.append(
                    (
                        int(steps.record[at]),
                        f"done {bool(steps.done[at])}".lower() + ", terminated or truncated " + str(bool(either[at])).lower(),
                    )
                )

    def _steps(self, view: View, steps: Steps, step: Ints, runs: Segments) -> None:
        """Every step against the one before it in its episode, which may stand in an earlier batch."""
        before, record_before = np.roll(step, 1), np.roll(steps.record, 1)
        has = np.ones(len(step), np.bool_)
        has[runs.start] = False
        for code, start in zip(runs.code, runs.start.tolist(), strict=True):
            episode = self.episodes[code]
            if episode.last_step is not None:
                has[start], before[start], record_before[start] = True, episode.last_step, episode.record
        self.pairs += int(has.sum())
        change = step - before
        same = has & (change == 0)
        wrong = has & (change != 1) & ~same
        if not steps.labelled and wrong.any():  # without an id a fall to the start is a new episode
            low = np.minimum.reduceat(np.where(has, np.minimum(step, before), step), runs.start)
            wrong &= ~((step == np.repeat(low, runs.end - runs.start)) | (step == 0))
        if same.any():
            self.repeats.add(view.path, np.sort(steps.record[same]))
            self.repeats_seen += [
                (int(steps.record[at]), f"step {step[at]} again, after record {record_before[at]}") for at in _firsts(same, runs)
            ]
        if wrong.any():
            self.order.add(view.path, np.sort(steps.record[wrong]))
            self.order_seen += [
                (int(steps.record[at]), f"step {before[at]} at record {record_before[at]}, then {step[at]}") for at in _firsts(wrong, runs)
            ]

    def _after(self, view: View, steps: Steps, runs: Segments) -> None:
        """Steps behind the end of their own episode, as its flags told it before."""
        early = set(runs.early)
        idle = uncounted(view, steps)
        ended = [at for at, code in enumerate(runs.code) if self.episodes[code].ended_at]
        for at in sorted({*ended, *early}):
            start, end = int(runs.start[at]), int(runs.end[at])
            name = self._name(steps, runs.code[at])
            stops = [(start, self.episodes[runs.code[at]].ended_at)] if self.episodes[runs.code[at]].ended_at else []
            if at in early:
                stop = start + int(runs.flags[start:end].argmax())
                stops.append((stop + 1, int(steps.record[stop])))
            for begin, told in stops:
                counted = np.flatnonzero(~idle[begin:end]) + begin
                if len(counted):
                    self.after.add(view.path, np.sort(steps.record[counted]))
                    self.after_seen.append((int(steps.record[counted[0]]), f"a step of episode {name} after its end at record {told}"))

    def _name(self, steps: Steps, code: int) -> str:
        return str(steps.names[code]) if code < len(steps.names) else str(code)

    def unjudged(self, case: Case) -> str:
        """A shuffled file."""
        del case
        return "the order of steps: the records are shuffled" if self._shuffled() else ""

    def _shuffled(self) -> bool:
        return self.pairs >= 10 and self.order.rows > load_record_limits().shuffled * self.pairs

    def answer(self, case: Case) -> Iterator[Finding]:
        """Order first, then flags."""
        if not self._shuffled():
            yield from self._order_findings(case)
            yield from self._placed(case)
        yield from time_limit(self, case)
        yield from told_apart(self, case)

    def _order_findings(self, case: Case) -> Iterator[Finding]:
        key = case.roles.key("step")
        if self.order:
            yield case.finding(
                "GYR310",
                f"`{key}` skips or runs backwards inside an episode at {self.order.rows} of {self.steps} steps: {self.order_seen[0][1]}",
                where=self.order,
                role="step",
                evidence=self.order_seen,
            )
        if self.repeats and self.repeats.rows < self.pairs:
            yield case.finding(
                "GYR337",
                f"`{key}` repeats inside an episode at {self.repeats.rows} of {self.steps} steps: {self.repeats_seen[0][1]}: written twice",
                where=self.repeats,
                role="step",
                evidence=self.repeats_seen,
            )

    def _placed(self, case: Case) -> Iterator[Finding]:
        """Flags one row late, one row early, or rows after an end."""
        if not self.labelled:
            return
        flag = next((case.roles.key(role) for role in ("terminated", "done", "truncated") if case.roles.key(role)), "done")
        done = [e for e in self.episodes.values() if e.length >= 2]
        ended = [e for e in done if e.terminated or e.truncated or e.done]
        late = [e for e in done if e.first_flag]
        early = [e for e in done if e.second_last_flag]
        if self.flagged >= 0.95 * self.steps and self.steps >= 8 and 2 * len(self.episodes) <= self.steps:
            text = (
                f"`{flag}` is true at {self.flagged} of {self.steps} steps although {len(self.episodes)} episodes are told apart: every "
                "step ends an episode, so no value is ever bootstrapped"
            )
            yield case.finding("GYR328", text, where=self.flagged_where, role=self._flag_role(case))
            return
        # the last episode may have ended in any way
        if len(late) >= 2 and len(late) >= len(done) - 2 and len(ended) <= 1:
            where = Ranges()
            for e in late:
                where.add(e.path, np.array([e.first_record]))
            yield case.finding(
                "GYR328",
                f"`{flag}` stands one row late: it is true at the first step of {len(late)} of {len(done)} episodes and "
                "not at the last step of the episode before",
                where=where,
                role=self._flag_role(case),
            )
            return
        if len(early) >= 2 and len(early) >= len(done) - 1 and not ended:
            where = Ranges()
            for e in early:
                where.add(e.path, np.array([e.second_last_record]))
            yield case.finding(
                "GYR328",
                f"`{flag}` stands one row early: it is true at the last but one step of {len(early)} of {len(done)} episodes",
                where=where,
                role=self._flag_role(case),
            )
            return
        if self.after:
            some = f": {self.after_seen[0][1]}"
            yield case.finding(
                "GYR328",
                f"{self.after.rows} steps follow the end of their own episode{some}; the flag stands too early, or the "
                "episode's id was not advanced",
                where=self.after,
                role=self._flag_role(case),
                evidence=self.after_seen,
            )
        inner = list(self.episodes.values())
        silent = [e for e in inner[:-1] if not (e.terminated or e.truncated or e.done)]
        segments_alone = bool(case.roles.key("bootstrap_value")) or (
            self.per_record and not self.named
        )  # parts of a rollout, cut by its length
        none = len(silent) == len(inner) - 1 and not any(self.any_true.values())
        if none and segments_alone:
            return
        if self.flags_seen and len(inner) >= 4 and none:
            yield case.finding(
                "GYR328",
                f"no end flag is ever true although {len(inner)} episodes follow one another",
                role=self._flag_role(case),
                severity=Severity.WARNING,
            )
        elif self.flags_seen and not self.after:
            yield from unfinished(case, inner, self.rollouts, self._flag_role(case))

    @staticmethod
    def _flag_role(case: Case) -> str:
        return next((role for role in ("terminated", "done", "truncated") if case.roles.key(role)), "")


def _firsts(found: Bools, runs: Segments) -> list[int]:
    """The first hit of each of the first runs that have one."""
    hits = np.flatnonzero(found)
    _, first = np.unique(np.searchsorted(runs.start, hits, "right"), return_index=True)
    return [int(at) for at in hits[first[:SHOWN]]]
