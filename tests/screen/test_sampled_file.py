"""Promises of the sampled trajectory file: the contract of `handoff check`, a bounded cost, and no alarm from one small file."""

import json
from pathlib import Path

from gyrecheck.commands.handoff_check import check_report
from gyrecheck.model.finding import Severity
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.screen.sampled_file import LARGEST, SampledFile, newest_segment


def record(at, **changes):
    told = {
        "trajectory_id": f"t{at}", "policy_version": 3, "episode_id": at, "step": 0, "terminated": at % 3 == 0, "truncated": at % 3 == 1,
        "obs": [[0.1 * at, 0.2], [0.3, 0.4 + at]], "action": [0, 1], "logprob": [-0.7, -0.6], "reward": [1.0, 0.5 + at],
    }  # fmt: skip
    return json.dumps(told | changes) + "\n"


def segment(folder, state, number, **changes):
    place = folder / state / f"s0-{number:06d}-v000003-n0006.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("".join(record(at, **changes) for at in range(number, number + 6)))
    return place


def looked(folder, **settings):
    now = [0.0]
    sample = SampledFile(load_codes(), clock=lambda: now[0], **settings)
    return sample, now, sample.look(folder)


def test_the_youngest_state_and_the_last_name_are_sampled(tmp_path):
    """Segments that wait are younger than taken and settled ones; of several the last by name is taken; hidden ones are none."""
    segment(tmp_path, "settled/t0", 9)
    assert newest_segment(tmp_path).parent.name == "t0"
    segment(tmp_path, "ready", 3)
    newest = segment(tmp_path, "ready", 4)
    (tmp_path / "ready" / ".s0-000005-v000003-n0006.jsonl.tmp").write_text("{")
    assert newest_segment(tmp_path) == newest


def test_a_broken_field_is_on_the_panel_as_handoff_check_says_it(tmp_path):
    """A log-prob that is null in every record: the errors of the panel are those of `handoff check` on the same file."""
    place = segment(tmp_path, "ready", 1, logprob=None)
    _, _, rows = looked(tmp_path)
    report, _ = check_report([place], {})
    errors = {f.code for f in report.findings if f.severity is Severity.ERROR}
    assert errors
    assert {text.split()[1] for name, text in rows if not name and text.startswith("error")} <= errors
    assert "fields broken, 6 rows of" in rows[0][1]


def test_a_whole_file_holds(tmp_path):
    """Ten fields in six rows: all hold, nothing else is said."""
    segment(tmp_path, "ready", 1)
    assert looked(tmp_path)[2] == (("field contract", "10 fields hold, 6 rows of s0-000001-v000003-n0006.jsonl"),)


def test_a_warning_counts_from_the_second_file_on(tmp_path):
    """Three of six episodes end at 30 steps, never truncated: in one file only at first, and broken once the next file shows it too."""

    def cut(number):
        place = segment(tmp_path, "ready", number)
        steps = [30, 30, 30, 9, 11, 14]
        place.write_text("".join(
            record(at, terminated=True, truncated=False, action=[at % 2] * n, logprob=[-0.7] * n, reward=[1.0 + at] * n,
                   obs=[[0.01 * step + at, 0.2 * step] for step in range(n)])
            for at, n in enumerate(steps, number)
        ))  # fmt: skip
        return place

    place = cut(1)
    sample, now, first = looked(tmp_path)
    assert "GYR329" in {f.code for f in check_report([place], {})[0].findings if f.severity is Severity.WARNING}
    assert "10 fields hold" in first[0][1]
    assert ("", "GYR329 time-limit-as-terminal: in this file only, so far") in first
    cut(9)
    now[0] = 1e6
    second = sample.look(tmp_path)
    assert "broken" in second[0][1]
    assert ("", "warning GYR329 time-limit-as-terminal: terminated") in second


def test_nothing_is_read_twice_or_too_soon_or_too_large(tmp_path):
    """Before it is due another file changes nothing; a large file is named, not read; a folder that is gone leaves the last rows."""
    segment(tmp_path, "ready", 1)
    sample, now, rows = looked(tmp_path)
    large = segment(tmp_path, "ready", 2)
    with large.open("ab") as out:
        out.truncate(LARGEST + 1)
    assert sample.look(tmp_path) == rows
    now[0] = 1e6
    assert "8 MiB: not sampled" in sample.look(tmp_path)[0][1]
    now[0] = 2e6
    assert sample.look(Path(tmp_path, "gone"))
