"""What was accepted before: a baseline file, or the tree of a git revision; both only mark findings."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gyrecheck.commands.streams import write_stderr
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Finding
from gyrecheck.model.whole_file import write_whole
from gyrecheck.source.baseline import Entry, baseline_text, compare, entries_of, read_baseline
from gyrecheck.source.texts import Text

Old = Callable[[tuple[Text, ...]], tuple[Finding, ...]]
"""From the texts of an old tree to its findings, suppressed ones marked."""


DEFAULT_BASELINE = "gyre-baseline.json"
"""What `--write-baseline` writes when no `--baseline` names a file: beside the configuration, else in the current folder."""


@dataclass(slots=True)
class Accepted:
    """The entries to compare with, and what the comparison gave."""

    baseline: Path | None = None
    write: bool = False
    old_tree: tuple[Entry, ...] | None = None
    stale: tuple[Entry, ...] = ()
    said: list[str] = field(default_factory=list)

    @property
    def compares(self) -> bool:
        """Whether there is anything to compare with."""
        return self.baseline is not None or self.old_tree is not None

    def mark(self, findings: tuple[Finding, ...], checked: frozenset[str]) -> tuple[Finding, ...]:
        """The findings with accepted ones marked; with `write` the baseline is written first, and entries of unchecked files stay.

        Raises:
            GyreError: the baseline does not load, or cannot be written.
        """
        if self.old_tree is not None:
            findings, _ = compare(findings, self.old_tree)
        if self.baseline is None:
            return findings
        exists = self.baseline.exists()
        before = read_baseline(self.baseline) if exists or not self.write else ()
        if self.write:
            _, gone = compare(findings, before, checked)
            kept = tuple(e for e in before if e.path not in checked)
            now = tuple(sorted((*kept, *entries_of(f for f in findings if not f.baselined)), key=lambda e: (e.path, e.code, e.fingerprint)))
            _write(self.baseline, baseline_text(now))
            removed, total, had = sum(e.count for e in gone), sum(e.count for e in now), sum(e.count for e in before)
            self.said.append(f"{self.baseline.as_posix()}: {total} accepted ({total - had + removed} added, {removed} removed)")
            before = now
        marked, self.stale = compare(findings, before, checked)
        return marked

    def summary(self, findings: tuple[Finding, ...]) -> list[str]:
        """What the report says of it."""
        if not self.compares:
            return []
        lines = [f"Accepted before: {sum(f.baselined for f in findings)}."]
        if self.stale:
            lines.append(f"Mended since: {sum(e.count for e in self.stale)}; --write-baseline takes them out of the baseline.")
        return lines


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise GyreError(f"{path}: the baseline cannot be written ({error.strerror or error})") from error


def accepted(
    baseline: Path | None, *, root: str, write: bool, diff_base: str, paths: tuple[Path, ...], exclude: tuple[str, ...], old: Old
) -> Accepted:
    """What the options ask to compare with; the old tree is judged here. A baseline without a name is written below `root`.

    Raises:
        GyreError: options that do not go together, or a revision that cannot be read.
    """
    if str(paths[0]) == "-" and diff_base:
        raise GyreError("--diff-base and standard input together", hint="git holds no earlier standard input")
    said = []
    if write and baseline is None:
        baseline = Path(root) / DEFAULT_BASELINE
        said = [f"--write-baseline without a name writes {baseline.as_posix()}; --baseline {baseline.as_posix()} reads it"]
    if not diff_base:
        return Accepted(baseline, write, said=said)
    from gyrecheck.source.revisions import read_revision

    here = Path.cwd()
    within = {path: os.path.relpath(path, here).replace(os.sep, "/") for path in paths}
    revision = read_revision(here, diff_base, tuple(within.values()))
    texts = _texts(revision.files, within, exclude)
    return Accepted(baseline, write, revision.rename(entries_of(old(texts))), said=said)


def _texts(files: dict[str, bytes], within: dict[Path, str], exclude: tuple[str, ...]) -> tuple[Text, ...]:
    """The old files as if they lay where the checked ones do, under the names the check shows; what it leaves out is left out."""
    from gyrecheck.source.cache import digest
    from gyrecheck.source.files import SourceFile, is_left_out, shown_path
    from gyrecheck.source.texts import cells_of

    here = Path.cwd()
    texts = {}
    for name, content in files.items():
        for given, root in within.items():
            if root not in {".", name} and not name.startswith(f"{root}/"):
                continue
            tail = name if root == "." else name[len(root) + 1 :]
            path = given / tail if tail else given
            shown = shown_path(path, here)
            if is_left_out(tail, shown, exclude):
                continue
            try:
                data = cells_of(content) if name.endswith(".ipynb") else content
            except GyreError:
                continue  # it is reported in the new tree when it is still broken there
            texts[shown] = Text(SourceFile(path, shown), data, digest(data), content)
    return tuple(texts[shown] for shown in sorted(texts))


def say(lines: list[str], *, quiet: bool) -> None:
    """Notes about files written, on standard error."""
    for line in lines if not quiet else ():
        write_stderr(line)
