"""TOML into frozen dataclasses, strictly: every wrong key, type and missing value of a file is reported at once.

Own code because the hook's process loads these tables with the standard library only, and because no library reports all errors
of a file together with near names. A schema is a frozen dataclass whose field types are `str int float bool`, an `Enum`, a
`Literal`, another dataclass, `tuple[X, ...]`, `dict[str, X]`, or a union of those with `None`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
import types
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from gyrecheck.model.errors import RuleError, did_you_mean
from gyrecheck.rulebook.kept_table import made
from gyrecheck.rulebook.table_cache import CACHE

T = TypeVar("T")
_SCALARS = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def load_table(path: Path, schema: type[T]) -> T:
    """The file as one `schema` value.

    Raises:
        RuleError: the file cannot be read, is no TOML, or does not fit; the message lists every misfit as `key: what`.
    """
    known = CACHE.get(path, schema)
    if known is not None:  # it fitted when it was kept, and neither file nor schema has changed
        with contextlib.suppress(KeyError, TypeError, ValueError):  # a type of another module that the schema holds may have
            return made(known, schema)
    table = read_toml(path)
    value = build(table, schema, where=str(path))
    CACHE.put(path, schema, table)
    return value


def load_folder(files: tuple[Path, ...], schema: type[T]) -> dict[str, T]:
    """Each file as a `schema` value, by the file's stem; a later file of the same stem replaces an earlier one."""
    return {path.stem: load_table(path, schema) for path in files}


def read_toml(path: Path) -> dict[str, Any]:
    """The file's raw table.

    Raises:
        RuleError: not readable or not TOML, with the parser's line.
    """
    if sys.version_info >= (3, 11):  # a start from kept tables needs no parser
        import tomllib
    else:
        import tomli as tomllib
    text = ""
    try:
        text = path.read_text(encoding="utf-8-sig")
        return tomllib.loads(text)
    except OSError as error:
        raise RuleError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        last = f"(at line {len(text.splitlines())}, the end of the file)"
        what = str(error).replace("(at end of document)", last)
        raise RuleError(f"{path}: is no valid TOML: {what}", hint="gyrecheck check-rules names every file") from error


def build(table: dict[str, Any], schema: type[T], *, where: str) -> T:
    """The raw `table` as a `schema` value; `where` opens the error message.

    Raises:
        RuleError: as for `load_table`.
    """
    problems: list[str] = []
    value = _convert(table, schema, "", problems)
    if not problems:
        extra = getattr(value, "problems", None)
        problems.extend(extra() if callable(extra) else ())
    if problems:
        raise RuleError(f"{where}: " + "; ".join(problems), hint="gyrecheck check-rules loads every rule file and names all misfits")
    return value  # type: ignore[no-any-return]


@functools.cache
def _hints(schema: type) -> dict[str, Any]:
    return get_type_hints(schema)


def _convert(raw: Any, kind: Any, key: str, problems: list[str]) -> Any:
    origin = get_origin(kind)
    if origin in {Union, types.UnionType}:
        return _union(raw, get_args(kind), key, problems)
    if origin is Literal:
        if raw not in get_args(kind):
            problems.append(_misfit(key, raw, "one of " + ", ".join(map(str, get_args(kind))), [str(a) for a in get_args(kind)]))
        return raw
    if origin is tuple:
        return _tuple(raw, get_args(kind)[0], key, problems)
    if origin is dict:
        if not isinstance(raw, dict):
            problems.append(_misfit(key, raw, "a table"))
            return {}
        return {name: _convert(value, get_args(kind)[1], _join(key, name), problems) for name, value in raw.items()}
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _dataclass(raw, kind, key, problems)
    if isinstance(kind, type) and issubclass(kind, Enum):
        values = [member.value for member in kind]
        if raw not in values:
            problems.append(_misfit(key, raw, "one of " + ", ".join(map(str, values)), [str(v) for v in values]))
            return None
        return kind(raw)
    return _scalar(raw, kind, key, problems)


def _scalar(raw: Any, kind: Any, key: str, problems: list[str]) -> Any:
    fits = isinstance(raw, (int, float)) if kind is float else isinstance(raw, kind)
    if not fits or (kind in {int, float} and isinstance(raw, bool)):
        problems.append(_misfit(key, raw, _SCALARS.get(kind, str(kind))))
        return raw
    return float(raw) if kind is float else raw


def _union(raw: Any, kinds: tuple[Any, ...], key: str, problems: list[str]) -> Any:
    attempts: list[list[str]] = []
    for kind in kinds:
        if kind is type(None):
            continue
        own: list[str] = []
        value = _convert(raw, kind, key, own)
        if not own:
            return value
        attempts.append(own)
    problems.extend(min((len(own), own) for own in attempts)[1])
    return None


def _tuple(raw: Any, kind: Any, key: str, problems: list[str]) -> tuple[Any, ...]:
    if not isinstance(raw, list):
        problems.append(_misfit(key, raw, "an array"))
        return ()
    return tuple(_convert(item, kind, f"{key}[{at}]", problems) for at, item in enumerate(raw, 1))


def _dataclass(raw: Any, schema: type, key: str, problems: list[str]) -> Any:
    if not isinstance(raw, dict):
        problems.append(_misfit(key, raw, "a table"))
        return None
    hints = _hints(schema)
    fields = {f.name: f for f in dataclasses.fields(schema) if f.init}
    spelled = {name.rstrip("_").replace("_", "-"): name for name in fields} | {name.rstrip("_"): name for name in fields}
    given: dict[str, Any] = {}
    for name, value in raw.items():
        if name not in spelled:
            near = did_you_mean(name, [n.rstrip("_") for n in fields])
            problems.append(f"`{_join(key, name)}` is no known key" + (f", {near}" if near else f"; known: {', '.join(sorted(fields))}"))
            continue
        given[spelled[name]] = _convert(value, hints[spelled[name]], _join(key, name), problems)
    for name, spec in fields.items():
        if name not in given and spec.default is dataclasses.MISSING and spec.default_factory is dataclasses.MISSING:
            problems.append(f"`{_join(key, name)}` is missing")
    return None if problems else schema(**given)


def _misfit(key: str, raw: Any, wanted: str, known: list[str] | None = None) -> str:
    near = did_you_mean(str(raw), known) if known else ""
    return f"`{key}` is {raw!r}, expected {wanted}" + (f", {near}" if near else "")


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name
