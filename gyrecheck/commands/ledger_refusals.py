"""What the ledger refuses in one sentence: a log of which nothing was understood, and options that nothing in the log answers to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from gyrecheck.model.errors import GyreError, did_you_mean
from gyrecheck.stream.event_files import kind_of
from gyrecheck.stream.formats import best_format
from gyrecheck.stream.open_log import LogFile, blocks, comes_once, find_logs
from gyrecheck.verdict.ruling import clock

if TYPE_CHECKING:
    from gyrecheck.commands.ledger_run import Request
    from gyrecheck.model.snapshot import FileSeen, Snapshot
    from gyrecheck.verdict.judge import Judgement

_NAMES = re.compile(rb"([A-Za-z_][\w./\-]*)['\"]?\s*[=:]")
HEAD = 1 << 18
"""Bytes of a log that are looked through for names."""


def is_binary(file: LogFile) -> bool:
    """Whether a plain file is no text: many control bytes, or the mark of a known binary form."""
    if comes_once(file) or file.text is not None or kind_of(file.path):
        return False
    with Path(file.path).open("rb") as raw:
        head = raw.read(1 << 16)
    if head[:2] in {b"\x1f\x8b", b"BZ"} or head[:4] == b"\x28\xb5\x2f\xfd" or head[:5] == b"\xfd7zXZ":
        return False
    control = len(head) - len(head.translate(None, bytes(c for c in range(32) if c not in {0, 9, 10, 13, 27})))
    return control * 20 > len(head) or head[:4] in {b"\x7fELF", b"PK\x03\x04", b"\x89PNG", b"%PDF"}


def not_text(file: LogFile) -> GyreError:
    """The sentence on a binary file."""
    return GyreError(
        f"{file.path}: is no text log (binary file)", hint="trajectory files are for gyrecheck handoff; logs are text, plain or packed"
    )


def nothing_read(file: LogFile, request: Request, seen: FileSeen) -> GyreError:
    """One sentence on a log of which nothing was understood."""
    from gyrecheck.rulebook.log_formats import load_formats

    head = b""
    if not comes_once(file):
        for block in blocks(file):
            head += block
            if len(head) >= 1 << 18:
                break
    if not seen.bytes:
        what = "standard input is empty" if file.path == "-" else f"{file.path}: the {'pipe' if comes_once(file) else 'file'} is empty"
        return GyreError(what, hint="give the log of a run that has begun")
    if seen.lines and request.ask.cut and not request.mapping:
        return GyreError(
            f"{file.path}: nothing that is understood was written {_span(request)}", hint="leave --since and --until out to see all"
        )
    if head.count(b"\0") * 3 > len(head) or is_binary(file):
        return not_text(file)
    form, hits, lines = best_format(head, load_formats(request.extra))
    best = (
        f"best: {form.name}, {hits} of {lines:,} lines"
        if form is not None and hits
        else f"no line of {seen.lines:,} holds a counter that is known"
    )
    best = "; ".join([best, *seen.notes])
    folder = request.extra or "gyrecheck-rules"
    return GyreError(
        f"{file.path}: no known log format fits ({best})",
        hint=(
            "name the keys with --map sampled_total=KEY --map taken=KEY, give one with --format, or describe it in "
            f"{folder}/logs/<name>.toml"
        ),
    )


def refuse_unused(snapshot: Snapshot, files: tuple[LogFile, ...], request: Request) -> None:
    """Options that choose what to read must meet something in the log.

    Raises:
        GyreError: --map names a key that no log has, or --since and --until meet no time.
    """
    known = {series.name for series in snapshot.series}
    for term, key in request.mapping:
        if key not in known and not _written((*files, *find_logs(request.beside)), key):
            names = sorted(known | {name.decode() for file in files for name in _NAMES.findall(_head(file))})
            hint = did_you_mean(key, names) or "the log has: " + ", ".join(names[:20])
            raise GyreError(f"--map {term}={key}: no key `{key}` in {', '.join(request.paths)}", hint=hint)
    if request.ask.cut and snapshot.readings and snapshot.first_time is None:
        raise GyreError(
            f"{', '.join(request.paths)}: no line has a time, so --since and --until choose nothing",
            hint="leave them out, or cut the log by lines before",
        )


def unused_left(judged: Judgement, request: Request) -> str:
    """A sentence where --left was given and no balance needed it."""
    if request.left is None or any(account.given_left is not None for account in judged.accounts):
        return ""
    left = next((account.left for account in judged.accounts if account.left is not None), None)
    why = f"the log says itself what is left (`{left.name}`: {left.last:g})" if left is not None else "the log has no balance to close"
    return f"note: --left {request.left:g} is not used: {why}"


def _written(files: tuple[LogFile, ...], key: str) -> bool:
    """Whether a key stands anywhere at the beginning of a log, understood as a number or not."""
    return any(key.encode() in _head(file) for file in files)


def _head(file: LogFile) -> bytes:
    return b"" if comes_once(file) or kind_of(file.path) else next(blocks(file, HEAD), b"")


def _span(request: Request) -> str:
    return " and ".join(f"{word} {clock(at)}" for word, at in (("from", request.since), ("up to", request.until)) if at is not None)
