"""Records as steps in the order they were taken: one element a step, whether a record is a step or a whole trajectory.

Steps of interleaved episodes are put in order of their episode (stable), so that neighbours are successors. What a batch leaves open
(an episode that goes on in the next one) is carried by `Carry`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.verdict.records.step_columns import is_list, list_rows, numeric, reordered, rows_of
from gyrecheck.verdict.records.step_copies import Copies, fallen, goes_on
from gyrecheck.verdict.records.view import Anything, Bools, Floats, Ints, View, rank

STEP_ROLES = ("reward", "terminated", "truncated", "done", "logprob", "value", "action", "step")


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """N steps. `episode` labels whole episodes in order of appearance (file-wide codes); one episode stands together, in order."""

    record: Ints
    """[N] 1-based record."""
    episode: Ints
    """[N] code of the episode."""
    names: list[Any]
    """Names of episodes by code."""
    terminated: Bools | None
    truncated: Bools | None
    done: Bools | None
    step: Ints | None
    obs: Floats | None
    """[N, D]"""
    next_obs: Floats | None
    reward: Floats | None
    returns: Floats | None
    final_obs: Bools | None
    """[N] whether the step carries its episode's final observation apart."""
    labelled: bool
    """Episodes are told by an id or by records, not by flags."""
    per_record: bool
    """A record is a trajectory."""
    order: Ints
    """[N] position in file order."""

    def __len__(self) -> int:
        return len(self.record)

    @property
    def ends(self) -> Bools | None:
        """[N] whether the flags say that the episode ends here."""
        flags = [flag for flag in (self.terminated, self.truncated, self.done) if flag is not None]
        return np.any(flags, axis=0) if flags else None


