"""The runs of steps of one episode inside a batch, each as one row of a table: what following an episode needs, without a loop over steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gyrecheck.verdict.records.steps import Steps
from gyrecheck.verdict.records.view import Bools, Ints


@dataclass(slots=True)
class Episode:
    """One episode as far as it was read; `terminated`, `truncated` and `done` are those of its last step."""

    last_step: int | None = None
    length: int = 0
    record: int = 0
    ended_at: int = 0
    terminated: bool = False
    truncated: bool = False
    done: bool = False
    first_flag: bool = False
    first_record: int = 0
    first_step: int = 0
    second_last_flag: bool = False
    second_last_record: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """S runs of N steps; run i is `[start[i], end[i])` and belongs to the episode with the code `code[i]`."""

    start: Ints
    end: Ints
    code: list[int]
    flags: Bools
    """[N] whether the flags say that the episode ends here."""
    early: list[int]
    """Runs with such a flag before their last step."""
    last_flag: Ints
    """[S] position of the last such flag, -1 for none."""


def segments(steps: Steps) -> Segments:
    """The runs of a batch that holds at least one step."""
    start = np.flatnonzero(np.diff(steps.episode, prepend=-1))
    end = np.append(start[1:], len(steps))
    ends = steps.ends
    flags = ends if ends is not None else np.zeros(len(steps), np.bool_)
    inner = flags.copy()
    inner[end - 1] = False
    early = np.unique(np.searchsorted(start, np.flatnonzero(inner), "right") - 1)
    last = np.maximum.reduceat(np.where(flags, np.arange(len(steps)), -1), start)
    return Segments(start, end, steps.episode[start].tolist(), flags, early.tolist(), last)


def update(known: dict[int, Episode], steps: Steps, runs: Segments, path: str) -> None:
    """Carry every episode on to the end of its run."""
    start, end, last = runs.start, runs.end, runs.end - 1
    before = np.maximum(last - 1, 0)
    ends = [flag[last].tolist() if flag is not None else None for flag in (steps.terminated, steps.truncated, steps.done)]
    rows: Iterator[tuple[int, ...]] = zip(
        runs.code,
        (end - start).tolist(),
        steps.record[last].tolist(),
        np.where(runs.last_flag >= 0, steps.record[runs.last_flag], 0).tolist(),
        runs.flags[before].tolist(),
        steps.record[before].tolist(),
        steps.step[last].tolist() if steps.step is not None else [0] * len(last),
        strict=True,
    )
    for at, (code, length, record, ended, second, second_record, step) in enumerate(rows):
        episode = known[code]
        episode.length += length
        episode.record = record
        episode.ended_at = ended or episode.ended_at
        if length >= 2:
            episode.second_last_flag, episode.second_last_record = bool(second), second_record
        if steps.step is not None:
            episode.last_step = step
        episode.terminated, episode.truncated, episode.done = (flag[at] if flag is not None else False for flag in ends)
        episode.path = path
