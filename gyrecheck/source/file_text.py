"""One file as a planner of fixes sees it: its text by lines, its places, and what the whole program knows of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from gyrecheck.source.places import Concrete


@dataclass(frozen=True, slots=True)
class FileContext:
    """What the whole program knows of one file; without it every fix that needs it is unsafe or left out."""

    module: str = ""
    """The file's dotted name, for relative imports."""
    package: bool = False
    """The file is a package's `__init__`."""
    samplers: Collection[str] = ()
    """Qualified names (within the file) of functions that only sample, all their callers included."""
    exported: Collection[str] = ()
    """Names that other modules take from this one."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """`module.name` as imported -> `module.name` where it is defined, for names that are re-exported."""

    def absolute(self, module: str) -> str:
        """The dotted name that `from module` means in this file."""
        dots = len(module) - len(module.lstrip("."))
        if not dots:
            return module
        parts = self.module.split(".")
        base = parts[: len(parts) - dots + (1 if self.package else 0)]
        return ".".join([*base, *filter(None, [module.lstrip(".")])])

    def written(self, module: str, *, relative: bool) -> str:
        """How this file imports from `module`, by dots where it did so before and both share a package."""
        own = self.module.split(".")[: None if self.package else -1]
        parts = module.split(".")
        shared = 0
        while shared < min(len(own), len(parts)) and own[shared] == parts[shared]:
            shared += 1
        if not relative or not shared:
            return module
        return "." * (len(own) - shared + 1) + ".".join(parts[shared:])


@dataclass(frozen=True, slots=True)
class FileText:
    """The decoded text of `path` and its places."""

    path: str
    text: str
    places: Concrete
    context: FileContext
    lines: tuple[str, ...]
    """Without their `\\n`; a carriage return stays."""

    @property
    def newline(self) -> str:
        """The file's line end, as its first line has it."""
        first = re.search(r"\r?\n", self.text)
        return first[0] if first else "\n"

    def indent(self, line: int, column: int) -> str:
        """What stands before `column`."""
        return self.lines[line - 1][: column - 1]

    def between(self, line: int, column: int, end_line: int, end_column: int) -> str:
        """The text of a span; it may end on the line after the last."""
        chosen = list(self.lines[line - 1 : end_line])
        if end_line <= len(self.lines):
            chosen[-1] = chosen[-1][: end_column - 1]
        chosen[0] = chosen[0][column - 1 :]
        return "\n".join(chosen)
