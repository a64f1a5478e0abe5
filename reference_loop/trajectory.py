"""The record that passes from sampler to trainer.

A *trajectory slice* is the part of one episode that lies in one rollout. B slices of lengths L make R = sum(L) rows, kept
flat: no padding, so nothing is ever filled in. Every count anywhere is in slices. A slice says who made it
(`trajectory_id`, unique in the run folder), with which weights (`policy_version`), when (`sample_step`, `wall_clock`), and
which part of which episode it is (`episode_id`, `step`). `terminated` and `truncated` speak of its last row; both are False
where the rollout, not the episode, ended. `final_obs` is what was observed after the last row, for bootstrapping.

Room for token trajectories, which come later: they are further columns of the same record beside the shared ones
(`group_id`, `prompt_ids`, `response_ids`, `mask`, one `logprob` and one version a token). Columns are flat with one length
a slice, so ragged token lists need nothing new; `policy_version` then is the oldest of a slice's tokens, which is what age
is defined by; rewards and group ids are the sampler's to write, advantages stay the trainer's to compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Slices:
    """B trajectory slices with R rows in all, column by column; rows of one slice are adjacent and in order."""

    trajectory_id: tuple[str, ...]
    """[B], `<producer>-<segment number, 6 digits>-<index in the segment, 4 digits>`"""
    policy_version: Integers
    """[B], version of the weights that chose the actions"""
    episode_id: Integers
    """[B], counts the producer's episodes from 0"""
    step: Integers
    """[B], index of the slice's first row in its episode, from 0"""
    sample_step: Integers
    """[B], environment steps the producer had taken when the slice's last row was sampled (inserted resets not counted)"""
    wall_clock: npt.NDArray[np.float64]
    """[B], Unix seconds when the slice's last row was sampled"""
    length: Integers
    """[B], rows"""
    terminated: Flags
    """[B], the episode ended in its last row by the task's own rule: the value of what follows is 0"""
    truncated: Flags
    """[B], the time limit ended the episode: the value of what would follow is bootstrapped from `final_obs`"""
    final_obs: Floats
    """[B, D]"""
    obs: Floats
    """[R, D], what the policy saw"""
    action: Integers
    """[R]"""
    logprob: Floats
    """[R], log probability of `action` under the weights of `policy_version`"""
    reward: Floats
    """[R], of this step alone, never a return"""

    def __len__(self) -> int:
        return len(self.trajectory_id)

    @property
    def rows(self) -> int:
        """R."""
        return len(self.action)

    def where(self, keep: Flags) -> Slices:
        """Return the slices [B] that `keep` marks, with their rows."""
        by_row = np.repeat(keep, self.length)
        columns = {name: getattr(self, name)[by_row if name in ROW_COLUMNS else keep] for name in ARRAY_COLUMNS}
        ids = tuple(name for name, kept in zip(self.trajectory_id, keep, strict=True) if kept)
        return Slices(trajectory_id=ids, **columns)


ROW_COLUMNS = ("obs", "action", "logprob", "reward")
ARRAY_COLUMNS = tuple(field.name for field in fields(Slices) if field.name != "trajectory_id")


def join(parts: Sequence[Slices]) -> Slices:
    """Put several segments' slices behind one another."""
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ARRAY_COLUMNS}
    return Slices(trajectory_id=tuple(name for part in parts for name in part.trajectory_id), **columns)


def trajectory_id(producer: str, seq: int, index: int) -> str:
    """Name slice `index` of a producer's segment `seq`; the same segment always gives the same names."""
    return f"{producer}-{seq:06d}-{index:04d}"
