"""The bytes of a segment: nothing is lost on the way, and damage or a broken contract is told from a whole file."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_loop.decode import decode
from reference_loop.segment import ContractError, Header, SegmentName, TornSegmentError, encode
from reference_loop.trajectory import ARRAY_COLUMNS, Slices, join


def same(record: dict) -> dict:
    """The healthy seam."""
    return record


def header(layout: str) -> Header:
    """The header of the three-slice segment."""
    return Header("r", "s0", 7, 4, layout, 3, 6, 103, 2, 999.0, 1001.0)


def as_bytes(slices: Slices, layout: str = "slice", seam=same) -> bytes:
    """The segment's file content."""
    return encode(header(layout), slices, seam)


def read(content: bytes, layout: str = "slice") -> tuple[Header, Slices]:
    """Read it back."""
    return decode(content, "arrow" if layout == "arrow" else "jsonl", lambda line: line)


def resealed(lines: list[bytes]) -> bytes:
    """A whole file of other records: header and records as given, with a footer that fits them."""
    body = b"\n".join(lines) + b"\n"
    return body + json.dumps({"kind": "footer", "trajectories": 3, "rows": 6, "crc32": zlib.crc32(body)}).encode() + b"\n"


@pytest.mark.parametrize("layout", ["slice", "step", "arrow"])
def test_what_is_written_is_read(slices: Slices, layout: str) -> None:
    """Every layout gives every column back, bit for bit and with its type."""
    found_header, found = read(as_bytes(slices, layout), layout)
    assert found_header == header(layout)
    assert found.trajectory_id == slices.trajectory_id
    for name in ARRAY_COLUMNS:
        wanted, got = getattr(slices, name), getattr(found, name)
        assert got.dtype == wanted.dtype, name
        assert np.array_equal(got, wanted), name


def test_every_json_line_parses_and_has_every_tag(slices: Slices) -> None:
    """One record a slice, each tagged with version, sample step, clock, episode and step, and none of them null."""
    lines = [json.loads(line) for line in as_bytes(slices).splitlines()]
    assert [line.get("kind") for line in lines] == ["header", None, None, None, "footer"]
    assert lines[3]["trajectory_id"] == "s0-000007-0002"
    for key, value in {"policy_version": 4, "sample_step": 103, "wall_clock": 1000.75, "episode_id": 12, "step": 497, "length": 3}.items():
        assert lines[3][key] == value
    assert lines[3]["truncated"] is True
    assert lines[3]["terminated"] is False
    assert np.shape(lines[3]["obs"]) == (3, 4)
    assert all(value is not None for line in lines for value in line.values())


def test_step_layout_has_one_line_a_row(slices: Slices) -> None:
    """Six rows make six lines; steps count within the episode, and only a slice's last row carries its flags."""
    lines = [json.loads(line) for line in as_bytes(slices, "step").splitlines()][1:-1]
    assert [line["step"] for line in lines] == [5, 6, 0, 497, 498, 499]
    assert [line["terminated"] for line in lines] == [False, False, True, False, False, False]
    assert [line["truncated"] for line in lines] == [False, False, False, False, False, True]
    assert lines[0]["next_obs"] == lines[1]["obs"]


@given(cut=st.integers(min_value=0, max_value=10_000), layout=st.sampled_from(["slice", "step", "arrow"]))
def test_a_cut_off_file_is_torn(cut: int, layout: str) -> None:
    """A file that lost its end anywhere is known as torn, never read as shorter."""
    content = as_bytes(example(), layout)
    with pytest.raises(TornSegmentError):
        read(content[: cut % len(content)], layout)


@given(place=st.integers(min_value=0, max_value=10_000), bit=st.integers(min_value=0, max_value=7))
def test_a_flipped_bit_is_torn(place: int, bit: int) -> None:
    """Any changed bit of a JSON-lines segment is caught: by the checksum, or because the footer itself is no footer any more."""
    content = bytearray(as_bytes(example()))
    content[place % len(content)] ^= 1 << bit
    with pytest.raises(TornSegmentError):
        read(bytes(content))


def example() -> Slices:
    """One slice of one row, for tests that draw many examples."""
    one = np.ones(1, dtype=np.int64)
    vector = np.full((1, 4), 0.5, dtype=np.float32)
    flag = np.zeros(1, dtype=bool)
    return Slices(("s0-000007-0000",), one, one, one, one, np.ones(1), one, flag, flag, vector, vector, one, -vector[:, 0], vector[:, 0])


@pytest.mark.parametrize("layout", ["slice", "step"])
def test_a_missing_field_is_named_with_what_is_there(slices: Slices, layout: str) -> None:
    """A record without logprob raises with the field's name and the fields it has; nothing is filled in."""
    content = as_bytes(slices, layout, lambda record: {key: value for key, value in record.items() if key != "logprob"})
    with pytest.raises(ContractError, match=r"no `logprob`; it has trajectory_id, .*action") as caught:
        read(content)
    assert (caught.value.reason, caught.value.field) == ("missing_field", "logprob")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda record: record | {"obs": np.zeros((len(record["action"]), 5), np.float32)}, "obs"),
        (lambda record: record | {"logprob": [None] * len(record["action"])}, "logprob"),
        (lambda record: record | {"reward": record["reward"][:-1]}, "reward"),
        (lambda record: record | {"policy_version": None}, "policy_version"),
        (lambda record: record | {"logprob": record["logprob"] * np.float32("nan")}, "logprob"),
    ],
    ids=["wide observation", "null entries", "short column", "null version", "not a number"],
)
def test_a_wrong_shape_or_type_names_the_field(slices: Slices, change, field: str) -> None:
    """Another width, a null, a short column: refused, with the field at fault."""
    with pytest.raises(ContractError) as caught:
        read(as_bytes(slices, seam=change))
    assert (caught.value.reason, caught.value.field) == ("shape", field)


def test_a_missing_record_breaks_the_contract(slices: Slices) -> None:
    """A whole file with fewer records than its header says is refused, so counts never rest on trust."""
    lines = as_bytes(slices).splitlines()
    with pytest.raises(ContractError, match="2 trajectories and 3 rows, the header says 3 and 6"):
        read(resealed(lines[:-2]))


def test_an_unknown_schema_is_refused(slices: Slices) -> None:
    """A later schema is an error that names both numbers, not a guess."""
    lines = as_bytes(slices).splitlines()[:-1]
    lines[0] = lines[0].replace(b'"schema":1', b'"schema":2')
    with pytest.raises(ContractError, match=r"schema 2 .* wanted schema 1"):
        read(resealed(lines))


def test_names_say_what_is_inside() -> None:
    """A segment's name and its parts are the same thing in two forms; other names are no segments."""
    name = SegmentName("s0", 17, 3, 70, "jsonl")
    assert str(name) == "s0-000017-v000003-n0070.jsonl"
    assert SegmentName.parse(str(name)) == name
    assert SegmentName.parse(f".{name}.tmp") is None
    assert SegmentName.parse("notes.txt") is None


def test_slices_are_chosen_and_joined_with_their_rows(slices: Slices) -> None:
    """Choosing the first and third slice keeps their five rows; joined with the second one all six are there again."""
    kept = slices.where(np.array([True, False, True]))
    assert kept.trajectory_id == ("s0-000007-0000", "s0-000007-0002")
    assert kept.reward.shape == (5,)
    assert kept.obs[:, 0].tolist() == [0, 1, 3, 4, 5]
    both = join([kept, slices.where(np.array([False, True, False]))])
    assert both.length.tolist() == [2, 3, 1]
    assert both.obs[:, 0].tolist() == [0, 1, 3, 4, 5, 2]
