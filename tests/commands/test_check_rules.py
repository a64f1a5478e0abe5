"""`gyrecheck check-rules`: every file loads, every sample proves, and a failure is named by file and sample."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app
from gyrecheck.commands import rule_proofs
from gyrecheck.model.errors import GyreError
from gyrecheck.rulebook.locate_rules import stray_files
from gyrecheck.rulebook.log_formats import load_formats

RULE = """\
code = "GYR299"
name = "own-rule"
engines = ["lint"]
severity = "warning"
what = "w"
why = "y"
fix = "f"
[[samples]]
engine = "lint"
expect = "found"
lines = [1]
text = "x"
[[samples]]
engine = "lint"
expect = "silent"
text = "y"
"""


def folder(tmp_path: Path, text: str = RULE, name: str = "GYR299-own-rule.toml") -> Path:
    """A project's rules folder that holds one code."""
    (tmp_path / "codes").mkdir(exist_ok=True)
    (tmp_path / "codes" / name).write_text(text)
    return tmp_path


def invoke(*words: str) -> GyreError | str:
    """Standard output, or the error that ended the command."""
    result = CliRunner().invoke(build_app("check-rules"), ["check-rules", *words])
    if isinstance(result.exception, GyreError):
        return result.exception
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.stdout


def pretend(monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[tuple[str, int], ...]]) -> None:
    """Let the lint engine find `answers[text of the sample]`."""
    monkeypatch.setattr(rule_proofs, "prover", lambda _engine: lambda sample: answers[sample.text])


def test_samples_that_prove_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder whose two samples behave says so and exits 0."""
    pretend(monkeypatch, {"x": (("GYR299", 1),), "y": ()})
    assert (
        invoke(str(folder(tmp_path)))
        == f"All rule files load (1 codes); 2 samples prove their rules, {len(load_formats())} log formats theirs.\n"
    )


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"x": (), "y": ()}, "sample 1 (found) raises no GYR299"),
        ({"x": (("GYR299", 3),), "y": ()}, "sample 1 (found) raises GYR299 at line 3, expected at line 1"),
        ({"x": (("GYR299", 1),), "y": (("GYR299", 4),)}, "sample 2 (silent) is silent, but raises GYR299 at line 4"),
        ({"x": (("GYR101", 1),), "y": ()}, "found instead: GYR101 at line 1"),
    ],
)
def test_a_failing_sample_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[tuple[str, int], ...]], words: str
) -> None:
    """File, sample number, and what was seen against what was expected."""
    pretend(monkeypatch, answers)
    error = invoke(str(folder(tmp_path)))
    assert isinstance(error, GyreError)
    assert int(error.exit_code) == 2
    assert "GYR299-own-rule.toml" in error.message
    assert words in error.message


def test_a_rule_without_a_silent_sample_is_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that shows only what it finds proves nothing about its false alarms."""
    pretend(monkeypatch, {"x": (("GYR299", 1),)})
    error = invoke(str(folder(tmp_path, RULE.rsplit("[[samples]]", 1)[0])))
    assert isinstance(error, GyreError)
    assert "has no silent sample" in error.message


def test_a_file_that_does_not_load_ends_the_check(tmp_path: Path) -> None:
    """An unknown key is named with the file and the near key."""
    error = invoke(str(folder(tmp_path, RULE.replace("severity", "severty", 1))))
    assert isinstance(error, GyreError)
    assert "GYR299-own-rule.toml" in error.message
    assert "`severty` is no known key, did you mean `severity`?" in error.message


def test_an_engine_that_proves_nothing_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample is never skipped because its engine has no `prove`."""
    monkeypatch.setattr(rule_proofs, "prover", lambda _engine: None)
    error = invoke(str(folder(tmp_path)))
    assert isinstance(error, GyreError)
    assert "sample 2 (silent) names the engine lint, which proves no samples" in error.message


def test_a_sample_for_an_engine_that_the_rule_does_not_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`engines` and the samples agree."""
    pretend(monkeypatch, {"x": (("GYR299", 1),), "y": ()})
    error = invoke(str(folder(tmp_path, RULE.replace('engines = ["lint"]', 'engines = ["ledger"]'))))
    assert isinstance(error, GyreError)
    assert "has samples for lint, which `engines` does not name" in error.message


def test_the_projects_own_folder_is_what_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `rules` in the configuration no argument is needed: a broken file is named with its line, a folder that is none in a sentence."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gyrecheck.toml").write_text('rules = "rules"')
    missing = invoke()
    assert isinstance(missing, GyreError)
    assert missing.message == f"{tmp_path / 'rules'}: is no rules folder"
    (tmp_path / "rules" / "vocabulary").mkdir(parents=True)
    (tmp_path / "rules" / "vocabulary" / "broken.toml").write_text("schema = 1\nx = [\n")
    broken = invoke()
    assert isinstance(broken, GyreError)
    assert "broken.toml: is no valid TOML" in broken.message
    assert "(at line 2, the end of the file)" in broken.message


def test_a_file_that_nothing_reads_is_named(tmp_path: Path) -> None:
    """A file beside the folders, and one in a folder whose name is a slip, are two failures; the slip comes with the nearest name."""
    (tmp_path / "vocabularies").mkdir()
    (tmp_path / "vocabularies" / "own.toml").write_text("")
    (tmp_path / "own.toml").write_text("")
    beside, below = stray_files(tmp_path)
    assert beside.startswith(f"{tmp_path / 'own.toml'}: is read by nothing: rule files stand in codes, vocabulary, logs, ")
    assert below == f"{tmp_path / 'vocabularies' / 'own.toml'}: is read by nothing: did you mean `vocabulary`?"
    assert isinstance(invoke(str(tmp_path)), GyreError)
