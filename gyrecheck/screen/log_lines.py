"""The lines of a run's logs as readings: the format of each log, chosen again as it grows, and the lines that no format knows.

A format that becomes clear late is no reason to lose lines: `read` then says that all must be read anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from gyrecheck.model.events import Reading
from gyrecheck.rulebook.log_formats import load_formats
from gyrecheck.screen.places import size_of
from gyrecheck.stream.follow_file import Lines
from gyrecheck.stream.follow_pipe import FollowedPipe
from gyrecheck.stream.logs import Ask, OpenLog, open_log
from gyrecheck.stream.open_log import LogFile

UNKNOWN_KEPT = 200
CHOOSE_AGAIN = 1 << 18


@cache
def _words(extra: Path | None) -> tuple[bytes, ...]:
    """Every word by which some format is known."""
    return tuple({word.encode() for form in load_formats(extra).values() for word in (*form.anchors, *form.requires)})


@dataclass(slots=True)
class LogLines:
    """All logs of one run. `pipe` is the log that comes through standard input, named `-`."""

    ask: Ask
    pipe: FollowedPipe | None = None
    logs: dict[str, OpenLog] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    """Lines that gave nothing, with their places; the first `UNKNOWN_KEPT`."""
    not_understood: int = 0
    _seen: dict[str, int] = field(default_factory=dict)
    """Bytes read of each log."""
    _chosen_at: dict[str, int] = field(default_factory=dict)
    _timed: dict[str, int] = field(default_factory=dict)
    _closed: bool = False

    def forget(self) -> None:
        """Begin again: all logs will be read from their beginning."""
        self.logs, self._seen, self._timed = {}, {}, {}
        self.unknown, self.not_understood = [], 0

    def read(self, lines: Lines) -> list[Reading] | None:
        """The readings of lines; None when the file's format became clear only now, so that all must be read anew."""
        log = self.logs.get(lines.path)
        seen = self._seen.get(lines.path, 0)
        if log is None or (log.chosen.form is None and seen < CHOOSE_AGAIN and self._may_be_known(lines, seen)):
            chosen = open_log(self._file(lines), self.ask)
            chosen.scan.reader.whole_last_line = False
            self._chosen_at[lines.path] = seen + len(lines.data)
            if log is not None and chosen.chosen.form is not None:
                return None
            if log is None:
                log = self.logs[lines.path] = chosen
        self._seen[lines.path] = seen + len(lines.data)
        found = log.scan.feed(lines.data)
        log.readings += len(found)
        self._timed[lines.path] = self._timed.get(lines.path, 0) + sum(reading.time is not None for reading in found)
        self._note_unknown(lines, found)
        return found

    def last_line(self) -> list[Reading]:
        """What a pipe's last line without its newline says, by the ledger's rule for such lines."""
        log = self.logs.get("-")
        if self.pipe is None or log is None or not self.pipe.ended or self._closed:
            return []
        self._closed = True
        found = [reading for batch in log.scan.read([self.pipe.close()]) for reading in batch]
        log.readings += len(found)
        return found

    def ordered(self) -> bool:
        """Whether all readings stand in one order: one log, a rotated set, or times in every log that was understood."""
        logs = [log for log in self.logs.values() if log.readings]
        return len(self.logs) <= 1 or all(2 * self._timed.get(log.log.path, 0) >= log.readings for log in logs)

    def _may_be_known(self, lines: Lines, seen: int) -> bool:
        """Whether new lines may tell a format that the old ones did not: they hold a word of one, and are more than a drop."""
        if 16 * (seen + len(lines.data) - self._chosen_at.get(lines.path, 0)) < seen:
            return False
        return any(word in lines.data for word in _words(self.ask.extra))

    def _file(self, lines: Lines) -> LogFile:
        """What the format is chosen from: the file, or what the pipe gave so far."""
        if self.pipe is None or lines.path != "-":
            return LogFile(lines.path, size_of(lines.path))
        head = self.pipe.head()
        return LogFile("-", len(head), head)

    def _note_unknown(self, lines: Lines, found: list[Reading]) -> None:
        known = {reading.line for reading in found}
        total = lines.data.count(b"\n")
        self.not_understood += total - len(known & set(range(lines.first_line, lines.first_line + total)))
        if len(self.unknown) < UNKNOWN_KEPT:
            for at, raw in enumerate(lines.data[: 1 << 16].split(b"\n")[:-1], lines.first_line):
                if at not in known and raw.strip() and len(self.unknown) < UNKNOWN_KEPT:
                    self.unknown.append(f"{lines.path}:{at}   {raw[:160].decode('utf-8', 'backslashreplace')}")
