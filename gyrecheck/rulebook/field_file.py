"""The form of a file under `rules/fields/`: roles with all their names, a framework's own keys, word lists and families of keys.

A project's contract (`--schema`) is a file of the same form with `required`, shapes and dtypes of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gyrecheck.model.fields import Kind, Level


@dataclass(frozen=True, slots=True)
class Role:
    """One role of `rules/fields/trajectory.toml`; `names` are what it may be called in `--field NAME=key`, besides its own name."""

    summary: str = ""
    """What the field is; a project's schema may leave it out."""
    aliases: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    level: Level = Level.STEP
    kinds: tuple[Kind, ...] = ()
    required: bool = False
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    minimum: float | None = None
    maximum: float | None = None
    nullable: bool = False
    side: str = "sampling"


@dataclass(frozen=True, slots=True)
class FieldFamily:
    """Keys made of known words in any order: one word of each `need`, none outside `need` and `may`, and values of the `form`.

    `form`: `list` (more than one value a row), `scalar`, `flag` (only 0 and 1), `on` (a flag that is 1 somewhere), `name` (a text or whole number a row); empty = any.
    """

    role: str
    need: tuple[tuple[str, ...], ...]
    may: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    form: str = ""
    kinds: tuple[Kind, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldFile:
    """One file under `rules/fields/`, or a `--schema`."""

    name: str
    summary: str = ""
    source: str = ""
    """Where the framework's names were read."""
    told_by: tuple[str, ...] = ()
    """Keys that together tell this framework's files; empty = the base file or a project's schema."""
    opened: tuple[str, ...] = ()
    """Keys whose list of objects is opened: each object is a row."""
    flags: tuple[str, ...] = ()
    """Keys of a record that say that log-probs are left out on purpose."""
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Closed word lists: `failed` and `truncated` statuses, `recomputed` sources and the like."""
    roles: dict[str, Role] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    """Key to role, where a framework's key means something else than the base file says; `none` = no role."""
    strict: bool = False
    """A key that the file does not name is a finding."""
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Word lists that families name as `@list`."""
    families: tuple[FieldFamily, ...] = ()

    def problems(self) -> tuple[str, ...]:
        """Word lists that do not exist."""
        named = {word for one in self.families for part in (*one.need, one.may, one.never) for word in part if word[:1] == "@"}
        return tuple(f"`families`: no list `lists.{word[1:]}`" for word in sorted(named) if word[1:] not in self.lists)
