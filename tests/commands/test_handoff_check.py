"""`handoff check` on the command line: the handed cases, exit codes, formats, options."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from gyrecheck.commands.handoff import app
from gyrecheck.model.errors import GyreError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FIXTURES = Path(__file__).parents[2] / "fixtures" / "trajectories"
CASES = sorted(path.parent.name for path in FIXTURES.glob("*/case.toml"))
CODES = {
    "version-ahead": "GYR408",
    "version-mixed": "GYR341",
    "group-incomplete": "GYR338",
    "advantage-not-of-own-group": "GYR339",
    "done-confusion": "GYR329",
    "shape-jump": "GYR307",
    "length-mismatch": "GYR324",
    "replay-ratio-off": "GYR402",
}
"""The cases' words for a finding, and the code that stands for it."""


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(words))
    if isinstance(result.exception, GyreError):
        raise result.exception
    return result.exit_code, result.stdout


def checked(path: Path, *words: str) -> tuple[int, dict[str, Any]]:
    code, text = run("check", str(path), "--output-format", "json", *words)
    return code, json.loads(text)


def records(text: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, (p.strip() for p in text.split(","))):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mapped", [False, True])
def test_a_case_is_found_at_its_records_and_its_twin_is_silent(name: str, mapped: bool) -> None:
    """Each handed case gives what it expects at its records, with and without `--field`; the twin gives neither that nor an error."""
    folder = FIXTURES / name
    case = tomllib.loads((folder / "case.toml").read_text())
    words = [word for role, key in case["fields"].items() for word in ("--field", f"{role}={key}")] if mapped else []
    code, report = checked(folder / case["inputs"][0], *words)
    assert code == report["exit"] == 1
    for expected in case["expected"]:
        hits = [f for f in report["findings"] if f["code"] == CODES[expected["finding"]]]
        assert hits, expected["finding"]
        assert records(hits[0]["records"]) & records(expected["records"])
        assert hits[0]["line"] in records(hits[0]["records"])
    clean_code, clean = checked(folder / case["clean"][0], *words)
    wanted = {CODES[expected["finding"]] for expected in case["expected"]} - {"GYR338"}
    assert not [f for f in clean["findings"] if f["severity"] == "error" or f["code"] in wanted]
    assert clean_code == 0


def test_a_clean_file_says_what_was_checked_and_what_was_not(tmp_path: Path) -> None:
    """Nothing found is a sentence with counts, and each question without its fields is named."""
    (tmp_path / "a.jsonl").write_text('{"obs": [1.5], "reward": 0.5, "policy_version": 1, "sample_step": 1, "wall_clock": 2.5}\n' * 3)
    code, text = run("check", str(tmp_path / "a.jsonl"))
    assert code == 0
    assert "No findings in 3 records" in text
    assert "Not judged: successor observation: no next_obs" in text


@pytest.mark.parametrize("name", ["concise", "full", "json", "jsonl", "md", "csv", "github", "junit", "sarif"])
def test_every_format_writes_a_finding(name: str) -> None:
    """Each output format holds the finding's code or, for plain tables, the field it concerns."""
    path = FIXTURES / "050-empty-logprob-list-counts-as-present" / "input.jsonl"
    code, text = run("check", str(path), "--output-format", name)
    assert code == 1
    assert "GYR324" in text or "logprobs" in text


def test_select_ignore_and_fail_level(tmp_path: Path) -> None:
    """Codes can be chosen and left out, and the level that fails can be set."""
    path = FIXTURES / "042-time-limit-marked-terminal" / "input.jsonl"
    assert checked(path, "--ignore", "GYR329")[0] == 0
    assert [f["code"] for f in checked(path, "--select", "GYR329")[1]["findings"]] == ["GYR329"]
    assert checked(path, "--fail-on", "error")[0] == 0
    assert checked(path, "--exit-zero")[0] == 0


def test_a_schema_written_from_a_good_file_finds_a_bad_one(tmp_path: Path) -> None:
    """`--write-schema` from one file, `--schema` on another: the lost field is named; the good file passes its own schema."""
    good, bad, schema = tmp_path / "good.jsonl", tmp_path / "bad.jsonl", tmp_path / "schema.toml"
    good.write_text('{"obs": [0.5, 1.5], "reward": 1.5, "score_kind": "x"}\n{"obs": [0.25, 1.5], "reward": 0.5, "score_kind": "y"}\n')
    bad.write_text('{"obs": [0.5, 1.5, 2.5], "score_kind": "x"}\n')
    run("show", str(good), "--write-schema", str(schema))
    assert checked(good, "--schema", str(schema))[0] == 0
    code, report = checked(bad, "--schema", str(schema))
    assert code == 1
    assert {(f["code"], f["field"]) for f in report["findings"] if f["severity"] == "error"} == {("GYR303", "reward"), ("GYR307", "obs")}
    with pytest.raises(GyreError, match="exists already"):
        run("show", str(good), "--write-schema", str(schema))


