"""Places of a hooked run: `file:line function`, as the hook writes them, into the places that every verdict shows."""

from __future__ import annotations

import os

from gyrecheck.model.snapshot import Place


def place_at(site: str) -> Place | None:
    """The place that a site names; None for a site that is unknown (`?`)."""
    where, _, function = site.partition(" ")
    path, _, line = where.rpartition(":")
    if not path or not line.isdigit():
        return None
    return Place(shorter(path), int(line), None, f"in {function}" if function else "")


def shorter(path: str) -> str:
    """A path relative to the working directory where it lies below it."""
    if not path.startswith("/"):
        return path
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def numbers(values: list[int], most: int = 8) -> str:
    """`2, 4, 6` or `2, 4, ... 96`: step numbers for a person, ascending."""
    ordered = sorted(set(values))
    if len(ordered) <= most:
        return ", ".join(map(str, ordered))
    return ", ".join(map(str, ordered[: most - 2])) + f", ... {ordered[-1]}"
