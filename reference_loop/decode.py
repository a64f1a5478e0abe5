"""From a segment's bytes to checked columns: the one place where the trainer learns what the sampler wrote.

The field map is the two record types below. A missing field, a None, a wrong width or a column of another length raises
with the field's name and what was there instead; nothing is ever filled in.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, get_args

import msgspec
import numpy as np

from reference_loop.config import OBS_DIM
from reference_loop.segment import ContractError, Header, whole_lines
from reference_loop.trajectory import Slices

Vector = tuple[float, float, float, float]
"""One observation; as a fixed tuple, so that decoding itself refuses another width."""
assert len(get_args(Vector)) == OBS_DIM  # noqa: S101 - settled at import


class SliceRecord(msgspec.Struct, gc=False):
    """One line of the slice layout."""

    trajectory_id: str
    policy_version: int
    episode_id: int
    step: int
    sample_step: int
    wall_clock: float
    length: int
    terminated: bool
    truncated: bool
    obs: list[Vector]
    action: list[int]
    logprob: list[float]
    reward: list[float]
    final_obs: Vector


class StepRecord(msgspec.Struct, gc=False):
    """One line of the step layout."""

    trajectory_id: str
    policy_version: int
    episode_id: int
    sample_step: int
    wall_clock: float
    step: int
    obs: Vector
    action: int
    logprob: float
    reward: float
    terminated: bool
    truncated: bool
    next_obs: Vector


SLICE_DECODER = msgspec.json.Decoder(SliceRecord)
STEP_DECODER = msgspec.json.Decoder(StepRecord)


def decode(content: bytes, suffix: str, seam: Callable[[bytes], bytes]) -> tuple[Header, Slices]:
    """Read a segment of any layout; `seam` may alter each JSON line on its way (see `faults`).

    Raises:
        TornSegmentError: the file is not whole.
        ContractError: it is whole, and a record lacks a field or has one of another shape or type.
    """
    if suffix == "arrow":
        from reference_loop.arrow_segment import decode_arrow

        header, slices = decode_arrow(content)
    else:
        header, lines = whole_lines(content)
        lines = [seam(line) for line in lines]
        if header.layout == "step":
            slices = from_steps([typed(line, STEP_DECODER) for line in lines])
        else:
            slices = from_slices([typed(line, SLICE_DECODER) for line in lines])
    if (len(slices), slices.rows) != (header.trajectories, header.rows):
        found = f"{len(slices)} trajectories and {slices.rows} rows"
        raise ContractError("count", "length", f"{found}, the header says {header.trajectories} and {header.rows}")
    return header, slices


def typed(line: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:  # noqa: ANN401 - the decoder's own type
    """Decode one line, or say which field is at fault and what is there."""
    try:
        return decoder.decode(line)
    except msgspec.ValidationError as error:
        present = msgspec.json.decode(line)
        name = present.get("trajectory_id", "?") if isinstance(present, dict) else "?"
        wanted = decoder.type.__struct_fields__
        missing = [field for field in wanted if not isinstance(present, dict) or field not in present]
        if missing:
            there = ", ".join(present) if isinstance(present, dict) else type(present).__name__
            raise ContractError("missing_field", missing[0], f"trajectory {name} has no `{missing[0]}`; it has {there}") from None
        field = next((field for field in wanted if f"$.{field}" in str(error)), "?")
        raise ContractError("shape", field, f"trajectory {name}: {error}") from None


def from_slices(records: list[SliceRecord]) -> Slices:
    """Put slice records side by side; each row column must be as long as the record says."""
    for record in records:
        for field in ("obs", "action", "logprob", "reward"):
            if len(getattr(record, field)) != record.length:
                raise ContractError(
                    "shape", field, f"trajectory {record.trajectory_id}: {len(getattr(record, field))} of {record.length} rows in `{field}`"
                )
    rows = sum(record.length for record in records)
    values = chain.from_iterable
    return Slices(
        trajectory_id=tuple(record.trajectory_id for record in records),
        policy_version=np.array([record.policy_version for record in records], dtype=np.int64),
        episode_id=np.array([record.episode_id for record in records], dtype=np.int64),
        step=np.array([record.step for record in records], dtype=np.int64),
        sample_step=np.array([record.sample_step for record in records], dtype=np.int64),
        wall_clock=np.array([record.wall_clock for record in records]),
        length=np.array([record.length for record in records], dtype=np.int64),
        terminated=np.array([record.terminated for record in records]),
        truncated=np.array([record.truncated for record in records]),
        final_obs=np.array([record.final_obs for record in records], dtype=np.float32),
        obs=np.fromiter(values(values(record.obs for record in records)), np.float32, rows * OBS_DIM).reshape(rows, OBS_DIM),
        action=np.fromiter(values(record.action for record in records), np.int64, rows),
        logprob=np.fromiter(values(record.logprob for record in records), np.float32, rows),
        reward=np.fromiter(values(record.reward for record in records), np.float32, rows),
    )


def from_steps(records: list[StepRecord]) -> Slices:
    """Join adjacent rows of one trajectory id to a slice; the last row's flags and `next_obs` are the slice's."""
    last = [
        index
        for index, record in enumerate(records)
        if index + 1 == len(records) or records[index + 1].trajectory_id != record.trajectory_id
    ]
    ends = [records[index] for index in last]
    length = np.diff([-1, *last])
    return Slices(
        trajectory_id=tuple(record.trajectory_id for record in ends),
        policy_version=np.array([record.policy_version for record in ends], dtype=np.int64),
        episode_id=np.array([record.episode_id for record in ends], dtype=np.int64),
        step=np.array([record.step for record in ends], dtype=np.int64) - length + 1,
        sample_step=np.array([record.sample_step for record in ends], dtype=np.int64),
        wall_clock=np.array([record.wall_clock for record in ends]),
        length=length,
        terminated=np.array([record.terminated for record in ends]),
        truncated=np.array([record.truncated for record in ends]),
        final_obs=np.array([record.next_obs for record in ends], dtype=np.float32),
        obs=np.array([record.obs for record in records], dtype=np.float32),
        action=np.array([record.action for record in records], dtype=np.int64),
        logprob=np.array([record.logprob for record in records], dtype=np.float32),
        reward=np.array([record.reward for record in records], dtype=np.float32),
    )