def test_wrong_options_name_what_there_is(tmp_path: Path) -> None:
    """An unknown role, an unknown key and a malformed `--field` are errors with a near name."""
    path = FIXTURES / "050-empty-logprob-list-counts-as-present" / "input.jsonl"
    with pytest.raises(GyreError, match="unknown field role `logprop`") as caught:
        run("check", str(path), "--field", "logprop=logprobs")
    assert "did you mean `logprob`" in caught.value.hint
    with pytest.raises(GyreError, match="no record has the key `logprop`") as caught:
        run("check", str(path), "--field", "logprob=logprop")
    assert "logprobs" in caught.value.hint
    with pytest.raises(GyreError, match="expected ROLE=KEY"):
        run("check", str(path), "--field", "logprob")
    with pytest.raises(GyreError, match="no such file"):
        run("check", str(tmp_path / "none.jsonl"))


def test_several_files_are_one_data_set(tmp_path: Path) -> None:
    """Records of a second file carry their own numbers, and the finding its own path."""
    (tmp_path / "s-1.jsonl").write_text('{"reward": 1.5}\n' * 3)
    (tmp_path / "s-2.jsonl").write_text('{"reward": 1.5}\n{"reward": null}\n')
    _, report = checked(tmp_path)
    (found,) = [f for f in report["findings"] if f["code"] == "GYR307"]
    assert (Path(found["path"]).name, found["records"], found["share"]) == ("s-2.jsonl", "2", 0.2)


@pytest.mark.parametrize("command", ["show", "check"])
def test_columns_without_rows_are_no_data(tmp_path: Path, command: str) -> None:
    """A file whose columns have no row is refused in one sentence by `show` and `check` alike."""
    np.savez(tmp_path / "zero.npz", obs=np.zeros((0, 3)), reward=np.zeros(0))
    with pytest.raises(GyreError, match=r"zero\.npz: holds no record"):
        run(command, str(tmp_path / "zero.npz"))


def test_a_segment_without_rows_hides_no_other(tmp_path: Path) -> None:
    """An empty segment before a broken one: the broken one's record is found under its own number."""
    np.savez(tmp_path / "s-1.npz", obs=np.zeros((0, 3)), reward=np.zeros(0))
    np.savez(tmp_path / "s-2.npz", obs=np.ones((4, 3)), reward=np.array([1.0, 0.5, np.nan, 2.0]))
    _, report = checked(tmp_path)
    assert [(Path(f["path"]).name, f["records"]) for f in report["findings"] if f["code"] == "GYR320"] == [("s-2.npz", "3")]


def test_one_letter_alone_is_no_field(tmp_path: Path) -> None:
    """`{"a": 1}` has no known field, and that is one sentence; with `r` and `d` beside it, or when told, `a` is the action."""
    (tmp_path / "one.json").write_text('{"a": 1}')
    with pytest.raises(GyreError, match=r"one\.json: no known field among its keys \(a\)"):
        run("check", str(tmp_path / "one.json"))
    told = checked(tmp_path / "one.json", "--field", "action=a")[1]
    assert [row[:2] for row in told["tables"]["contract"]["rows"]] == [["a", "action"]]
    (tmp_path / "more.jsonl").write_text('{"s": [0.5, 1.5], "a": 1, "r": 0.5}\n{"s": [0.25, 1.0], "a": 0, "r": 1.5}\n')
    _, report = checked(tmp_path / "more.jsonl")
    assert ["a", "action"] in [row[:2] for row in report["tables"]["contract"]["rows"]]


def test_no_hint_ends_in_an_empty_line(tmp_path: Path) -> None:
    """A rule's text of several lines gives a hint without the line end behind it."""
    (tmp_path / "a.jsonl").write_text('{"action": 1, "reward": 0.5}\n')
    hints = [f["hint"] for f in checked(tmp_path / "a.jsonl")[1]["findings"]]
    assert hints
    assert all(hint == hint.strip() for hint in hints)


def test_the_text_says_a_record_once(tmp_path: Path) -> None:
    """One record gives one place with what stands there, no second line of the same place and no empty line twice."""
    (tmp_path / "a.jsonl").write_text('{"obs": [0.5], "logprob": -0.5}\n{"obs": [1.5], "logprob": NaN}\n')
    _, text = run("check", str(tmp_path / "a.jsonl"), "--select", "GYR320,GYR401", "--exit-zero")
    assert [line for line in text.splitlines() if "a.jsonl:2" in line] == [f"  --> {tmp_path / 'a.jsonl'}:2   logprob = nan"]
    assert "\n\n\n" not in text
