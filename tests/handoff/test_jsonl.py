"""JSON lines: the fast and the exact way agree, record numbers are lines, headers stand beside, opened lists are rows."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import simdjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gyrecheck.handoff.open import open_records
from gyrecheck.handoff.readers import jsonl
from gyrecheck.handoff.readers.jsonl_block import batch_of_block
from gyrecheck.handoff.readers.jsonl_plan import plan_of
from gyrecheck.handoff.rows import batch_of_records
from gyrecheck.model.fields import Kind, RecordBatch


def batches(path: Path) -> list[RecordBatch]:
    return list(open_records([path]))


def same(a: RecordBatch, b: RecordBatch) -> None:
    assert list(a.columns) == list(b.columns)
    assert np.array_equal(a.records, b.records)
    for key, one in a.columns.items():
        other = b.columns[key]
        assert (one.kind, one.dtype, one.kinds, one.texts) == (other.kind, other.dtype, other.kinds, other.texts), key
        assert np.array_equal(one.flat, other.flat, equal_nan=one.texts is not None), key
        assert np.asarray(one.flat).dtype == np.asarray(other.flat).dtype
        assert np.array_equal(one.counts, other.counts)
        assert np.array_equal(one.state, other.state), key
        assert np.array_equal(one.kind_of, other.kind_of)
        shapes = [[column.shapes[int(at)] for at in np.asarray(column.shape_of)] for column in (one, other)]
        assert shapes[0] == shapes[1]


numbers = st.one_of(st.integers(-(2**45), 2**45), st.floats(allow_nan=False, allow_infinity=False, width=64))
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters='\\"'), max_size=8) | st.text(
    ",.[]{}:e0tn "
)


@st.composite
def lines(draw: st.DrawFn) -> list[dict[str, object]]:
    count = draw(st.integers(8, 14))
    width = draw(st.integers(1, 3))
    with_text = draw(st.booleans())
    out: list[dict[str, object]] = []
    for _ in range(count):
        row: dict[str, object] = {
            "t": draw(st.integers(0, 9)),
            "obs": draw(st.lists(numbers, min_size=width, max_size=width)),
            "tokens": draw(st.lists(st.integers(0, 99), min_size=1, max_size=4)),
            "grid": draw(st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=1, max_size=3)),
            "reward": draw(numbers),
            "terminated": draw(st.booleans()),
            "info": {"value": draw(st.none() | numbers), "inner": {"lives": draw(st.integers(0, 3))}},
            "final_obs": draw(st.none() | st.lists(numbers, max_size=2)),
            "ragged": draw(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3), min_size=1, max_size=3)),
            "late": draw(st.none() | st.booleans()),
        }
        if with_text:
            row["stop"] = draw(texts)
        out.append(row)
    return out


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=lines(), compact=st.booleans())
def test_the_fast_way_reads_what_the_exact_way_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, object]], compact: bool
) -> None:
    """For any lines of one form, both ways give the same columns to the last bit."""
    path = tmp_path / "a.jsonl"
    separators = (",", ":") if compact else None
    path.write_text("".join(json.dumps(row, ensure_ascii=False, separators=separators) + "\n" for row in rows), encoding="utf-8")
    fast = batches(path)
    with monkeypatch.context() as patch:
        patch.setattr(jsonl._Fast, "read", lambda *_: None)
        exact = batches(path)
    assert len(fast) == len(exact) == 1
    same(fast[0], exact[0])


def test_the_fast_way_takes_nulls_nesting_and_empty_lists() -> None:
    """Nulls, nested objects, empty and ragged lists, and text full of JSON's own signs go the fast way with the exact way's columns."""
    rows = [
        {
            "t": at,
            "episode": "a,[b]{.}" if at % 2 else "é",
            "info": {"lives": {"n": at}, "why": "x"},
            "final_obs": None if at % 3 else [at / 4, 1e-05],
            "mask": [1] * (at % 3),
            "grid": [[1], [2, 3]] if at % 4 == 0 else [[4, 5.5]],
            "late": None if at == 2 else at > 5,
            "none": None,
        }
        for at in range(12)
    ]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    plan = plan_of(text.split(b"\n")[0], rows[0])
    assert plan is not None
    batch = batch_of_block("a", text, 1, plan, simdjson.Parser())
    assert batch is not None
    same(batch, batch_of_records("a", rows, np.arange(1, 13), frozenset()))
    assert np.asarray(batch.columns["final_obs"].state).tolist() == [2, 1, 1] * 4
    assert np.asarray(batch.columns["mask"].counts).tolist() == [0, 1, 2] * 4


def test_a_header_leaves_the_fast_way_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines behind a header go the fast way, with their own line numbers and the header's values; a footer takes its block out of it."""
    seen: list[int] = []
    read = jsonl._Fast.read

    def watched(self: jsonl._Fast, path: str, block: bytes, line: int) -> RecordBatch | None:
        batch = read(self, path, block, line)
        seen.append(batch.rows if batch is not None else 0)
        return batch

    monkeypatch.setattr(jsonl._Fast, "read", watched)
    path = tmp_path / "a.jsonl"
    rows = [json.dumps({"kind": "step", "reward": at}) for at in range(9)]
    path.write_text("\n".join(['{"kind": "header", "policy_version": 4}', *rows]) + "\n")
    (batch,) = batches(path)
    assert (seen, np.asarray(batch.records).tolist()) == ([9], list(range(2, 11)))
    assert np.asarray(batch.columns["header.policy_version"].flat).tolist() == [4] * 9
    path.write_text("\n".join([*rows, '{"kind": "footer", "reward": 9}']) + "\n")
    (batch,) = batches(path)
    assert (seen[1:], batch.rows) == ([0], 9)