class StepReader:
    """Makes `Steps` of batches and keeps the codes of episodes between them."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}
        self._names: list[Any] = []
        self._open = 0
        self._last_ended = True
        self._last_step: int | None = None
        self._copies = Copies()

    def read(self, view: View) -> Steps | None:
        """The batch's steps; None where records are no steps (token records, or no field that a step has). Made once a batch."""
        if "steps" not in view.shared:
            view.shared["steps"] = self._read(view)
        made: Steps | None = view.shared["steps"]
        return made

    def _read(self, view: View) -> Steps | None:
        if view.has("tokens") and not view.has("step"):
            return None
        lists = [role for role in STEP_ROLES if (c := view.column(role)) is not None and numeric(c) and is_list(c)]
        scalars = [role for role in STEP_ROLES if (c := view.column(role)) is not None and numeric(c) and not is_list(c)]
        if view.batch.axes == "undecided":
            return None
        if any(role in lists for role in ("reward", "terminated", "truncated", "done", "logprob", "value")):
            return self._trajectories(view, lists)
        return self._single(view) if scalars else None

    def _single(self, view: View) -> Steps:
        found = self._coded(view, "episode_id")
        if found is None:
            found = self._coded(view, "trajectory_id")
        if found is None and view.has("step") and _shared(view.labels("sample_id")):
            found = self._coded(view, "sample_id")
        flags = {role: view.flag(role) for role in ("terminated", "truncated", "done")}
        n = view.rows
        told = [flag for flag in flags.values() if flag is not None]
        ends = np.asarray(np.any(told, axis=0)) if told else np.zeros(n, np.bool_)
        counter = view.integer("step")
        counts = counter[0] if counter is not None and counter[1].all() and n else None
        labelled = counts is not None
        if found is not None:
            codes, labelled = self._by_agent(view, found, counts), True
        elif (beside := self._copies.read(view, ends, counts, self._code)) is not None:
            codes = beside
        elif counts is not None:
            previous = self._last_step if self._last_step is not None else counts[0]
            before = np.concatenate(([self._last_ended and self._last_step is not None], ends[:-1]))
            begins = before.copy() if goes_on(counts, ends) else fallen(np.diff(counts, prepend=previous), before)
            begins[0] |= self._open == 0
            codes = (self._open + np.cumsum(begins)).astype(np.int64)
            self._open, self._last_step, self._last_ended = int(codes[-1]), int(counts[-1]), bool(ends[-1])
        else:
            begins = np.concatenate(([self._last_ended], ends[:-1]))
            codes = (self._open + np.cumsum(begins)).astype(np.int64)
            self._open, self._last_ended = int(codes[-1]), bool(ends[-1])
        order = np.argsort(codes, kind="stable") if bool((np.diff(codes) < 0).any()) else np.arange(n)
        step = view.integer("step")
        final = view.column("final_obs")
        return Steps(
            record=view.records[order],
            episode=codes[order],
            names=self._names,
            step=step[0][order] if step is not None and step[1].all() else None,
            obs=reordered(rows_of(view, "obs"), order),
            next_obs=reordered(rows_of(view, "next_obs"), order),
            reward=reordered(view.number("reward"), order),
            returns=reordered(view.number("return"), order),
            final_obs=(np.asarray(final.counts) > 0)[order] if final is not None else None,
            labelled=labelled,
            per_record=False,
            order=order,
            **{role: reordered(flag, order) for role, flag in flags.items()},
        )

    def _trajectories(self, view: View, lists: list[str]) -> Steps | None:
        base = view.column("reward" if "reward" in lists else lists[0])
        if base is None or any(len(shape) > 2 or (len(shape) == 2 and shape[1] != 1) for shape in base.shapes):
            return None  # several environments side by side in one record
        counts = np.asarray(base.counts)
        n = int(counts.sum())
        row = np.repeat(np.arange(view.rows), counts)
        position = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
        last = position == counts[row] - 1

        def of(role: str) -> Anything | None:
            column = view.column(role)
            if column is None or not numeric(column):
                return None
            if np.array_equal(np.asarray(column.counts), counts):
                return np.asarray(column.flat)
            return None

        def flag(role: str) -> Bools | None:
            values = of(role)
            column = view.column(role)
            if column is None or not numeric(column):
                return None
            if rank(column) == 0:  # a flag of the record speaks of its last step
                whole = view.flag(role)
                return whole[row] & last if whole is not None else None
            return np.nan_to_num(values) != 0 if values is not None else None

        step = of("step") if (c := view.column("step")) is not None and rank(c) >= 1 else None
        first = view.integer("step")
        if step is None and first is not None and first[1].all():
            step = first[0][row] + position
        names = view.labels("episode_id")
        beside = view.labels("env_id")
        keys: list[Any] = (
            list(zip(names, beside, strict=True))
            if names is not None and beside is not None
            else names
            if names is not None
            else [(view.path, int(r), i) for i, r in enumerate(view.records)]
        )
        flags = [f for f in (flag("terminated"), flag("truncated"), flag("done")) if f is not None]
        columns = names is None and view.batch.axes == "swapped" and bool(flags)
        if columns:  # a buffer's column holds one episode after another: only the flags tell them apart
            begins = position == 0
            begins[1:] |= np.any(flags, axis=0)[:-1]
            codes = (self._open + np.cumsum(begins)).astype(np.int64)
            self._open = int(codes[-1]) if n else self._open
        else:
            codes = self._code(keys)[row]
        order = np.argsort(codes, kind="stable") if bool((np.diff(codes) < 0).any()) else np.arange(n)
        final = view.column("final_obs")
        obs, extra = list_rows(view.column("obs"), counts)
        next_obs, _ = list_rows(view.column("next_obs"), counts)
        carries = np.zeros(n, np.bool_)
        if final is not None or extra:
            carries = last if extra else last & (np.asarray(final.counts) > 0)[row] if final is not None else carries
        number = of("reward")
        gained = of("return")
        return Steps(
            record=view.records[row][order],
            episode=codes[order],
            names=self._names,
            terminated=reordered(flag("terminated"), order),
            truncated=reordered(flag("truncated"), order),
            done=reordered(flag("done"), order),
            step=reordered(np.asarray(step, np.int64) if step is not None else None, order),
            obs=reordered(obs, order),
            next_obs=reordered(next_obs, order),
            reward=reordered(number.astype(np.float64) if number is not None else None, order),
            returns=reordered(gained.astype(np.float64) if gained is not None else None, order),
            final_obs=carries[order] if final is not None or extra else None,
            labelled=not columns,
            per_record=True,
            order=order,
        )

    def _code(self, keys: list[Any]) -> Ints:
        """One file-wide number a key, in order of appearance."""
        codes = np.empty(len(keys), np.int64)
        table, names = self._codes, self._names
        for at, key in enumerate(keys):
            code = table.get(key)
            if code is None:
                code = table[key] = len(names)
                names.append(key[0] if isinstance(key, tuple) and len(key) == 2 else key)
            codes[at] = code
        return codes

    def _by_agent(self, view: View, codes: Ints, step: Ints | None) -> Ints:
        """[rows] codes of each agent's own steps, where several agents of an episode act at one step and each has a row of its own."""
        agents = view.labels("agent_id")
        if agents is None or step is None or not len(codes):
            return codes
        pairs = np.stack([codes, step], axis=1)
        if len(np.unique(pairs, axis=0)) == len(pairs):
            return codes
        return self._code([("agent", code, agent) for code, agent in zip(codes.tolist(), agents, strict=True)])

    def _coded(self, view: View, role: str) -> Ints | None:
        """[rows] the code of each row's episode; quick where ids are numbers that stand in runs. None where rows have no id."""
        column, beside = view.column(role), view.column("env_id")
        if column is None:
            return None
        plain = [c for c in (column, beside) if c is not None]
        if all(c.texts is None and c.kind is Kind.INT and (np.asarray(c.counts) == 1).all() for c in plain):
            flat = [np.asarray(c.flat) for c in plain]
            change = np.zeros(view.rows, np.bool_)
            change[:1] = True
            for values in flat:
                change[1:] |= values[1:] != values[:-1]
            heads = np.flatnonzero(change)
            keys = list(zip(*(values[heads].tolist() for values in flat), strict=True)) if len(flat) > 1 else flat[0][heads].tolist()
            return np.repeat(self._code(keys), np.diff(np.append(heads, view.rows)))
        labels = view.labels(role)
        if labels is None or all(label is None for label in labels):
            return None
        names = view.labels("env_id")
        return self._code(list(zip(labels, names, strict=True)) if names is not None else labels)


def steps_of(view: View) -> Steps | None:
    """The batch's steps, made once for all questions by the judge's own reader."""
    reader = view.shared.setdefault("reader", StepReader())
    made: Steps | None = reader.read(view)
    return made


def _shared(names: list[Any] | None) -> bool:
    """Whether rows share their labels, as the tokens of one sample do."""
    return names is not None and 2 * len(set(names)) <= len(names)


def uncounted(view: View, steps: Steps) -> Bools:
    """[N] steps that no loss counts: those of idle rows, or those that a mask over the steps leaves out."""
    if not steps.per_record:
        return view.idle()[steps.order]
    mask = view.column("mask")
    if mask is not None and numeric(mask) and int(np.asarray(mask.counts).sum()) == len(steps):
        return ~view.counted("mask")[steps.order]
    return np.zeros(len(steps), np.bool_)
