"""`handoff show`: the table of keys, one whole episode on request, nothing judged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gyrecheck.commands.handoff import app
from gyrecheck.model.errors import GyreError


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    if isinstance(result.exception, GyreError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_table_has_role_dtype_shape_range_and_remarks(tmp_path: Path) -> None:
    """One row a key, with what is absent, None, empty, NaN or constant counted."""
    rows = [
        {"obs": [1.0, 2.0], "lp": -0.5, "policy_version": 3},
        {"obs": [3.0, 4.0], "lp": None, "policy_version": 3},
        {"obs": [], "policy_version": 3},
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = json.loads(run("show", str(path), "--output-format", "json", "--field", "logprob=lp"))["tables"]["fields"]
    by_key = {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
    assert by_key["obs"]["role"] == "obs"
    assert by_key["obs"]["range"] == "1 to 4"
    assert by_key["obs"]["remarks"] == "empty at 1"
    assert by_key["obs"]["example"] == "[1, 2]"
    assert (by_key["lp"]["role"], by_key["lp"]["remarks"]) == ("logprob", "absent at 1 of 3, None at 1 of 3")
    assert by_key["policy_version"]["remarks"] == "constant"


def test_binary_files_show_their_own_dtypes(tmp_path: Path) -> None:
    """Dtype is the file's, not the kind's."""
    np.savez(tmp_path / "a.npz", obs=np.zeros((4, 24), np.float32), action=np.zeros(4, np.int16))
    text = run("show", str(tmp_path / "a.npz"))
    assert "float32" in text
    assert "int16" in text
    assert "[24]" in text


def test_one_whole_episode_comes_first(tmp_path: Path) -> None:
    """`--episode` prints every step of that episode, and only those, before the table."""
    rows = [{"episode_id": at // 3, "t": at % 3, "reward": at / 2} for at in range(9)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for word, first in (("first", 1), ("1", 4)):
        tables = json.loads(run("show", str(path), "--episode", word, "--output-format", "json"))["tables"]
        assert next(iter(tables)) == "episode"
        assert [row[0] for row in tables["episode"]["rows"]] == [first, first + 1, first + 2]
    with pytest.raises(GyreError, match="no record has this episode"):
        run("show", str(path), "--episode", "99")


def test_a_file_without_records_is_no_pass(tmp_path: Path) -> None:
    """Nothing to show ends in an error, not in an empty table."""
    (tmp_path / "a.jsonl").write_text("\n")
    with pytest.raises(GyreError, match="holds no record"):
        run("show", str(tmp_path / "a.jsonl"))


def test_numbers_with_one_text_among_them_are_not_constant(tmp_path: Path) -> None:
    """Of 0.25, "high", None and 0.75 the range is that of the numbers, and nothing is constant or NaN."""
    path = tmp_path / "mixed.jsonl"
    path.write_text("".join(json.dumps({"obs": [0.5], "reward": value}) + "\n" for value in (0.25, "high", None, 0.75)))
    table = json.loads(run("show", str(path), "--output-format", "json"))["tables"]["fields"]
    row = dict(zip(table["columns"], next(r for r in table["rows"] if r[0] == "reward"), strict=True))
    assert (row["range"], row["remarks"]) == ("0.25 to 0.75", "None at 1 of 4")
