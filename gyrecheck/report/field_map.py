"""The field map as a Python file: one function from the sampler's record to the trainer's, that raises on a missing key and never fills.

The file stands alone (numpy only), is meant to be edited, and says at its top where it came from.
"""

from __future__ import annotations

from gyrecheck.model.field_sides import DataSide, SidePair
from gyrecheck.model.fields import Tier

HEAD = '''"""Field map from the sampler's records to the trainer's batch, the only place where keys are renamed or converted.

Written by `gyrecheck handoff diff --write-map`; edit freely. A missing or None field raises: mend the sampler's writer, fill nothing.
{about}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

FIELD_MAP: dict[str, str] = {{
    # trainer's key: sampler's key
{names}}}
MERGED: dict[str, tuple[str, ...]] = {{
    # trainer's key: sampler's keys of which any being true makes it true
{merged}}}
DTYPE: dict[str, str] = {{
{dtypes}}}
SWAPPED: frozenset[str] = frozenset({{
    # trainer's keys whose first two axes are exchanged: {swap}
{swapped}}})


def field_map(record: Mapping[str, Any]) -> dict[str, Any]:
    """The trainer's fields of one record or batch.

    Raises:
        KeyError: a field is absent or None; the message names it and what is there.
    """
    wanted = [*FIELD_MAP.values(), *(part for parts in MERGED.values() for part in parts)]
    absent = [key for key in wanted if key not in record or record[key] is None]
    if absent:
        raise KeyError(f"record has no {{absent}}; it has {{sorted(record)}}")
    out: dict[str, Any] = {{new: record[old] for new, old in FIELD_MAP.items()}}
    for new, parts in MERGED.items():
        out[new] = np.logical_or.reduce([np.asarray(record[part], dtype=bool) for part in parts])
    for key, dtype in DTYPE.items():
        out[key] = np.asarray(out[key], dtype=dtype)
    for key in SWAPPED:
        out[key] = np.swapaxes(np.asarray(out[key]), 0, 1)
    return out
'''


def field_map_source(pairs: tuple[SidePair, ...], sampler: DataSide, trainer: DataSide) -> str:
    """The file's text. Missing fields stay in the map under their own name, so that the first record without them raises."""
    names: dict[str, tuple[str, str]] = {}
    merged: dict[str, list[str]] = {}
    dtypes: dict[str, str] = {}
    swapped: list[str] = []
    exchange = {sampler.layout.order, trainer.layout.order} == {"BT", "TB"}
    for pair in pairs:
        mine, other = pair.sampler, pair.trainer
        if other is None:
            if pair.tier is Tier.MISSING and mine is not None:
                names[mine.key] = (mine.key, "required by the contract; the trainer's batch lacks it")
            continue
        if pair.tier is Tier.MERGED and mine is not None:
            if other.role == "done":
                merged.setdefault(other.key, []).append(mine.key)
            continue
        if mine is None:
            optional = other.read is not None and other.read.optional
            if pair.tier is Tier.MISSING and not optional:
                names[other.key] = (other.key, "the sampler does not write it: this raises until it does")
            continue
        names[other.key] = (mine.key, pair.loses or pair.reason)
        if " -> " in pair.reason and mine.dtype != other.dtype and other.dtype not in {"", "text", "float", "int", "mixed", "bfloat16"}:
            dtypes[other.key] = other.dtype
        if exchange and mine.shape is not None and len(mine.shape) >= 2:
            swapped.append(other.key)
    about = f"Sampler: {sampler.path}. Trainer: {trainer.path}."
    return HEAD.format(
        about=about.replace("\\", "/").replace('"""', ""),
        names="".join(f"    {new!r}: {old!r},{_note(why)}\n" for new, (old, why) in names.items()),
        merged="".join(
            f"    {new!r}: {tuple(parts)!r},  # a time limit is no longer told from a terminal state\n" for new, parts in merged.items()
        ),
        dtypes="".join(f"    {key!r}: {dtype!r},\n" for key, dtype in dtypes.items()),
        swapped="".join(f"    {key!r},\n" for key in swapped),
        swap=f"[{', '.join(sampler.layout.order)}] -> [{', '.join(trainer.layout.order)}]" if exchange else "none",
    )


def _note(why: str) -> str:
    line = " ".join(why.split())
    return f"  # {line}" if line else ""
