"""What a question is: which roles it needs, how it reads batches, how its answer becomes findings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from gyrecheck.model.finding import Evidence, Finding, Severity, fingerprint
from gyrecheck.rulebook.codes import Code
from gyrecheck.rulebook.contract import Contract, RoleMap
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import View


@dataclass(frozen=True, slots=True)
class Case:
    """All that an answer may know beside what its question gathered."""

    codes: Mapping[str, Code]
    contract: Contract
    roles: RoleMap
    rows: int
    path: str
    settings: frozenset[str] = frozenset()
    """Names of the run's settings, where it keeps them beside its files."""

    def says(self, words: str) -> str:
        """The first setting that this word list of the contract names, or the empty string."""
        return min(self.settings & self.contract.words.get(words, frozenset()), default="")

    def finding(
        self,
        code: str,
        message: str,
        *,
        where: Ranges | None = None,
        role: str = "",
        field: str = "",
        evidence: Sequence[tuple[int, str]] = (),
        hint: str = "",
        severity: Severity | None = None,
        side: str = "sampling",
    ) -> Finding:
        """One finding; `evidence` holds (record, text) pairs; the rule's fix is the hint unless one is given."""
        rule = self.codes[code]
        path = (where.path if where else "") or self.path
        key = field or self.roles.key(role)
        more = f" (and in {where.files - 1} more files)" if where and where.files > 1 else ""
        return Finding(
            code=code,
            name=rule.name,
            severity=severity or rule.severity,
            message=message + more,
            path=path,
            line=where.first if where else (evidence[0][0] if evidence else 0),
            evidence=tuple(Evidence(path=path, line=number, text=text) for number, text in evidence[:5]),
            hint=(hint or rule.fix).strip(),
            fingerprint=fingerprint(code, key, str(path)),
            records=where.text() if where else "",
            field=key,
            share=(where.rows / self.rows if self.rows else None) if where else None,
            side=side,
        )


class Question:
    """Reads every batch once with `feed`, then answers. `needs` are alternatives: one whole tuple of roles must be there."""

    about: ClassVar[str] = ""
    """What is judged, as the report says it."""
    needs: ClassVar[tuple[tuple[str, ...], ...]] = ((),)
    yields: ClassVar[frozenset[str]] = frozenset()
    """Codes that an earlier question may have found at the same records already: said once."""

    def feed(self, view: View) -> None:
        """Read one batch."""
        raise NotImplementedError

    def answer(self, case: Case) -> Iterator[Finding]:
        """What was found."""
        raise NotImplementedError

    def unjudged(self, case: Case) -> str:
        """Why nothing was judged although the fields are there; empty when it was."""
        del case
        return ""

    @classmethod
    def lacks(cls, roles: RoleMap) -> str:
        """What is missing for this question, as words; empty when it can be judged."""
        if any(all(roles.key(role) for role in wanted) for wanted in cls.needs):
            return ""
        nearest = min(cls.needs, key=lambda wanted: sum(not roles.key(role) for role in wanted))
        return ", ".join(role for role in nearest if not roles.key(role))


def show(value: Any, digits: int = 4) -> str:  # noqa: ANN401 - any number
    """A number as people read it: whole numbers plain, others to `digits` significant places."""
    number = float(value)
    if math.isnan(number):
        return "NaN"
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else f"{number:.{digits}g}"
