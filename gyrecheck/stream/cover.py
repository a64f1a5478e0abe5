"""Which few byte strings to search a log for, so that no line with one of many anchors is missed.

Every search is one pass over the log, so anchors that share a part are found by that part. Which parts are cheap depends on the log:
`=` is found for nothing where only counters have it, and is on every line elsewhere. Costs are measured on a piece of the log itself.
"""

from __future__ import annotations

PIECE, PIECES = 1 << 13, 5
_SIZES = (1, 2, 3, 4, 6)
_JUMP, _BYTE, _LONG, _HIT = 0.03, 0.11, 0.65, 800.0
"""Nanoseconds: passing a place over on the way to a single byte, comparing one byte of a part there, searching a long part there, and
looking at one line that was found."""


def cover(anchors: tuple[bytes, ...], block: bytes) -> tuple[bytes, ...]:
    """Parts of the anchors, such that each anchor holds one of them and the search through logs like `block` costs little."""
    sample = sample_of(block)
    holders: dict[bytes, set[bytes]] = {}
    for anchor in anchors:
        for size in (*_SIZES, len(anchor)):
            for at in range(len(anchor) - size + 1):
                part = anchor[at : at + size]
                if part.strip():
                    holders.setdefault(part, set()).add(anchor)
    prices = {part: _price(part, sample) for part in holders}
    missing, chosen = set(anchors), []
    while missing:
        best = min(holders, key=lambda part: prices[part] / len(holders[part] & missing) if holders[part] & missing else float("inf"))
        chosen.append(best)
        missing -= holders[best]
    for part in list(chosen):
        others = [other for other in chosen if other != part]
        if set(anchors) <= set().union(*(holders[other] for other in others)):
            chosen = others
    return tuple(chosen)


def sample_of(block: bytes) -> bytes:
    """Pieces from all over a block."""
    step = max(PIECE, len(block) // PIECES)
    return b"".join(block[at : at + PIECE] for at in range(0, len(block), step))


def _price(part: bytes, sample: bytes) -> float:
    rate = _JUMP if len(part) == 1 else min(len(part) * _BYTE, _LONG)
    return len(sample) * rate + sample.count(part) * _HIT
