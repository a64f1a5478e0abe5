"""The field map as a Python file: one function from the sampler's record to the trainer's, that raises on a missing key and never fills.

The file stands alone (numpy only), is meant to be edited, and says at its top where it came from.
"""

from __future__ import annotations

import json

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
LAST_AXIS: dict[str, int] = {{
    # trainer's keys that have one more axis of length 1 at their end (1), or one less (-1)
{last}}}


def field_map(record: Mapping[str, Any]) -> dict[str, Any]:
    """The trainer's fields of one record or batch.

    Raises:
        KeyError: a field is absent or None; the message names it and what is there.
        ValueError: a last axis that is to go is not of length 1.
    """
    wanted = [*FIELD_MAP.values(), *(part for parts in MERGED.values() for part in parts)]
    found = {{key: _find(record, key) for key in wanted}}
    absent = [key for key, value in found.items() if value is None]
    if absent:
        raise KeyError(f"record has no value under {{absent}}; it has {{sorted(key for key, value in record.items() if value is not None)}}")
    out: dict[str, Any] = {{new: found[old] for new, old in FIELD_MAP.items()}}
    for new, parts in MERGED.items():
        out[new] = np.logical_or.reduce([np.asarray(found[part], dtype=bool) for part in parts])
    for key, dtype in DTYPE.items():
        out[key] = np.asarray(out[key], dtype=dtype)
    for key in SWAPPED:
        out[key] = np.swapaxes(np.asarray(out[key]), 0, 1)
    for key, more in LAST_AXIS.items():
        value = np.asarray(out[key])
        out[key] = value[..., None] if more > 0 else np.squeeze(value, -1)
    return out


def _find(record: Mapping[str, Any], key: str) -> Any:
    """The value under a key, or under a dotted path of keys; None when it is absent."""
    if key in record:
        return record[key]
    value: Any = record
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value
'''


def field_map_source(pairs: tuple[SidePair, ...], sampler: DataSide, trainer: DataSide) -> str:
    """The file's text. Missing fields stay in the map under their own name, so that the first record without them raises."""
    names: dict[str, tuple[str, str]] = {}
    merged: dict[str, list[str]] = {}
    dtypes: dict[str, str] = {}
    swapped: list[str] = []
    last: dict[str, int] = {}
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
                if exchange and mine.shape is not None and len(mine.shape) >= 2 and other.key not in swapped:
                    swapped.append(other.key)
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
        if more := pair.last_axis:
            last[other.key] = more
    about = f"Sampler: {sampler.path}. Trainer: {trainer.path}."
    return HEAD.format(
        about=about.replace("\\", "/").replace('"""', ""),
        names="".join(f"    {_text(new)}: {_text(old)},{_note(why)}\n" for new, (old, why) in names.items()),
        merged="".join(
            f"    {_text(new)}: ({', '.join(map(_text, parts))},),  # a time limit is no longer told from a terminal state\n"
            for new, parts in merged.items()
        ),
        dtypes="".join(f"    {_text(key)}: {_text(dtype)},\n" for key, dtype in dtypes.items()),
        swapped="".join(f"    {_text(key)},\n" for key in swapped),
        last="".join(f"    {_text(key)}: {more},\n" for key, more in last.items()),
        swap=f"[{', '.join(sampler.layout.order)}] -> [{', '.join(trainer.layout.order)}]" if exchange else "none",
    )


def _text(value: str) -> str:
    return json.dumps(value)


def _note(why: str) -> str:
    line = " ".join(why.split())
    return f"  # {line}" if line else ""
