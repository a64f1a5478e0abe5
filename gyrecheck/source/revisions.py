"""The files of a git revision, read beside the working tree, so that `--diff-base REV` can say what is new since then.

New is a finding whose fingerprint the same check of the old tree does not give. Changed lines would be cheaper and wrong: a helper that
begins to step the environment makes a finding in a trainer whose lines did not change. The old tree is read whole (rules look through
calls), but every file that did not change has the same content hash and comes from the cache. A file that was renamed keeps its old
findings under its new name.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gyrecheck.model.errors import GyreError
from gyrecheck.source.baseline import Entry

_OUTSIDE = "run it inside the repository, or compare with a file: --baseline FILE"
SUFFIXES = (".py", ".pyi", ".ipynb")


@dataclass(frozen=True, slots=True)
class Revision:
    """One commit: its full hash, its Python files by path relative to the folder asked for, and old path -> new path of renamed ones."""

    name: str
    commit: str
    files: dict[str, bytes]
    renamed: dict[str, str]

    def rename(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """The entries of the old tree, those of renamed files under the new name and without the fingerprint, which holds the old one."""
        return tuple(replace(e, path=self.renamed[e.path], fingerprint="") if e.path in self.renamed else e for e in entries)


def read_revision(folder: Path, revision: str, paths: Sequence[str] = ()) -> Revision:
    """The Python files at `revision` below `folder` (only `paths` below it when given); symbolic links and submodules are left out.

    Raises:
        GyreError: no git, no repository, or no such revision.
    """
    inside = _git(
        folder, "rev-parse", "--show-prefix", failed=f"{folder}: is in no git repository, so --diff-base has nothing to compare with"
    )
    prefix = os.fsdecode(inside).rstrip("\n")
    unknown = f"--diff-base: git knows no commit `{revision}`"
    name = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", failed=unknown)
    commit = name.decode().strip()
    spec = [os.fsencode(p) for p in paths] or [b"."]
    listing = _git(folder, "ls-tree", "-r", "-z", commit, "--", *spec, failed=f"--diff-base: the tree of {commit} cannot be read")
    blobs: dict[str, bytes] = {}
    for row in listing.split(b"\0"):
        meta, _, path = row.partition(b"\t")
        mode, kind, blob = [*meta.split(b" "), b"", b""][:3]
        if kind == b"blob" and mode != b"120000" and path.endswith(tuple(s.encode() for s in SUFFIXES)):
            blobs[os.fsdecode(path)] = blob
    contents = _contents(folder, list(blobs.values()))
    files = {path: contents[blob] for path, blob in blobs.items() if blob in contents}
    return Revision(revision, commit, files, _renamed(folder, commit, prefix))


def _contents(folder: Path, blobs: list[bytes]) -> dict[bytes, bytes]:
    """All blobs from one `git cat-file --batch`: header `<hash> blob <size>`, the bytes, a newline."""
    wanted = list(dict.fromkeys(blobs))
    stream = _git(
        folder, "cat-file", "--batch", failed="--diff-base: git could not read the old files", given=b"".join(b + b"\n" for b in wanted)
    )
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(stream):
        end = stream.index(b"\n", at)
        header = stream[at:end].split(b" ")
        at = end + 1
        if len(header) == 3 and header[1] == b"blob":
            size = int(header[2])
            found[header[0]] = stream[at : at + size]
            at += size + 1
    return found


def _renamed(folder: Path, commit: str, prefix: str) -> dict[str, str]:
    """Old path -> new path of files renamed since the commit, relative to the folder; what git does not call a rename is none."""
    rows = _git(
        folder, "diff", "--name-status", "-z", "-M", "--diff-filter=R", "--no-ext-diff", commit, failed="--diff-base: git diff failed"
    )
    fields = [os.fsdecode(f) for f in rows.split(b"\0")]
    pairs = zip(fields[1::3], fields[2::3], strict=False)
    return {old.removeprefix(prefix): new.removeprefix(prefix) for old, new in pairs if old.startswith(prefix) and new.startswith(prefix)}


def _git(folder: Path, *arguments: str | bytes, failed: str, given: bytes = b"") -> bytes:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], input=given, capture_output=True, check=False, env=environment)
    except OSError as error:
        raise GyreError(f"--diff-base needs git, which could not be started ({error.strerror or error})") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ").splitlines()
        outside = bool(said) and said[0].startswith("not a git repository")
        raise GyreError(failed, hint=_OUTSIDE if outside else said[-1] if said else "git log --oneline lists commits")
    return done.stdout
