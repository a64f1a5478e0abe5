"""Lines read through a layout say exactly what the long way says; whatever could differ is read the long way."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gyrecheck.model.events import Reading
from gyrecheck.model.snapshot import Snapshot
from gyrecheck.rulebook.log_formats import LogFormat, load_formats
from gyrecheck.stream.cover import cover
from gyrecheck.stream.layouts import layout_of
from gyrecheck.stream.probe import Said
from gyrecheck.stream.reader import FormatReader
from gyrecheck.stream.scan import Scan
from gyrecheck.verdict.tally import Tally

FRONTS = ("", "2026-11-30T13:38:{s:02}.{u:06}Z pid={p} side=training ", "(Trainer pid={p}, ip=10.0.0.{k}) ", "13:38:{s:02} INFO ", "[{s}] ")
BODIES = (
    "take dropped_stale={a} taken={b} buffer_left={c} dropped_other=0 reason=none taken_total={d}",
    "sampled n={a} sampled_total={d} policy_version={k} act_calls={b}",
    "sampled={a} taken={b} dropped={c} left={k}",
    "sampled=-{a} taken=+{b} loss=-{a}.{u}e-{k} ratio={a}.{b}",
    "sampled={k},{b:03} taken=0x{k} dropped={a}e{k} left=nan",
    "loss_{k}={a}.{b} reward_{k}: {c} p{k}5=3 x{k}.taken={b}",
    "policy_version=-{k} taken={b}",
    "policy_version: -1 taken={b}",
    "batch={k}x{b} steps={d} {k}:{s:02}:{s:02} taken={a}",
    "trained with v{a}, made by v{k}-v{b}, taken {c}, learner at v{d} engines at v{k} v{b} v{k}",
    "totals after {k}: sampled={a} removed={b} (flat {c}, aborted {k}) taken={d}",
    "weights v{k} loaded, {a} rollouts in, {b} to trainer, clip_fraction={k}%",
    "{{'loss': '{a}.{b}', 'ratio': np.float{k}4({a}.{c}), 'sampled': np.int64({d})}}",
    '{{"time": 17000000{s:02}.{b}, "sampled": {a}, "taken": {b}}}',
    "{a}{d} rollouts in, {b} removed, {c} to trainer",
    "took {a}.{k}s at 10:00:0{k}, ids {a}..{b}, taken={c}",
    "waiting reason=batch have={a} need={b}",
    "loaded policy_version={k} resumed sampled_total={d}",
    '{{"id": "{d:08x}-{u:04x}", "sampled": {a}, "note": "{b}e{k}", "taken": {b}}}',
)
FORMATS: tuple[LogFormat | None, ...] = (None, load_formats()["reference_loop"], load_formats()["counter_lines"])


def _long(form: LogFormat | None, line: bytes) -> Said:
    return Scan("run.log", FormatReader(form))._slow(line)


def _text(rng: random.Random, shape: str) -> bytes:
    digits = rng.choice((1, 2, 3, 6))
    return shape.format(
        a=rng.randrange(10**digits), b=rng.randrange(10 ** rng.randint(1, 3)), c=rng.randrange(1000), d=rng.randrange(10 ** rng.randint(1, 9)),
        k=rng.randrange(10), p=rng.randint(1, 99999), s=rng.randrange(60), u=rng.randrange(1000000),
    ).encode()  # fmt: skip


def test_versions_spelled_with_a_letter_have_a_layout() -> None:
    """`v17` is a number like any other: lines that differ in it are one shape, read at once."""
    reader = FormatReader(None)
    line = b"policy version v17, sampled 64, taken 60"
    assert layout_of(line, lambda text: Scan("run.log", reader)._slow(text), reader.caution) is not None


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(FRONTS), st.sampled_from(BODIES), st.sampled_from(FORMATS))
def test_cached_is_uncached(seed: int, front: str, body: str, form: LogFormat | None) -> None:
    """For any numbers in any prefix and body, a line that went through the cache says what a fresh reader says."""
    rng = random.Random(seed)
    scan = Scan("run.log", FormatReader(form))
    for _ in range(9):
        line = _text(rng, front + body)
        assert repr(scan._layouts.read(line)) == repr(_long(form, line)), line


def test_layouts_are_made_and_trusted() -> None:
    """The lines of the bundled loop are read through a layout, with time, pid, signs and keys."""
    form = FORMATS[1]
    assert form is not None
    scan = Scan("run.log", FormatReader(form))
    for line in form.samples[0].text.strip().encode().split(b"\n"):
        layout = layout_of(line, scan._slow, scan.reader.caution)
        assert layout is not None, line
        found = layout.match(line)
        assert found is not None
        assert repr(layout.read(found)) == repr(scan._slow(line))


@pytest.mark.parametrize(
    ("line", "other"),
    [
        (b"policy_version=-2 taken=3", b"policy_version=-1 taken=3"),
        (b"loss_1=3.0 taken=4", b"loss_2=3.0 taken=4"),
        (b"taken=1x10", b"taken=0x10"),
        (b"taken=1,024", b"taken=1,02"),
        (b"2026-10-01T10:00:00Z taken=3", b"2026-13-01T10:00:00Z taken=3"),
        (b"taken=3 left=4", b"taken=3. left=4"),
        (b"taken=3 left=4", b"taken=3e1 left=4"),
    ],
)
def test_look_alikes_share_nothing(line: bytes, other: bytes) -> None:
    """A line that differs from a well-known one only in digits, but means something else, is not read like it."""
    scan = Scan("run.log", FormatReader(None))
    for _ in range(12):
        scan._layouts.read(line)
    assert repr(scan._layouts.read(other)) == repr(_long(None, other))


def _log(seed: int, size: int, shapes: tuple[str, ...] = BODIES) -> bytes:
    """Lines of few or many shapes, interleaved by several processes, with restarts, torn and glued lines, colour and NULs."""
    rng = random.Random(seed)
    fronts = rng.sample(FRONTS, rng.randint(1, len(FRONTS)))
    bodies = rng.sample(shapes, rng.randint(1, len(shapes)))
    hurt = rng.choice((0, 5, 40))
    lines = []
    for at in range(size):
        line = _text(rng, rng.choice(fronts) + rng.choice(bodies))
        if rng.randrange(100) < hurt:
            line = rng.choice((
                b"\r 3%|## | 1/3\r" + line, b"\x1b[36m" + line + b"\x1b[0m", b"\0\0" + line, line[: rng.randrange(len(line))],
                line + b"\r" + line, b"\xff" + line, line.replace(b"=", b"=\x1b[1m"), line + line,
                b"Restarting from checkpoint step %d" % at, line + b" [repeated 3x across cluster]", line.replace(b"=", b"= -"),
            ))  # fmt: skip
        lines.append(line)
    return rng.choice((b"\n", b"\r\n")).join(lines) + rng.choice((b"\n", b"", b" "))


def _snapshot(batches: list[list[Reading]]) -> Snapshot:
    tally = Tally()
    for batch in batches:
        tally.feed(batch)
    return tally.snapshot()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(FORMATS), st.sampled_from((1 << 20, 7001, 500)))
def test_columns_count_like_lines(seed: int, form: LogFormat | None, size: int) -> None:
    """A log read as columns gives the very snapshot that its readings give one after another, whatever the blocks and whatever is in it."""
    data = _log(seed, 250)
    one_by_one = Scan("run.log", FormatReader(form))
    expected = _snapshot(list(one_by_one.read([data[at : at + size] for at in range(0, len(data), size)])))
    scan, tally = Scan("run.log", FormatReader(form)), Tally()
    for batch in scan.batches([data[at : at + size] for at in range(0, len(data), size)]):
        tally.feed_batch(batch)
    found = tally.snapshot()
    assert repr(sorted(found.series, key=repr)) == repr(sorted(expected.series, key=repr))
    assert repr((found.marks, found.processes, found.readings, found.suppressed)) == repr(
        (expected.marks, expected.processes, expected.readings, expected.suppressed)
    )
    assert scan.seen == one_by_one.seen


@pytest.mark.parametrize(
    "spelled", ["7", "0042", "3.25", ".5", "12345678901234567", "0.123456789012345678", "9007199254740993", "1.5e-3", "-0", "+8.0"]
)
def test_numbers_of_columns_are_floats(spelled: str) -> None:
    """A column's numbers are to the last bit what `float` makes of the text, however many digits it has."""
    line = f"2026-11-30T13:38:01Z pid=7 side=training take dropped_stale=1 taken={spelled} buffer_left=2 dropped_other=0 reason=none\n"
    tally = Tally()
    for batch in Scan("run.log", FormatReader(FORMATS[1])).batches([line.encode() * 100]):
        tally.feed_batch(batch)
        assert sum(len(rows.orders) for rows in batch.rows) > 50
    taken = next(series for series in tally.snapshot().series if series.name == "taken")
    assert {repr(value) for value in taken.values} == {repr(float(spelled))}


