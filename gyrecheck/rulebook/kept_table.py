"""Raw tables that fitted a schema before, made into values again without a check: what a cached rule file costs at every start."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
Make = Callable[[Any], Any]


def made(table: dict[str, Any], schema: type[T]) -> T:
    """`table` as a `schema` value. It must have fitted once; TOML knows no null, so an absent key is a default.

    Raises:
        TypeError: the schema has a union of several types, which only a check can tell apart.
    """
    make = _maker(cast("Hashable", schema))
    return cast("T", table if make is None else make(table))


@functools.cache
def _maker(kind: Hashable) -> Make | None:
    """How values of one type are made; None when the raw value is the value."""
    origin = get_origin(kind)
    if origin in {Union, types.UnionType}:
        kinds = [one for one in get_args(kind) if one is not type(None)]
        if len(kinds) != 1:
            raise TypeError(f"{kind} cannot be made without a check")
        return _maker(kinds[0])
    if origin is tuple:
        return _tuple(_maker(get_args(kind)[0]))
    if origin is dict:
        return _dict(_maker(get_args(kind)[1]))
    if kind is float:
        return float
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _dataclass(kind)
    return None


def _tuple(make: Make | None) -> Make:
    return tuple if make is None else lambda raw: tuple([make(one) for one in raw])


def _dict(make: Make | None) -> Make:
    return dict if make is None else lambda raw: {name: make(one) for name, one in raw.items()}


def _dataclass(schema: type) -> Make:
    hints = get_type_hints(schema)
    plan: dict[str, tuple[str, Make | None]] = {}
    for name in (field.name for field in dataclasses.fields(schema) if field.init):
        bare, make = name.rstrip("_"), _maker(hints[name])
        plan[bare] = plan[bare.replace("_", "-")] = (name, make)

    def make_one(raw: dict[str, Any]) -> object:
        given = {}
        for key, value in raw.items():
            name, make = plan[key]
            given[name] = value if make is None else make(value)
        return schema(**given)

    return make_one
