"""Which vocabulary file says what about a symbol: every entry that fits a name, with the file, exact ones first."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from gyrecheck.model.roles import Side
from gyrecheck.rulebook.lexicon import fold
from gyrecheck.rulebook.locate_rules import rule_file, rule_files
from gyrecheck.rulebook.toml_table import load_table
from gyrecheck.rulebook.vocabulary import CallShape, RoleFile, TypeEntry, VocabularyFile


@dataclass(frozen=True, slots=True)
class Saying:
    """One thing that one file says of a name. `means` is a role or a kind; empty when the file says: known, and nothing."""

    name: str
    how: str
    means: str
    side: str
    confidence: str
    file: str


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All vocabulary files by their path, with the side of each role."""

    files: dict[str, VocabularyFile]
    sides: dict[str, Side]

    def sayings(self, name: str) -> tuple[Saying, ...]:
        """Everything said of `name`: a qualified symbol, a type, a method, a module, a bare name or a variable."""
        found = [s for path, file in self.files.items() for s in self._of_file(name, Path(path).name, file)]
        rank = {"exact": 0, "bound": 1, "hint": 2}
        return tuple(sorted(dict.fromkeys(found), key=lambda s: (rank[s.confidence], s.how.startswith("importing"), s.how, s.file)))

    def known(self) -> tuple[str, ...]:
        """Every name that an entry is listed under, for near names."""
        names: set[str] = set()
        for file in self.files.values():
            names |= {*file.symbols, *file.imports, *file.types, *file.names, *file.drivers, *file.modules}
            for type_name, entry in file.types.items():
                names |= {*entry.aliases, *entry.made_by, *(s for s in entry.subclasses if not s.endswith(".*"))}
                names |= {f"{type_name}.{method}" for method in entry.methods}
        return tuple(sorted(names))

    def _of_file(self, name: str, where: str, file: VocabularyFile) -> list[Saying]:
        out: list[Saying] = []

        def say(how: str, means: str, confidence: str) -> None:
            side = self.sides.get(means)
            out.append(Saying(name, how, means, side.value if side else "", confidence, where))

        if name in file.symbols:
            say("symbol", file.symbols[name], "exact")
        if name in file.drivers:
            say("driver: may touch both sides", "", "exact")
        for type_name, entry in file.types.items():
            for how, means in _of_type(name, type_name, entry):
                say(how, means, "exact")
        if (dotted := _longest(name, file.imports)) is not None:
            say(f"importing {dotted}", file.imports[dotted], "exact")
        if name in self.sides and (count := list(file.symbols.values()).count(name) + _methods_of(name, file)):
            say(f"role, symbols here: {count}", name, "exact")
        bare = name.rpartition(".")[2]
        if bare in file.names:
            say("bare name", file.names[bare], "hint")
        receiver_name = fold(name.rpartition(".")[0])
        for shape in file.calls:
            if bare in shape.methods and (not receiver_name or not shape.receivers or _fits(receiver_name, shape.receivers)):
                say(f"call {_shape(bare, shape)}", shape.role, shape.confidence)
        if "." not in name:
            for receiver in file.receivers:
                if _fits(fold(name), receiver.names):
                    say("variable of this name", receiver.kind, receiver.confidence)
            for type_name, entry in file.types.items():
                if name in entry.methods:
                    say(f"method of {type_name}", entry.methods[name], "bound")
        return out


def load_vocabulary(extra: Path | None = None) -> Vocabulary:
    """All vocabulary files, ours and the project's.

    Raises:
        RuleError: a file does not load.
    """
    roles = load_table(rule_file("roles.toml"), RoleFile).roles
    files = {str(path): load_table(path, VocabularyFile) for path in rule_files("vocabulary", extra)}
    return Vocabulary(files, {name: entry.side for name, entry in roles.items()})


def _of_type(name: str, type_name: str, entry: TypeEntry) -> list[tuple[str, str]]:
    spelled = (type_name, *entry.aliases)
    if name in spelled or name in entry.subclasses:
        return [(f"type of kind {entry.kind}", entry.make)]
    if name in entry.made_by:
        return [(f"returns a {type_name}", entry.make)]
    module, _, last = name.rpartition(".")
    if module in spelled and last in entry.methods:
        return [(f"method of {type_name}", entry.methods[last])]
    if last[:1].isupper() and f"{module}.*" in entry.subclasses:
        return [(f"type of kind {entry.kind}", entry.make)]
    return []


def _methods_of(role: str, file: VocabularyFile) -> int:
    return sum(list(entry.methods.values()).count(role) + (entry.make == role) for entry in file.types.values())


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _longest(name: str, imports: dict[str, str]) -> str | None:
    dotted = name
    while dotted:
        if dotted in imports:
            return dotted
        dotted = dotted.rpartition(".")[0]
    return None


def _shape(method: str, shape: CallShape) -> str:
    parts = []
    if shape.receivers:
        shown = ", ".join(shape.receivers[:3]) + (", …" if len(shape.receivers) > 3 else "")
        parts.append(f"on {shown}")
    if shape.unpack:
        parts.append("unpacked into " + " or ".join(map(str, shape.unpack)))
    if shape.arguments:
        parts.append("with " + " to ".join(map(str, shape.arguments)) + " arguments")
    if shape.keywords:
        parts.append(f"with a keyword such as {shape.keywords[0]}")
    return f".{method}() " + ", ".join(parts) if parts else f".{method}()"
