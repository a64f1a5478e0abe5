"""What a check says: findings (a place in code or data), verdicts (a judgement over quantities), and the report they travel in.

A `Report` is the only thing a writer in `report/` gets; nothing here prints, reads or decides an exit code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from gyrecheck.model.fix import Fix  # kept findings are read back by their types: it must be there when they are

Scalar = str | int | float | bool | None


class Severity(str, Enum):
    """How much a finding matters. `OFF` is only ever a rule's setting, never a finding's."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    OFF = "off"

    @property
    def rank(self) -> int:
        """3 for error, 2 for warning, 1 for note, 0 for off."""
        return {"error": 3, "warning": 2, "note": 1, "off": 0}[self.value]


class Confidence(str, Enum):
    """How a fact was known: by qualified name, by the receiver's inferred type, or by bare name only (never above a note)."""

    EXACT = "exact"
    BOUND = "bound"
    HINT = "hint"


class State(str, Enum):
    """The three answers of a verdict."""

    HOLDS = "holds"
    BROKEN = "broken"
    UNDECIDED = "undecided"


class Topology(str, Enum):
    """How the two sides are laid out; decides which boundary rules apply."""

    DECOUPLED = "decoupled"
    COLOCATED = "colocated"
    SYNCHRONOUS = "synchronous"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place that made a finding or verdict true. `line` is 1-based (a record number in trajectory files); 0 = whole file."""

    path: str
    line: int = 0
    text: str = ""
    column: int = 0
    end_column: int = 0
    label: str = ""
    """Why this place matters, e.g. `because: first step`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something found at a place. Columns are 1-based; `end_*` are 0 when unknown."""

    code: str
    name: str
    severity: Severity
    message: str
    path: str
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    evidence: tuple[Evidence, ...] = ()
    hint: str = ""
    confidence: Confidence = Confidence.EXACT
    fingerprint: str = ""
    suppressed: str = ""
    """The reason given in the ignore comment; empty when not suppressed."""
    baselined: bool = False
    records: str = ""
    """For trajectory files: the 1-based records concerned, as ranges `1-8, 12`."""
    field: str = ""
    """For trajectory files: the field concerned, in the file's own spelling."""
    share: float | None = None
    """Share of the records concerned, 0..1."""
    side: str = ""
    """Which side must mend it: sampling, training, handoff."""
    snippet: str = ""
    """The source line, when the writer shall show it."""
    fixes: tuple[Fix, ...] = ()
    """How it can be mended; empty when nobody looked or nothing fits."""


@dataclass(frozen=True, slots=True)
class First:
    """Where a quantity first went wrong for good."""

    path: str
    line: int
    time: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One rung of a diagnosis: the later ones of a failed chain are `skipped`, never `pass`."""

    name: str
    state: Literal["pass", "FAIL", "skipped", "undecided"]
    message: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgement over a quantity, with its evidence. `severity` is the rule's, also when it holds."""

    code: str
    name: str
    severity: Severity
    state: State
    quantity: str = ""
    value: Scalar = None
    unit: str = ""
    message: str = ""
    first: First | None = None
    evidence: tuple[Evidence, ...] = ()
    steps: tuple[Step, ...] = ()
    hint: str = ""
    next: str = ""
    """The next sensible command, or empty."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows for a person or a data frame; cells are scalars, one per column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]
    title: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All that a command found out; the only argument of a writer."""

    command: str
    inputs: tuple[str, ...] = ()
    topology: str = ""
    topology_reason: str = ""
    findings: tuple[Finding, ...] = ()
    """Suppressed ones are included and marked."""
    verdicts: tuple[Verdict, ...] = ()
    tables: dict[str, Table] = field(default_factory=dict)
    heading: tuple[str, ...] = ()
    """Lines shown first in the full format."""
    sentences: tuple[str, ...] = ()
    """One sentence a check, for what holds."""
    summary: str = ""
    """The closing line, e.g. `No findings in 34 files (...)`."""
    not_judged: tuple[str, ...] = ()
    """What was not judged, and why."""
    skipped: tuple[str, ...] = ()
    unresolved: int = 0
    statistics: dict[str, Scalar] = field(default_factory=dict)
    partial: bool = False
    next: str = ""
    """The next sensible command; goes to stderr."""

    @property
    def shown(self) -> tuple[Finding, ...]:
        """Findings that count: neither suppressed nor in the baseline."""
        return tuple(f for f in self.findings if not f.suppressed and not f.baselined)


def fingerprint(*parts: str) -> str:
    """A stable identity of a finding from parts without line numbers: 16 hex digits of SHA-256."""
    import hashlib  # most reports hold verdicts only

    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]
