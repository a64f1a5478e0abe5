"""Run a command within the test's process: same code as the command line, without a second interpreter."""

import io
import sys
from dataclasses import dataclass

import pytest

from gyrecheck import cli


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory):
    """One cache for all of these tests: the rule files are compiled once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, cache_folder):
    """`run("lint", "a.py", given=b"…")` in an empty folder, with a cache folder apart from the user's."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GYRECHECK_CACHE_DIR", str(cache_folder))
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def call(*words, given=b""):
        monkeypatch.setattr(sys, "argv", ["gyrecheck", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            cli.main()
        said = capsys.readouterr()
        return Done(int(left.value.code or 0), said.out, said.err)

    return call
