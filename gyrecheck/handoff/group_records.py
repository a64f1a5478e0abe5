"""Records that hold a whole group of answers, one list of token lists beside lists with one entry an answer: each answer becomes a row.

A conversation's turns look alike. So the lists of nearly all records must have one length, the answers' lengths must differ, and no key may speak
of turns or steps.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

LEAST = 4
"""Records from which on lists of one length say that they are groups."""
USUAL = 0.8

Rows = tuple[list[dict[str, Any]], npt.NDArray[np.int64]]


def members_as_rows(records: list[dict[str, Any]], numbers: npt.NDArray[np.int64], parts: frozenset[str]) -> Rows:
    """Records and their numbers, a row for each member where they hold groups; `parts` are words that speak of parts of one answer."""
    names = dict.fromkeys(key for record in records for key in record)
    if len(records) < LEAST or any(_speaks(name, parts) for name in names):
        return records, numbers
    tokens = next((name for name in names if all(_answers(record.get(name)) for record in records)), "")
    if not tokens:
        return records, numbers
    sizes = [len(record[tokens]) for record in records]
    usual, often = Counter(sizes).most_common(1)[0]
    if usual < 2 or often < USUAL * len(records) or len({len(answer) for record in records for answer in record[tokens]}) < 2:
        return records, numbers
    each = [name for name in names if _fits(records, sizes, name)]
    if not any(_scalars(record[name]) for record in records[:1] for name in each):
        return records, numbers
    rows: list[dict[str, Any]] = []
    of: list[int] = []
    named = any(len({_label(record.get(name)) for record in records} - {None}) == len(records) for name in names if name not in each)
    for record, number, size in zip(records, numbers.tolist(), sizes, strict=True):
        inside = [name for name in each if type(record.get(name)) is list and len(record[name]) == size]
        whole = {name: value for name, value in record.items() if name not in inside} | ({} if named else {"group": number})
        for at in range(size):
            rows.append(whole | {name: record[name][at] for name in inside})
            of.append(number)
    return rows, np.array(of, np.int64)


def may_hold_a_group(record: object, parts: frozenset[str]) -> bool:
    """Whether one record could be a group's: an answer list with an entry of its own in another list, and no key that speaks of parts."""
    if type(record) is not dict or any(_speaks(name, parts) for name in record):
        return False
    sizes = {len(value) for value in record.values() if _answers(value)}
    return any(_scalars(value) and len(value) in sizes for value in record.values())


def _speaks(name: str, parts: frozenset[str]) -> bool:
    return not parts.isdisjoint(re.split(r"[^a-z]+", name.lower()))


def _answers(value: object) -> bool:
    """Whether a value is a list of lists of whole numbers."""
    return type(value) is list and bool(value) and all(type(item) is list and bool(item) and type(item[0]) is int for item in value)


def _scalars(value: object) -> bool:
    return type(value) is list and any(type(item) in {int, float} for item in value)


def _fits(records: list[dict[str, Any]], sizes: list[int], name: str) -> bool:
    """Whether the key holds a list with one entry an answer in most records."""
    hits = sum(type(record.get(name)) is list and len(record[name]) == size for record, size in zip(records, sizes, strict=True))
    return hits >= USUAL * len(records)


def _label(value: object) -> object:
    return value if isinstance(value, (str, int)) else None
