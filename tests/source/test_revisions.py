"""The old tree of `--diff-base`: which files it has, under which names, and what cannot be compared."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.source.baseline import Entry, compare
from gyrecheck.source.revisions import read_revision


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit: two Python files (one in a folder), a notebook, a text file, a link."""
    root = tmp_path / "repo"
    (root / "pkg").mkdir(parents=True)
    (root / "a.py").write_bytes(b"x = 1\r\n")
    (root / "pkg" / "b c.py").write_text("y = 2\n" * 20)
    (root / "pkg" / "n.ipynb").write_text("{}")
    (root / "readme.md").write_text("no")
    (root / "link.py").symlink_to("a.py")
    git(root, "init", "-q")
    commit(root)
    return root


def git(root, *arguments):
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    plain = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "-C", str(root), *arguments], check=True, env={**os.environ, **identity, **plain}, capture_output=True)


def commit(root):
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "x")


def test_the_files_are_those_of_the_revision(repository):
    """Changes in the working tree do not show; bytes are exact; text files and links are left out."""
    (repository / "a.py").write_text("changed\n")
    (repository / "new.py").write_text("z = 3\n")
    old = read_revision(repository, "HEAD")
    assert old.files == {"a.py": b"x = 1\r\n", "pkg/b c.py": b"y = 2\n" * 20, "pkg/n.ipynb": b"{}"}
    assert len(old.commit) == 40


def test_paths_are_relative_to_the_folder(repository):
    """Asked from a folder within, the paths are those the check itself uses there."""
    assert set(read_revision(repository / "pkg", "HEAD").files) == {"b c.py", "n.ipynb"}
    assert set(read_revision(repository, "HEAD", ["a.py"]).files) == {"a.py"}


def test_a_renamed_file_keeps_its_findings(repository):
    """An entry under the old name answers to the new one, also when the file moved between folders."""
    git(repository, "mv", "pkg/b c.py", "moved.py")
    old = read_revision(repository, "HEAD")
    assert old.renamed == {"pkg/b c.py": "moved.py"}
    entries = old.rename([Entry("f", "GYR203", "pkg/b c.py", "m"), Entry("g", "GYR203", "a.py", "m")])
    assert [(e.path, e.fingerprint) for e in entries] == [("moved.py", ""), ("a.py", "g")]
    found = Finding("GYR203", "n", Severity.ERROR, "m", "moved.py", 7, fingerprint="h")
    marked, _ = compare([found, replace(found, message="another")], entries)
    assert [f.baselined for f in marked] == [True, False]


@pytest.mark.parametrize("revision", ["nope", "--help", "HEAD:a.py", ""])
def test_an_unknown_revision_is_one_sentence(repository, revision):
    """What names no commit, even an option of git, ends in an error that quotes it."""
    with pytest.raises(GyreError, match="knows no commit"):
        read_revision(repository, revision)


def test_without_a_repository_there_is_nothing_to_compare(tmp_path, monkeypatch):
    """A folder outside git is refused, with what to do instead of git's own words."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(GyreError, match="no git repository") as refused:
        read_revision(tmp_path, "HEAD")
    assert refused.value.hint == "run it inside the repository, or compare with a file: --baseline FILE"


def test_without_git_the_error_says_so(tmp_path, monkeypatch):
    """No git on the path is an error of its own."""
    monkeypatch.setenv("PATH", str(Path(tmp_path)))
    with pytest.raises(GyreError, match="needs git"):
        read_revision(tmp_path, "HEAD")
