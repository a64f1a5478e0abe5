"""The bytes of one segment: the slices of one rollout in a file that can prove it is whole.

A JSON-lines segment begins with a header line and ends with a footer line that repeats the counts and holds the CRC-32 of
every byte before it, so a torn file is known as torn without trusting the rename that published it. Arrow segments
(`arrow_segment`) carry the same columns, header and checksum.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import msgspec
import orjson

from reference_loop.trajectory import Slices

SCHEMA = 1
Record = dict[str, Any]
Seam = Callable[[Record], Record]


class TornSegmentError(Exception):
    """The file is damaged: half a line, no footer, a checksum that does not fit. Its slices are lost, and counted as lost."""


class ContractError(Exception):
    """The file is whole and its records break the contract: the writer is at fault, and no default may hide it."""

    def __init__(self, reason: str, field: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.field = field


@dataclass(frozen=True, slots=True)
class SegmentName:
    """What a segment's file name says: enough to order it, count it and name its trajectories without opening it."""

    producer: str
    seq: int
    policy_version: int
    trajectories: int
    suffix: str

    PATTERN: ClassVar[re.Pattern[str]] = re.compile(r"([A-Za-z0-9_]+)-(\d{6,})-v(\d{6,})-n(\d{4,})\.(jsonl|arrow)")

    def __str__(self) -> str:
        return f"{self.producer}-{self.seq:06d}-v{self.policy_version:06d}-n{self.trajectories:04d}.{self.suffix}"

    @classmethod
    def parse(cls, name: str) -> SegmentName | None:
        """Read a file name; None for names that are no segment's, temporary ones included."""
        match = cls.PATTERN.fullmatch(name)
        if match is None:
            return None
        producer, seq, version, count, suffix = match.groups()
        return cls(producer, int(seq), int(version), int(count), suffix)


@dataclass(frozen=True, slots=True)
class Header:
    """A segment's first line: what `Slices` cannot say of themselves."""

    run_id: str
    producer: str
    seq: int
    policy_version: int
    layout: str
    trajectories: int
    rows: int
    sample_step: int
    episodes: int
    rollout_start: float
    rollout_end: float


def encode(header: Header, slices: Slices, seam: Seam) -> bytes:
    """Write a segment in the layout its header names; `seam` may alter each JSON record on its way (see `faults`)."""
    if header.layout == "arrow":
        from reference_loop.arrow_segment import encode_arrow

        return encode_arrow(header, slices)
    records = slice_records(slices) if header.layout == "slice" else step_records(slices)
    lines = [orjson.dumps({"kind": "header", "schema": SCHEMA} | asdict(header))]
    lines += [orjson.dumps(seam(record), option=orjson.OPT_SERIALIZE_NUMPY) for record in records]
    body = b"\n".join(lines) + b"\n"
    footer = {"kind": "footer", "trajectories": len(slices), "rows": slices.rows, "crc32": zlib.crc32(body)}
    return body + orjson.dumps(footer) + b"\n"


def bounds(slices: Slices) -> Iterator[tuple[int, int, int]]:
    """Give each slice's index with its first row and the row after its last."""
    stop = 0
    for index, length in enumerate(slices.length.tolist()):
        start, stop = stop, stop + length
        yield index, start, stop


def slice_records(slices: Slices) -> Iterator[Record]:
    """One record a slice: `obs` [L, D], `action`, `logprob`, `reward` [L], the rest as `Slices` says."""
    tags = zip(
        slices.trajectory_id, slices.policy_version.tolist(), slices.episode_id.tolist(), slices.step.tolist(),
        slices.sample_step.tolist(), slices.wall_clock.tolist(), slices.length.tolist(),
        slices.terminated.tolist(), slices.truncated.tolist(), strict=True,
    )  # fmt: skip
    names = ("trajectory_id", "policy_version", "episode_id", "step", "sample_step", "wall_clock", "length", "terminated", "truncated")
    for (index, start, stop), tag in zip(bounds(slices), tags, strict=True):
        record: Record = dict(zip(names, tag, strict=True))
        record["obs"] = slices.obs[start:stop]
        record["action"] = slices.action[start:stop]
        record["logprob"] = slices.logprob[start:stop]
        record["reward"] = slices.reward[start:stop]
        record["final_obs"] = slices.final_obs[index]
        yield record


def step_records(slices: Slices) -> Iterator[Record]:
    """One record a row: the slice's tags, the row's own `step`, and `next_obs` [D]; the flags are True in last rows only."""
    action, logprob, reward = slices.action.tolist(), slices.logprob, slices.reward
    for index, start, stop in bounds(slices):
        tags: Record = {
            "trajectory_id": slices.trajectory_id[index],
            "policy_version": int(slices.policy_version[index]),
            "episode_id": int(slices.episode_id[index]),
            "sample_step": int(slices.sample_step[index]),
            "wall_clock": float(slices.wall_clock[index]),
        }
        for row in range(start, stop):
            last = row == stop - 1
            yield tags | {
                "step": int(slices.step[index]) + row - start,
                "obs": slices.obs[row],
                "action": action[row],
                "logprob": logprob[row],
                "reward": reward[row],
                "terminated": last and bool(slices.terminated[index]),
                "truncated": last and bool(slices.truncated[index]),
                "next_obs": slices.final_obs[index] if last else slices.obs[row + 1],
            }


def whole_lines(content: bytes) -> tuple[Header, list[bytes]]:
    """Split a JSON-lines segment after proving it whole.

    Raises:
        TornSegmentError: it is not.
    """
    cut = content.rfind(b"\n", 0, len(content) - 1) + 1
    body = content[:cut]
    try:
        footer = orjson.loads(content[cut:])
        checksum = footer["crc32"] if footer["kind"] == "footer" else None
        counts = footer["trajectories"], footer["rows"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise TornSegmentError("no footer line at the end") from None
    if not content.endswith(b"\n") or checksum != zlib.crc32(body):
        raise TornSegmentError("the checksum does not fit the content")
    first, *lines = body.splitlines()
    header = as_header(orjson.loads(first))
    if counts != (header.trajectories, header.rows):
        raise TornSegmentError(f"header and footer disagree on the counts: {header.trajectories, header.rows} and {counts}")
    return header, lines


def as_header(document: Record) -> Header:
    """Read a header; unknown keys are allowed, missing ones break the contract."""
    names = [field.name for field in fields(Header)]
    missing = [name for name in names if name not in document]
    if missing or document.get("schema") != SCHEMA:
        raise ContractError("header", "schema", f"header of schema {document.get('schema')} lacks {missing}, wanted schema {SCHEMA}")
    return msgspec.convert({name: document[name] for name in names}, Header)
