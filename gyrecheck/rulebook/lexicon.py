"""All vocabulary files joined into one `Lexicon`: a symbol, a method or a call's shape in, a role out; contradictions end the run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path
from typing import Any

from gyrecheck.model.errors import RuleError, did_you_mean
from gyrecheck.model.roles import Role, Side
from gyrecheck.rulebook.locate_rules import rule_file, rule_files
from gyrecheck.rulebook.toml_table import load_table
from gyrecheck.rulebook.vocabulary import ROLES, CallShape, ReceiverName, RoleFile, TypeEntry, VocabularyFile


@dataclass(slots=True)
class Lexicon:
    """The joined table; plain containers, so that it can be stored compiled. Type names are the first spelling, aliases resolved."""

    roles: dict[str, Role] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    modules: frozenset[str] = frozenset()
    drivers: frozenset[str] = frozenset()
    names: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    makes: dict[str, str] = field(default_factory=dict)
    methods: dict[str, dict[str, str]] = field(default_factory=dict)
    returns: dict[str, dict[str, str]] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    type_names: dict[str, str] = field(default_factory=dict)
    """Class, alias or subclass -> type."""
    factories: dict[str, str] = field(default_factory=dict)
    open_types: dict[str, str] = field(default_factory=dict)
    """Module prefix of a `.*` entry -> type of every CapWord in it."""
    calls: dict[str, tuple[CallShape, ...]] = field(default_factory=dict)
    """By last name component."""
    receivers: tuple[ReceiverName, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)
    """Symbol -> file that says so."""
    _folded: dict[str, ReceiverName | None] = field(default_factory=dict)
    _named: dict[str, ReceiverName | None] = field(default_factory=dict)
    _patterns: list[tuple[re.Pattern[str], ReceiverName]] = field(default_factory=list)
    _any: re.Pattern[str] | None = None

    def type_made_by(self, qualified: str) -> str:
        """The type that calling `qualified` returns, or the empty string."""
        found = self.factories.get(qualified) or self.type_names.get(qualified)
        if found:
            return found
        module, _, name = qualified.rpartition(".")
        return self.open_types.get(module, "") if name[:1].isupper() else ""

    def named(self, variable: str) -> ReceiverName | None:
        """What a variable of this name is said to be, or None."""
        if variable in self._named:
            return self._named[variable]
        name = fold(variable)
        if name not in self._folded:
            if not self._patterns:
                self._patterns = [(re.compile("|".join(translate(n) for n in r.names)), r) for r in self.receivers]
            if self._any is None:
                self._any = re.compile("|".join(pattern.pattern for pattern, _ in self._patterns) or r"(?!)")
            said = self._any.match(name) is not None  # most names say nothing: one look instead of one a receiver
            self._folded[name] = next((r for pattern, r in self._patterns if pattern.match(name)), None) if said else None
        self._named[variable] = found = self._folded[name]
        return found

    def import_role(self, dotted: str) -> str:
        """The role of importing `dotted`: the longest listed prefix decides; the empty string when none is listed."""
        while dotted:
            if dotted in self.imports:
                return self.imports[dotted]
            dotted = dotted.rpartition(".")[0]
        return ""


def fold(variable: str) -> str:
    """A variable's name without case, outer underscores and digits at the end: `self._Env_2` is compared as `env`."""
    return variable.rpartition(".")[2].lower().strip("_").rstrip("0123456789_")


def load_lexicon(extra: Path | None = None) -> Lexicon:
    """All of `rules/roles.toml` and `rules/vocabulary/`, the project's own files last.

    Raises:
        RuleError: a file does not load, names an unknown role or type, or contradicts another.
    """
    return join(
        load_table(rule_file("roles.toml"), RoleFile), {str(p): load_table(p, VocabularyFile) for p in rule_files("vocabulary", extra)}
    )


def join(roles: RoleFile, files: dict[str, VocabularyFile]) -> Lexicon:
    """The files as one table. Raises RuleError with every contradiction at once."""
    out = Lexicon(roles={n: Role(n, r.side, r.summary, r.gradient) for n, r in roles.roles.items()})
    problems = [f"roles.toml: the role `{role}` is missing" for role in ROLES if role not in out.roles]
    types: dict[str, TypeEntry] = {}
    modules: set[str] = set()
    drivers: set[str] = set()
    calls: dict[str, list[CallShape]] = {}
    receivers: list[ReceiverName] = []
    for path, file in files.items():
        short = Path(path).name
        for symbol, role in file.symbols.items():
            _put(out.symbols, symbol, role, out.sources, short, problems)
        for name, role in file.names.items():
            _put(out.names, name, role, {}, short, problems)
        for name, entry in file.types.items():
            types[name] = _merged(types[name], entry) if name in types else entry
            out.sources.setdefault(name, short)
        out.imports.update(file.imports)
        modules.update(file.modules)
        drivers.update(file.drivers)
        receivers.extend(file.receivers)
        for shape in file.calls:
            for method in shape.methods:
                calls.setdefault(method, []).append(shape)
        problems.extend(_unknown_roles(short, file, out.roles))
    out.modules, out.drivers, out.receivers = frozenset(modules), frozenset(drivers), tuple(receivers)
    out.calls = {method: tuple(shapes) for method, shapes in calls.items()}
    _types(out, types, problems)
    if problems:
        raise RuleError(
            "rules/vocabulary: " + "; ".join(problems), hint="gyrecheck check-rules loads every rule file and names all misfits"
        )
    return out


