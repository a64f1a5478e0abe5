"""The contract of trajectory data: which roles fields play, by which names frameworks call them, and what their values may be.

Loaded from `rules/fields/*.toml`: `trajectory.toml` holds the roles, every other file a framework's own spelling with the keys it is
told by.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gyrecheck.model.errors import GyreError, RuleError, did_you_mean
from gyrecheck.model.fields import FieldSpec
from gyrecheck.rulebook.field_file import FieldFamily, FieldFile, Role
from gyrecheck.rulebook.field_names import Family, leaf, normal, spelling
from gyrecheck.rulebook.locate_rules import rule_files
from gyrecheck.rulebook.toml_table import load_table

BASE = "trajectory"
MODAL = ("obs", "next_obs", "action")
"""Roles whose value may be an object of several modalities."""


@dataclass(frozen=True, slots=True)
class Contract:
    """All roles with all their names, ready to assign the keys of a file."""

    roles: Mapping[str, FieldSpec]
    names: Mapping[str, str]
    """Word a person may use for a role (`version`) to the role (`policy_version`)."""
    opened: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    frameworks: tuple[FieldFile, ...] = ()
    schema: str = ""
    """Name of the project's schema, empty when none was given."""
    schema_roles: Mapping[str, FieldSpec] = field(default_factory=dict)
    strict: bool = False
    families: tuple[Family, ...] = ()

    def role(self, word: str) -> str:
        """The role a person means by `word`.

        Raises:
            GyreError: no role has this name.
        """
        found = self.names.get(word.replace("-", "_"))
        if found is None:
            raise GyreError(f"unknown field role `{word}`", hint=did_you_mean(word, self.names) or f"roles: {', '.join(self.roles)}")
        return found

    def absent(self, keys: Iterable[str], explicit: Mapping[str, str]) -> tuple[str, ...]:
        """A sentence for each explicit entry whose key no record has: the files may leave the field out on purpose.

        Raises:
            GyreError: the role is unknown, or the key is a slip of the pen for one that is there.
        """
        present = list(dict.fromkeys(keys))
        said = []
        for word, key in explicit.items():
            role = self.role(word)
            if key in present:
                continue
            near = difflib.get_close_matches(key, present, n=1, cutoff=0.8)
            if near:
                raise GyreError(f"--field {word}={key}: no record has the key `{key}`", hint=f"did you mean `{near[0]}`?")
            said.append(f"{role}: no record has the key `{key}` that --field names")
        return tuple(said)

    def assign(self, keys: Iterable[str], explicit: Mapping[str, str] | None = None) -> RoleMap:
        """Which key plays which role. Explicit entries (role to key) come first, then the framework's file, then the aliases in order.

        A nested key is told by its whole name, else by its last component. One key plays one role and one role has one key; what
        is left over stays without a role.

        Raises:
            GyreError: an explicit role or key does not exist.
        """
        present = list(dict.fromkeys(keys))
        taken: dict[str, str] = {}
        for word, key in (explicit or {}).items():
            if key not in present:
                raise GyreError(
                    f"--field {word}={key}: no record has the key `{key}`",
                    hint=did_you_mean(key, present) or f"keys: {', '.join(present[:20])}",
                )
            taken[self.role(word)] = key
        used = set(taken.values())
        framework = self.framework(present)
        refused: set[str] = set()
        if framework is not None:
            leaves = {leaf(key): key for key in reversed(present)}
            for name, role in framework.keys.items():
                key = name if name in present else leaves.get(name, "")
                if key and key not in used:
                    if role == "none":
                        refused.add(key)
                    elif role not in taken:
                        taken[role] = key
                        used.add(key)
        exact = {key: key for key in present} | {normal(key): key for key in reversed(present)}
        modal = {key: role for key in present if (role := self._modality(key))}
        for role in MODAL:
            parts = [key for key, whole in modal.items() if whole == role]
            if len(parts) == 1 and role not in taken and parts[0] not in used:
                taken[role] = parts[0]
                used.add(parts[0])
        by_leaf = {normal(leaf(key)): key for key in reversed(present) if key not in modal}
        by_spelling = {spelling(leaf(key)): key for key in reversed(present)}
        for table in (exact, by_leaf, by_spelling):
            for role, spec in self.roles.items():
                if role in taken:
                    continue
                for alias in (role, *spec.aliases):
                    found = table.get(alias) or table.get(normal(alias)) or (table is by_spelling and table.get(spelling(alias)))
                    if found and found not in used and found not in refused:
                        taken[role] = found
                        used.add(found)
                        break
        self._by_side(present, taken, used | refused)
        roles = {key: role for role, key in taken.items()}
        parted = {key: role for key, role in modal.items() if key not in roles and role not in taken}
        return RoleMap(keys=taken, roles=roles, framework=framework.name if framework else "", parts=parted)

    def _by_side(self, present: Iterable[str], taken: dict[str, str], used: set[str]) -> None:
        """Log-probs and versions under a name of the project's own: told by whose side the name says, where one key alone does."""
        for stem, sampled, trained in (("logprob", "logprob", "replay_logprob"), ("version", "policy_version", "trainer_version")):
            names = {key: spelling(leaf(key)) for key in present if key not in used}
            open_keys = {key: name for key, name in names.items() if re.search(rf"(?<![a-z]){stem}s?(?![a-z])", name)}
            for role, words in ((sampled, "sampling_side"), (trained, "training_side")):
                fitting = [key for key, name in open_keys.items() if self._says(name, words) and not self._says(name, "neither_side")]
                if role in self.roles and role not in taken and len(fitting) == 1:
                    taken[role] = fitting[0]

    def _says(self, name: str, words: str) -> bool:
        """Whether a component of the name begins with one of these words."""
        return any(part.startswith(word) for part in name.split("_") for word in self.words.get(words, frozenset()))

    def _modality(self, key: str) -> str:
        """The role that a nested key is one part of: `obs.image` is a part of obs; empty for none."""
        root, dot, _ = key.partition(".")
        if not dot:
            return ""
        name = normal(root)
        return next((role for role in MODAL if name == role or name in self.roles[role].aliases), "") if MODAL[0] in self.roles else ""

    def framework(self, keys: Iterable[str]) -> FieldFile | None:
        """The framework whose telling keys are all there; the one with the most such keys wins."""
        present = set(keys)
        present |= {leaf(key) for key in present}
        fitting = [file for file in self.frameworks if file.told_by and present.issuperset(file.told_by)]
        return max(fitting, key=lambda file: len(file.told_by), default=None)


