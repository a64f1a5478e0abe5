"""Logs that were packed away: a followed log's rotated siblings (`train.log.1`, `train.log.2.gz`), and packed logs read for themselves."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gyrecheck.model.errors import GyreError
from gyrecheck.stream.open_log import LogFile, blocks

_SUFFIX = re.compile(r"^(?P<number>\d{1,4})(?P<pack>\.(?:gz|zst|xz|bz2))?$")
PACKED = (".gz", ".zst", ".xz", ".bz2")


@dataclass(frozen=True, slots=True)
class Sibling:
    """A rotated-away part of a log: the higher its number, the older it is."""

    number: int
    path: str
    identity: tuple[int, int]
    packed: bool


def siblings(path: str) -> list[Sibling]:
    """The rotated siblings of a log that are there now, oldest first."""
    found = []
    for place in glob.glob(glob.escape(path) + ".*"):
        parts = _SUFFIX.match(place[len(path) + 1 :])
        if parts is None:
            continue
        try:
            seen = os.stat(place)
        except OSError:
            continue
        found.append(Sibling(int(parts["number"]), place, (seen.st_dev, seen.st_ino), parts["pack"] is not None))
    return sorted(found, key=lambda sibling: -sibling.number)


def unpacked(path: str) -> Iterator[bytes]:
    """A packed log's bytes.

    Raises:
        OSError: it cannot be read, ends early, or the library for it is missing.
    """
    try:
        yield from blocks(LogFile(path))
    except (GyreError, ModuleNotFoundError) as error:
        raise OSError(0, str(error)) from error


def head_and_size(path: str, length: int) -> tuple[bytes, int]:
    """The first `length` bytes of a packed log, and how many it has in all."""
    head, size = b"", 0
    for block in unpacked(path):
        if len(head) < length:
            head += block[: length - len(head)]
        size += len(block)
    return head, size