@pytest.mark.parametrize(
    ("front", "base"),
    [("{:02}:{:02}:{:02} INFO ", 0.0), ("2026-10-01 {:02}:{:02}:{:02} INFO ", 1_790_812_800.0), ("[{:02}:{:02}:{:02}.25] ", 0.25)],
    ids=["time of day", "date", "fraction"],
)
def test_times_of_columns_are_those_of_their_lines(front: str, base: float) -> None:
    """The line `at` of one block was written 7 x `at` seconds after 10:00: over 35 minutes each reading has its own time."""
    seconds = [36_000 + 7 * at for at in range(300)]
    lines = [front.format(t // 3600, t // 60 % 60, t % 60) + f"taken={at} left=0\n" for at, t in enumerate(seconds)]
    tally = Tally()
    for batch in Scan("run.log", FormatReader(None)).batches(["".join(lines).encode()]):
        tally.feed_batch(batch)
    (taken,) = (s for s in tally.snapshot().series if s.name == "taken")
    assert list(taken.times) == [base + t for t in seconds]


def test_few_lines_are_found_as_when_all_are_looked_at() -> None:
    """In a log with few lines of interest, searching whole blocks finds the lines, numbers and offsets that a look at each line finds."""
    noise = b"DEBUG tick idle 0.25, next batch soon\n(RolloutWorker pid=3) Avg throughput 3.5 tokens/s\n\r 3%|## | 1/3\n"
    data = b"".join(noise * 20 + line + b"\n" for line in _log(5, 120).split(b"\n"))
    for form in FORMATS[1:]:
        scan, tally = Scan("run.log", FormatReader(form)), Tally()
        for batch in scan.batches([data]):
            tally.feed_batch(batch)
        assert scan._few
        expected = _snapshot([Scan("run.log", FormatReader(form))._lines(data[:-1].split(b"\n"))])
        assert repr(sorted(tally.snapshot().series, key=repr)) == repr(sorted(expected.series, key=repr))


@pytest.mark.parametrize(
    ("first", "line"),
    [(b"sampled=4 taken=", b"sampled= taken=4"), (b"taken=1,024 left=5", b"taken=1,02 left=5"), (b"taken=4 left=", b"taken=4 left=3")],
)
def test_a_plan_is_for_its_own_numbers(first: bytes, line: bytes) -> None:
    """What a line says does not depend on an earlier line with the same letters and its numbers elsewhere."""
    reader = FormatReader(None)
    reader.read(first)
    assert reader.read(line) == FormatReader(None).read(line)


def test_every_anchor_is_covered() -> None:
    """Whatever the log, each anchor holds one of the parts that are searched."""
    for form in list(load_formats().values())[::5]:
        anchors = FormatReader(form).anchors
        for block in (b"", _log(1, 300), b"= [ e s _ ' / : . " * 300):
            parts = cover(anchors, block)
            assert all(any(part in anchor for part in parts) for anchor in anchors), form.name