def test_the_fast_way_is_taken(tmp_path: Path) -> None:
    """Ordinary step lines and token lines need no object a value."""
    chance = random.Random(1)
    rows = [{"t": at, "obs": [chance.random(), 1e-7], "tokens": [1] * (at % 3 + 1), "done": at % 2 == 0, "stop": "eos"} for at in range(20)]
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    first = text.split(b"\n")[0]
    plan = plan_of(first, rows[0])
    assert plan is not None
    assert batch_of_block("a", text, 1, plan, simdjson.Parser()) is not None


@pytest.mark.parametrize(
    "odd",
    [
        '{"t": 1, "obs": [1, null]}',
        '{"t": 1, "obs": [1,, 2]}',
        '{"t": 1, "obs": [1, [2]]}',
        '{"t": true, "obs": [1, 2]}',
        '{"t": 01, "obs": [1, 2]}',
        '{"obs": [1, 2], "t": 1}',
        '{"t": 1, "obz": [1, 2]}',
        '{"t": 1 "obs": [1, 2]}',
        '{"t": 1, "obs": 1, [2]}',
        '{"t": 1, "obs": [1, 2], 3}',
        '{"t": 1, "obs": [1, 2],}',
        '{"t": 1, "obs": ]1, 2[}',
        '{"t": 1, "obs": [[1], 2]}',
        '{"t": 1, "obs": [[[1], [2]]]}',
        '{"t": truth, "obs": [1, 2]}',
        '{"t": 9007199254740993, "obs": [1, 2]}',
        '{"t": 1, "obs": [1, NaN]}',
        '{"t": 1, "obs": 7[]}',
        ' {"t": 1, "obs": [1, 2]}',
        '{"t": 1,\t"obs": [1, 2]}',
    ],
)
def test_the_fast_way_steps_aside_for_what_is_not_alike(odd: str) -> None:
    """A null, a slip of syntax, another key or order sends the block the exact way, which names or reads it."""
    plan = plan_of(b'{"t": 1, "obs": [1, 2]}', {"t": 1, "obs": [1, 2]})
    assert plan is not None
    block = ('{"t": 1, "obs": [1, 2]}\n' * 9 + odd + "\n").encode()
    assert batch_of_block("a", block, 1, plan, simdjson.Parser()) is None


def test_records_are_lines_and_headers_are_none(tmp_path: Path) -> None:
    """A header's values stand in every record as `header.<key>`; it and the footer are no records; blank lines count as lines."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"kind": "header", "policy_version": 4}\n{"reward": 1}\n\n{"reward": 2}\n{"kind": "footer", "rows": 2}\n')
    (batch,) = batches(path)
    assert np.asarray(batch.records).tolist() == [2, 4]
    assert np.asarray(batch.columns["header.policy_version"].flat).tolist() == [4, 4]


def test_opened_lists_are_rows_with_their_record(tmp_path: Path) -> None:
    """A list of objects under `steps` gives one row a step, all with the line's number; other values stand in each."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"episode_id": 7, "steps": [{"reward": 1}, {"reward": 2}]}\n{"episode_id": 8, "steps": [{"reward": 3}]}\n')
    (batch,) = batches(path)
    assert np.asarray(batch.records).tolist() == [1, 1, 2]
    assert np.asarray(batch.columns["episode_id"].flat).tolist() == [7, 7, 8]


