"""What a verdict function gets besides the run: the codes, the thresholds, the topology and what the user declared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gyrecheck.model.finding import Evidence, First, Scalar, Severity, State, Step, Verdict
from gyrecheck.model.snapshot import Place
from gyrecheck.rulebook.codes import Code
from gyrecheck.rulebook.thresholds import Thresholds

_FALLBACK = {"1": Severity.WARNING, "4": Severity.ERROR, "5": Severity.ERROR, "6": Severity.ERROR}


@dataclass(frozen=True, slots=True)
class Rules:
    """The ground on which a run is judged."""

    codes: dict[str, Code]
    thresholds: Thresholds
    topology: str = ""
    chosen: frozenset[str] | None = None
    """Codes to judge; None = all."""
    max_age: float | None = None
    age_unit: str = "version"
    left: float | None = None

    def judges(self, code: str) -> bool:
        """Whether this code was not deselected."""
        return self.chosen is None or code in self.chosen

    def severity(self, code: str) -> Severity:
        """How grave the code is here."""
        found = self.codes.get(code)
        if found is None:
            return _FALLBACK.get(code[3:4], Severity.WARNING)
        return found.severity_in(self.topology or None)


@dataclass(frozen=True, slots=True)
class Because:
    """A place and why it matters."""

    place: Place
    label: str = ""


@dataclass(slots=True)
class Docket:
    """Collects verdicts in the order they are found."""

    rules: Rules
    verdicts: list[Verdict] = field(default_factory=list)
    not_judged: list[str] = field(default_factory=list)

    def add(
        self,
        code: str,
        state: State,
        message: str,
        *,
        quantity: str = "",
        value: Scalar = None,
        unit: str = "",
        first: Place | None = None,
        because: Iterable[Because | Place] = (),
        steps: tuple[Step, ...] = (),
        hint: str = "",
        following: str = "",
        at_most: Severity | None = None,
    ) -> None:
        """Enter a verdict. `at_most` caps the rule's severity where the evidence is weaker than the rule."""
        if not self.rules.judges(code):
            return
        severity = self.rules.severity(code)
        if severity is Severity.OFF:
            return
        if state is State.UNDECIDED and at_most is None:
            at_most = Severity.WARNING  # an open question is never an error
        if at_most is not None and severity.rank > at_most.rank:
            severity = at_most
        known = self.rules.codes.get(code)
        if state is State.HOLDS and message:
            message = message[0].upper() + message[1:] + ("" if message.endswith(".") else ".")
        reasons = [b if isinstance(b, Because) else Because(b) for b in because]
        evidence = tuple(Evidence(b.place.path, b.place.line, b.place.text, label=b.label) for b in reasons)
        self.verdicts.append(
            Verdict(
                code=code,
                name=known.name if known else code.lower(),
                severity=severity,
                state=state,
                quantity=quantity,
                value=tidy(value),
                unit=unit,
                message=message,
                first=first_of(first) if first else None,
                evidence=evidence,
                steps=steps,
                hint=hint,
                next=following or (f"gyrecheck explain {code}" if state is not State.HOLDS else ""),
            )
        )

    def skip(self, what: str) -> None:
        """Say what was not judged, and why."""
        if what not in self.not_judged:
            self.not_judged.append(what)


def first_of(place: Place) -> First:
    """A place as a verdict's first divergence."""
    return First(place.path, place.line, clock(place.time), place.text)


def clock(seconds: float | None) -> str:
    """Time of day where only that is known, else an ISO time in UTC."""
    if seconds is None:
        return ""
    if seconds < 86400 * 400:
        days, rest = divmod(int(seconds), 86400)
        text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
        return text if not days else f"day {days + 1} {text}"
    from datetime import datetime, timezone

    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def tidy(value: Scalar) -> Scalar:
    """A whole float as an integer; other floats as they are."""
    if isinstance(value, float) and abs(value) < 1e15 and value == int(value):
        return int(value)
    return value


def count(value: float) -> str:
    """A number for a person: thousands with commas, fractions with three digits."""
    if value != value or value in {float("inf"), float("-inf")}:  # NaN  # noqa: PLR0124
        return str(value)
    if abs(value) < 1e15 and value == int(value):
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"


def share(part: float, whole: float) -> str:
    """A share in per cent."""
    return f"{100 * part / whole:.1f}%" if whole else "-"
