"""Which format a log has: anchors counted over a sample from its beginning, middle and end; the highest rank that fits wins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from gyrecheck.model.errors import GyreError, did_you_mean
from gyrecheck.rulebook.log_formats import LogFormat, load_formats
from gyrecheck.stream.event_files import kind_of
from gyrecheck.stream.open_log import LogFile, blocks
from gyrecheck.stream.strip import ANSI

_HEAD, _MORE = 1 << 18, 1 << 16
GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The format of a log (None: generic), and its bytes from the start."""

    form: LogFormat | None
    blocks: Iterator[bytes]
    best: str = ""
    hits: int = 0
    sampled: int = 0

    @property
    def name(self) -> str:
        """For a person."""
        return self.form.name if self.form else GENERIC


def choose(log: LogFile, *, forced: str = "", extra: Path | None = None) -> Chosen:
    """Choose for one log.

    Raises:
        GyreError: `forced` is no format, or the log cannot be read.
    """
    formats = load_formats(extra)
    stream = blocks(log)
    if forced:
        if forced != GENERIC and forced not in formats:
            near = did_you_mean(forced, [*formats, GENERIC])
            raise GyreError(f"unknown log format `{forced}` in --format", hint=near or "known: " + ", ".join([*formats, GENERIC]))
        return Chosen(formats.get(forced), stream)
    head: list[bytes] = []
    size = 0
    for block in stream:
        head.append(block)
        size += len(block)
        if size >= _HEAD:
            break
    sample = b"".join(head)[:_HEAD] + _elsewhere(log)
    form, hits, lines = best_format(sample, formats)
    fits = form is not None and hits >= form.min_hits
    return Chosen(form if fits else None, chain(head, stream), form.name if form else "", hits, lines)


def best_format(sample: bytes, formats: dict[str, LogFormat]) -> tuple[LogFormat | None, int, int]:
    """The best format of a sample of bytes, how many of its lines hold an anchor, and how many lines there are."""
    if b"\x1b" in sample or b"^[[" in sample:
        sample = ANSI.sub(b"", sample)
    lines = sample.count(b"\n") + 1
    fitting: list[tuple[int, int, LogFormat]] = []
    nearest: tuple[int, LogFormat | None] = (0, None)
    for form in formats.values():
        if any(word.encode() not in sample for word in form.requires) or any(word.encode() in sample for word in form.forbids):
            continue
        hits = _lines_with(sample, tuple(word.encode() for word in form.anchors))
        if hits > nearest[0]:
            nearest = (hits, form)
        if hits >= max(form.min_hits, 1):
            fitting.append((form.rank, hits, form))
    if fitting:
        _, hits, form = max(fitting, key=lambda f: f[:2])
        return form, hits, lines
    return nearest[1], nearest[0], lines


def _lines_with(sample: bytes, anchors: tuple[bytes, ...]) -> int:
    starts: set[int] = set()
    for anchor in anchors:
        at = sample.find(anchor)
        while at >= 0:
            bounded = at == 0 or not anchor[:1].isalnum() or not (sample[at - 1 : at].isalnum() or sample[at - 1 : at] in b"_/.")
            if bounded:
                starts.add(sample.rfind(b"\n", 0, at))
            at = sample.find(anchor, at + 1)
    return len(starts)


def _elsewhere(log: LogFile) -> bytes:
    """A piece of the middle and of the end of a plain file that is larger than the head."""
    if log.text is not None or log.path == "-" or log.size < 4 * _HEAD or kind_of(log.path):
        return b""
    try:
        with Path(log.path).open("rb") as file:
            if file.read(6)[:2] in {b"\x1f\x8b", b"\x28\xb5", b"\xfd7", b"BZ"}:
                return b""
            out = b""
            for at in (log.size // 2, log.size - _MORE):
                file.seek(at)
                piece = file.read(_MORE)
                out += b"\n" + piece[piece.find(b"\n") + 1 :]
            return out
    except OSError:
        return b""
