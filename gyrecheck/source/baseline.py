"""Findings that a project has accepted for now, kept in a file without line numbers, so that moving code changes nothing.

An entry is a fingerprint (code, file, function and target) with a count: the first `count` findings of it are baselined, one more is
new. Baselined findings are marked, never dropped. An entry with fewer findings than its count is stale: it is reported, and gone the
next time the file is written, so that the file only shrinks unless somebody writes it anew on purpose.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Finding

SCHEMA = 1
_KEYS = {"fingerprint": str, "code": str, "path": str, "message": str, "count": int}


@dataclass(frozen=True, slots=True)
class Entry:
    """`count` accepted findings of one fingerprint. Without one (a renamed file) `code`, `path` and `message` together say which."""

    fingerprint: str
    code: str
    path: str
    message: str
    count: int = 1


def read_baseline(path: Path) -> tuple[Entry, ...]:
    """The entries of a baseline file.

    Raises:
        GyreError: the file is missing, no JSON, of another schema, or an entry does not fit.
    """
    write = f"gyrecheck lint --baseline {path} --write-baseline makes one"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise GyreError(f"{path}: the baseline cannot be read ({error.strerror or error})", hint=write) from error
    except UnicodeDecodeError as error:
        raise GyreError(f"{path}: the baseline is not UTF-8", hint=write) from error
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GyreError(f"{path}: the baseline is no valid JSON: {error}", hint=write) from error
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA or not isinstance(raw.get("entries"), list):
        raise GyreError(f"{path}: is no baseline of schema {SCHEMA}", hint=write)
    return tuple(_entry(item, at, path) for at, item in enumerate(raw["entries"], 1))


def _entry(item: object, at: int, path: Path) -> Entry:
    if not isinstance(item, dict):
        raise GyreError(f"{path}: entry {at} is {item!r}, expected an object")
    for key, kind in _KEYS.items():
        if not isinstance(item.get(key), kind) or isinstance(item.get(key), bool):
            raise GyreError(f"{path}: entry {at} has `{key}` {item.get(key)!r}, expected {'text' if kind is str else 'a number'}")
    return Entry(**{key: item[key] for key in _KEYS})


def entries_of(findings: Iterable[Finding]) -> tuple[Entry, ...]:
    """What a baseline of these findings holds: one entry a fingerprint, by path, code and fingerprint; suppressed ones stay out."""
    kept: dict[str, Finding] = {}
    counts: Counter[str] = Counter()
    for finding in findings:
        if not finding.suppressed:
            kept.setdefault(finding.fingerprint, finding)
            counts[finding.fingerprint] += 1
    entries = (Entry(key, f.code, f.path, f.message, counts[key]) for key, f in kept.items())
    return tuple(sorted(entries, key=lambda e: (e.path, e.code, e.fingerprint)))


def baseline_text(entries: Sequence[Entry]) -> str:
    """The file's text, stable for the same entries: one entry a line, so that a diff shows what was added or mended."""
    rows = [json.dumps({key: getattr(entry, key) for key in _KEYS}, ensure_ascii=False) for entry in entries]
    listed = ",\n".join(f"    {row}" for row in rows)
    body = f"[\n{listed}\n  ]" if rows else "[]"
    return f'{{\n  "schema": {SCHEMA},\n  "tool": "gyrecheck",\n  "entries": {body}\n}}\n'


def compare(
    findings: Sequence[Finding], baseline: Sequence[Entry], checked: Collection[str] | None = None
) -> tuple[tuple[Finding, ...], tuple[Entry, ...]]:
    """The findings with the accepted ones marked, and the stale entries with the count that is no longer there.

    Of several findings with one fingerprint those further up in the file are the accepted ones. A suppressed finding takes no part.
    An entry of a file outside `checked` (all files when None) is never stale, since nobody looked.
    """
    left: Counter[str] = Counter()
    for entry in baseline:
        left[_identity(entry)] += max(entry.count, 0)
    marked = list(findings)
    for at in sorted(range(len(findings)), key=lambda i: (findings[i].path, findings[i].line, findings[i].column)):
        finding = findings[at]
        keys = () if finding.suppressed else (finding.fingerprint, _identity(finding))
        if key := next((k for k in keys if left[k] > 0), ""):
            left[key] -= 1
            marked[at] = replace(finding, baselined=True)
    stale = []
    for entry in baseline:
        gone = min(left[_identity(entry)], entry.count)
        if gone > 0 and (checked is None or entry.path in checked):
            left[_identity(entry)] -= gone
            stale.append(replace(entry, count=gone))
    return tuple(marked), tuple(stale)


def _identity(item: Entry | Finding) -> str:
    """The fingerprint of an entry; what a person would call the same finding when it has none, or for a finding's second try."""
    if isinstance(item, Entry) and item.fingerprint:
        return item.fingerprint
    return f"{item.code}\x1f{item.path}\x1f{item.message}"