def test_nested_objects_become_dotted_keys(tmp_path: Path) -> None:
    """Modalities of an observation are keys of their own; absent and null are told apart."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"obs": {"image": [1, 2], "text": "a"}}\n{"obs": {"image": null}}\n')
    (batch,) = batches(path)
    assert np.asarray(batch.columns["obs.image"].state).tolist() == [2, 1]
    assert np.asarray(batch.columns["obs.text"].state).tolist() == [2, 0]


def test_a_file_being_written_is_read_to_its_last_whole_record(tmp_path: Path) -> None:
    """Half a line at the end is left out and said; a whole one without a newline is read."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"reward": 1}\n{"reward": 2}\n{"rew')
    records = open_records([path])
    assert sum(batch.rows for batch in records) == 2
    assert records.notes == ["a.jsonl: line 3 is half written and was left out"]
    path.write_text('{"reward": 1}\n{"reward": 2}')
    assert sum(batch.rows for batch in open_records([path])) == 2


def test_mixed_kinds_and_null_are_kept_apart(tmp_path: Path) -> None:
    """Numbers and text in one column give MIXED with the kind of each row."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1}\n{"x": "b"}\n{"x": null}\n{}\n')
    column = batches(path)[0].columns["x"]
    assert column.kind is Kind.MIXED
    assert [column.kinds[int(at)] for at in np.asarray(column.kind_of)[:2]] == [Kind.INT, Kind.TEXT]
    assert np.asarray(column.state).tolist() == [2, 2, 1, 0]


def test_a_folder_gives_its_segments_in_order(tmp_path: Path) -> None:
    """Segment 10 comes after segment 9, hidden and temporary files stay out, subfolders of a run folder are read."""
    for number in (10, 9, 2):
        (tmp_path / f"s-{number}.jsonl").write_text(f'{{"reward": {number}}}\n')
    (tmp_path / ".s-1.jsonl").write_text("broken")
    (tmp_path / "s-3.jsonl.tmp").write_text("broken")
    assert [path.name for path in open_records([tmp_path]).files] == ["s-2.jsonl", "s-9.jsonl", "s-10.jsonl"]
    run = tmp_path / "run"
    (run / "ready").mkdir(parents=True)
    (run / "ready" / "a-1.jsonl").write_text('{"reward": 1}\n')
    assert [path.name for path in open_records([run]).files] == ["a-1.jsonl"]


def test_no_slip_of_the_pen_is_read_the_fast_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 600 blocks with a byte changed, lost or put in, each that goes the fast way goes the exact way with the same columns."""
    chance = random.Random(7)
    path = tmp_path / "a.jsonl"
    taken = 0
    monkeypatch.setattr(jsonl._Fast, "read", lambda *_: None)
    for _ in range(600):
        rows = [
            {
                "t": chance.randint(-5, 99),
                "obs": [chance.choice([chance.gauss(0, 1), 3, 4e-05]) for _ in range(2)],
                "end": chance.choice([None, True, False]),
                "name": chance.choice(["a", "b,c", "x]", ""]),
                "info": {"k": chance.random(), "grid": [[1, 2], [0.5]]},
                "list": chance.choice([None, [], [1], [1, 2]]),
            }
            for _ in range(8)
        ]
        text = bytearray("".join(json.dumps(row) + "\n" for row in rows).encode())
        plan = plan_of(bytes(text[: text.index(10)]), rows[0])
        assert plan is not None
        at, byte = chance.randrange(len(text) - 1), chance.choice(b'",.[]{}:0123456789-eEtfn \n')
        how = chance.randrange(3)
        text[at : at + (how != 2)] = b"" if how == 1 else bytes([byte])
        fast = batch_of_block(str(path), bytes(text), 1, plan, simdjson.Parser())
        if fast is not None:
            taken += 1
            path.write_bytes(text)
            (exact,) = batches(path)
            same(fast, exact)
    assert 100 < taken < 500
