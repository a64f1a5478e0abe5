"""What public code does on purpose and a naive rule would flag stays at note level, each idiom in a file of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gyrecheck.cli import build_app

FOLDER = Path(__file__).parents[2] / "fixtures" / "projects" / "legitimate"
FILES = sorted(FOLDER.glob("*.py"))


def findings(*words: str) -> list[dict[str, object]]:
    """The findings of `gyrecheck lint WORDS`."""
    result = CliRunner().invoke(build_app("lint"), ["lint", *words, "--output-format", "json", "--no-cache", "--quiet"])
    assert result.exit_code in {0, 1}, result.output
    found = json.loads(result.stdout)["findings"]
    assert isinstance(found, list)
    return found


def shown(found: list[dict[str, object]]) -> list[str]:
    """What is above a note, readable."""
    return [f"{f['code']} {f['path']}:{f['line']} {f['message']}" for f in found if f["severity"] in {"error", "warning"}]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_idiom_stays_at_note_level(path: Path) -> None:
    """Alone, as a program of one file, the idiom raises nothing above a note."""
    assert shown(findings(str(path))) == []


def test_idioms_side_by_side_raise_no_error() -> None:
    """All files as one tree: they import nothing of one another, and nothing is mixed up between them."""
    assert shown(findings(str(FOLDER))) == []


def test_every_row_of_the_hardest_false_positives_has_its_file() -> None:
    """The folder holds the idioms that were counted in public code."""
    assert len(FILES) >= 25
    assert all(path.read_text().startswith('"""') for path in FILES)