def _put(table: dict[str, str], key: str, role: str, sources: dict[str, str], file: str, problems: list[str]) -> None:
    if table.setdefault(key, role) != role:
        problems.append(f"{file}: `{key}` is {role}, but {sources.get(key, 'another file')} says {table[key]}")
    sources.setdefault(key, file)


def _merged(first: TypeEntry, second: TypeEntry) -> TypeEntry:
    return TypeEntry(
        kind=first.kind,
        make=first.make or second.make,
        aliases=first.aliases + second.aliases,
        bases=first.bases + second.bases,
        subclasses=first.subclasses + second.subclasses,
        made_by=first.made_by + second.made_by,
        methods=second.methods | first.methods,
        returns=second.returns | first.returns,
        attributes=second.attributes | first.attributes,
    )


def _unknown_roles(file: str, entry: VocabularyFile, roles: dict[str, Role]) -> list[str]:
    used = {*entry.symbols.values(), *entry.names.values(), *entry.imports.values(), *(c.role for c in entry.calls)}
    for kind in entry.types.values():
        used |= {kind.make, *kind.methods.values()}
    for receiver in entry.receivers:
        used |= set(receiver.methods.values())
    return [
        f"{file}: `{role}` is no role of roles.toml{'; ' + near if (near := did_you_mean(role, roles)) else ''}"
        for role in sorted(used - {""})
        if role not in roles
    ]


def _types(out: Lexicon, types: dict[str, TypeEntry], problems: list[str]) -> None:
    for name, entry in types.items():
        for spelled in (name, *entry.aliases):
            out.type_names[spelled] = name
    for name, entry in types.items():
        out.kinds[name], out.makes[name] = entry.kind, entry.make
        out.methods[name], out.returns[name], out.attributes[name] = _inherited(name, types, out.type_names, ())
        for sub in entry.subclasses:
            if sub.endswith(".*"):
                out.open_types.setdefault(sub[:-2], name)
            elif sub not in out.type_names:
                out.type_names[sub] = name
        for factory in entry.made_by:
            out.factories.setdefault(factory, name)
        unknown = [base for base in entry.bases if base not in out.type_names]
        problems.extend(f"{out.sources[name]}: type `{name}` has the base `{base}`, which no file defines" for base in unknown)
        for method, role in out.methods[name].items():
            if role:
                out.symbols.setdefault(f"{name}.{method}", role)
                out.sources.setdefault(f"{name}.{method}", out.sources[name])


def _inherited(
    name: str, types: dict[str, TypeEntry], spelled: dict[str, str], seen: tuple[str, ...]
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    entry = types[name]
    methods, returns, attributes = dict(entry.methods), dict(entry.returns), dict(entry.attributes)
    for base in entry.bases:
        known = spelled.get(base, base)
        if known in types and known not in seen and known != name:
            more = _inherited(known, types, spelled, (*seen, name))
            methods, returns, attributes = more[0] | methods, more[1] | returns, more[2] | attributes
    return methods, returns, attributes


def to_plain(lexicon: Lexicon) -> dict[str, object]:
    """The lexicon as containers of plain values, for keeping it compiled."""
    plain: dict[str, object] = {name: getattr(lexicon, name) for name in _KEPT}
    plain["modules"], plain["drivers"] = sorted(lexicon.modules), sorted(lexicon.drivers)
    plain["roles"] = {n: (r.side.value, r.summary, r.gradient) for n, r in lexicon.roles.items()}
    plain["calls"] = {m: [_shape(c) for c in shapes] for m, shapes in lexicon.calls.items()}
    plain["receivers"] = [(list(r.names), r.kind, r.methods, r.confidence) for r in lexicon.receivers]
    return plain


def from_plain(plain: dict[str, Any]) -> Lexicon:
    """The way back from `to_plain`."""
    out = Lexicon(**{name: plain[name] for name in _KEPT})
    out.modules, out.drivers = frozenset(plain["modules"]), frozenset(plain["drivers"])
    out.roles = {n: Role(n, Side(side), summary, gradient) for n, (side, summary, gradient) in plain["roles"].items()}
    out.calls = {
        m: tuple(CallShape(tuple(a), b, tuple(c), tuple(d), tuple(e), tuple(f), g) for a, b, c, d, e, f, g in s)
        for m, s in plain["calls"].items()
    }
    out.receivers = tuple(ReceiverName(tuple(names), kind, methods, confidence) for names, kind, methods, confidence in plain["receivers"])
    return out


_KEPT = (
    "symbols",
    "imports",
    "names",
    "kinds",
    "makes",
    "methods",
    "returns",
    "attributes",
    "type_names",
    "factories",
    "open_types",
    "sources",
)


def _shape(c: CallShape) -> tuple[list[str], str, list[str], list[int], list[int], list[str], str]:
    return list(c.methods), c.role, list(c.receivers), list(c.unpack), list(c.arguments), list(c.keywords), c.confidence