@dataclass(frozen=True, slots=True)
class RoleMap:
    """Role to key and key to role for the keys of one set of files."""

    keys: Mapping[str, str]
    roles: Mapping[str, str]
    framework: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Nested keys that are one modality of a role (`obs.image`), where no single key plays it."""

    def key(self, role: str) -> str:
        """The key that plays `role`, or the empty string."""
        return self.keys.get(role, "")


def _own(schema: Path) -> FieldFile:
    """A project's schema.

    Raises:
        RuleError: it does not load.
    """
    try:
        return load_table(schema, FieldFile)
    except RuleError as error:
        raise RuleError(error.message, hint="gyrecheck handoff check GOOD_FILE --write-schema writes one to begin with") from error


def load_contract(schema: Path | None = None, extra: Path | None = None) -> Contract:
    """The contract that comes with gyrecheck, with a project's additions and its schema.

    Raises:
        RuleError: a file does not load, or names a role that does not exist.
    """
    files = {path: load_table(path, FieldFile) for path in rule_files("fields", extra)}
    base = next((file for path, file in files.items() if path.stem == BASE), None)
    if base is None:
        raise RuleError("rules/fields/trajectory.toml: is missing", hint="install gyrecheck again")
    roles = dict(base.roles)
    if bare := [role for role, entry in roles.items() if not entry.summary]:
        raise RuleError(f"rules/fields/{BASE}.toml: {', '.join(bare)}: says no summary")
    frameworks = []
    for path, file in files.items():
        if file is base:
            continue
        for key, role in file.keys.items():
            if role != "none" and role not in roles:
                raise RuleError(f"{path}: key `{key}` has the unknown role `{role}`", hint=did_you_mean(role, roles))
        frameworks.append(file)
    own = _own(schema) if schema is not None else None
    wanted: dict[str, FieldSpec] = {}
    for role, entry in (own.roles if own else {}).items():
        known = roles.get(role)
        if known is not None:
            merged = tuple(dict.fromkeys((*entry.aliases, *known.aliases)))
            roles[role] = Role(
                summary=known.summary, aliases=merged, names=known.names, level=known.level, kinds=known.kinds, nullable=known.nullable
            )
        else:
            roles[role] = entry
        wanted[role] = _spec(role, entry)
    names = {name: role for role, entry in roles.items() for name in (role, *entry.names)}
    sources = [base, *frameworks, *([own] if own else [])]
    words: dict[str, frozenset[str]] = {}
    for file in sources:
        for word, values in file.words.items():
            words[word] = words.get(word, frozenset()) | frozenset(values)
    return Contract(
        roles={role: _spec(role, entry) for role, entry in roles.items()},
        names=names,
        opened=frozenset(key for file in sources for key in file.opened),
        flags=frozenset(key for file in sources for key in file.flags),
        words=words,
        frameworks=tuple(frameworks),
        schema=own.name if own else "",
        schema_roles=wanted,
        strict=own.strict if own else False,
        families=tuple(_family(one, base.lists) for one in base.families),
    )


def _family(one: FieldFamily, lists: Mapping[str, tuple[str, ...]]) -> Family:
    def opened(words: tuple[str, ...]) -> frozenset[str]:
        return frozenset(w for word in words for w in (lists[word[1:]] if word[:1] == "@" else (word,)))

    need = tuple(opened(part) for part in one.need)
    return Family(one.role, need, opened(one.may).union(*need) - opened(one.never), one.form, one.kinds)


def _spec(role: str, entry: Role) -> FieldSpec:
    return FieldSpec(
        role=role,
        aliases=entry.aliases,
        level=entry.level,
        kinds=entry.kinds,
        required=entry.required,
        shape=entry.shape,
        dtype=entry.dtype,
        minimum=entry.minimum,
        maximum=entry.maximum,
        nullable=entry.nullable,
        side=entry.side,
        summary=entry.summary,
    )
