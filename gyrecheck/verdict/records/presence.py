"""Is each field there in every record, and is what stands there a value? Null, NaN, infinities, kinds that change, fields left out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Kind, State
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Ints, View, row_of_element

CORE = ("obs", "action", "reward", "logprob", "tokens", "mask", "terminated", "truncated", "done", "step", "episode_id", "policy_version")
"""Roles whose value may never be null, and which a file has in all records or in none."""
LEARNT = ("advantage", "return", "value")
"""Roles that a record may do without when it is not learnt from; a warning where a minority of records does."""
OUTCOME = ("reward", "logprob", "tokens", "mask", "action", *LEARNT)
"""Roles that a record which says that it failed need not have."""
MEASURED = (*CORE, "next_obs", "value", "advantage", "return", "replay_logprob", "proximal_logprob", "ref_logprob", "entropy")
"""Roles in which NaN and infinity are never a measurement."""


class Presence(Question):
    """Nulls and absences, by role."""

    about = "None and absent fields"

    def __init__(self) -> None:
        self.null: dict[str, Ranges] = {}
        self.absent: dict[str, Ranges] = {}
        self.present: dict[str, int] = {}
        self.holes: dict[str, Ranges] = {}
        self.excused: dict[str, int] = {}
        self.rows = 0

    def feed(self, view: View) -> None:
        """Read one batch."""
        excused = without_logprobs(view)
        failed = view.failed()
        wanted = {role: role for role in (*CORE, *LEARNT) if view.roles.key(role)} | {
            key: key for key, role in view.roles.parts.items() if role in CORE
        }
        for role in wanted:
            column = view.column(role) if role in CORE or role in LEARNT else view.batch.columns.get(role)
            if column is None:
                missing = np.ones(view.rows, np.bool_)
                null = np.zeros(view.rows, np.bool_)
            else:
                state = np.asarray(column.state)
                missing, null = state == int(State.ABSENT), state == int(State.NULL)
                if column.holes is not None and len(column.holes):
                    rows = np.unique(
                        row_of_element(column)[_counted_holes(view, role, np.asarray(column.holes), np.asarray(column.counts))]
                    )
                    if len(rows):
                        self.holes.setdefault(role, Ranges()).add(view.path, view.records[rows])
            if role == "logprob" and excused is not None:
                self.excused[role] = self.excused.get(role, 0) + int(((missing | null) & excused).sum())
                missing, null = missing & ~excused, null & ~excused
            if failed is not None and role in OUTCOME:
                missing, null = missing & ~failed, null & ~failed
            self.present[role] = self.present.get(role, 0) + int(view.rows - missing.sum() - null.sum())
            if missing.any():
                self.absent.setdefault(role, Ranges()).add(view.path, view.records[missing])
            if null.any():
                self.null.setdefault(role, Ranges()).add(view.path, view.records[null])
        self.rows += view.rows

    def answer(self, case: Case) -> Iterator[Finding]:
        """Null in some or all records; absent in some."""
        for role, where in self.null.items():
            key = case.roles.key(role) or role
            if role in LEARNT:
                if where.rows * 2 <= self.rows:
                    yield case.finding(
                        "GYR307",
                        f"`{key}` is None at {where.rows} of {self.rows} records: a reader must fail, fill or leave them out",
                        where=where,
                        role=role,
                        side="training",
                        severity=Severity.WARNING,
                    )
                continue
            if where.rows == self.rows:
                yield case.finding(
                    "GYR307", f"`{key}` is None in all {self.rows} records: the key is there and carries nothing", where=where, field=key
                )
                continue
            if role == "policy_version":
                yield case.finding(
                    "GYR401",
                    f"`{key}` is None at {where.rows} of {self.rows} records: these do not say which policy version sampled them",
                    where=where,
                    role=role,
                )
                continue
            yield case.finding("GYR307", f"`{key}` is None at {where.rows} of {self.rows} records", where=where, field=key)
        for role, where in self.holes.items():
            key = case.roles.key(role) or role
            yield case.finding("GYR307", f"`{key}` holds None inside its lists at {where.rows} records", where=where, field=key)
        for role, where in self.absent.items():
            if where.rows >= self.rows or not self.present.get(role) or role in LEARNT:
                continue
            key = case.roles.key(role) or role
            code = "GYR401" if role == "policy_version" else "GYR303"
            what = (
                "these do not say which policy version sampled them"
                if role == "policy_version"
                else "the other records carry it, so a reader must fail or fill here"
            )
            severity = (
                Severity.ERROR
                if role in {"policy_version", "reward", "action", "tokens"} and where.rows * 2 < self.rows
                else Severity.WARNING
            )
            yield case.finding(
                code, f"`{key}` is absent at {where.rows} of {self.rows} records; {what}", where=where, field=key, severity=severity
            )


def without_logprobs(view: View) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    """[rows] rows that say themselves that they carry no log-probs; None when no flag of that kind exists."""
    for flag in view.contract.flags:
        column = view.batch.columns.get(flag)
        if column is not None and column.kind is Kind.BOOL and len(np.asarray(column.flat)) == view.rows:
            return ~np.asarray(column.flat).astype(np.bool_)
    return None


def _counted_holes(view: View, role: str, holes: Ints, counts: Ints) -> Ints:
    """The holes at places that the mask counts; all of them where no mask of the same lengths tells."""
    mask = view.column("mask")
    if role == "mask" or mask is None or mask.kind is Kind.TEXT or not np.array_equal(np.asarray(mask.counts), counts):
        return holes
    return np.asarray(holes[view.counted("mask")[holes]])


class NotANumber(Question):
    """NaN and infinities in fields that are measured."""

    about = "NaN and infinities"

    def __init__(self) -> None:
        self.nan: dict[str, Ranges] = {}
        self.infinite: dict[str, Ranges] = {}
        self.other: dict[str, Ranges] = {}
        self.samples: dict[str, list[tuple[int, str]]] = {}

    def feed(self, view: View) -> None:
        """Read one batch."""
        for key, column in view.batch.columns.items():
            if column.kind not in {Kind.FLOAT, Kind.MIXED} or column.texts is not None:
                continue
            flat = np.asarray(column.flat)
            if flat.dtype.kind != "f" or np.isfinite(
                np.add.reduce(flat, dtype=np.float64)
            ):  # one pass: a finite sum has no NaN and no infinity
                continue
            nan, infinite = np.isnan(flat), np.isinf(flat)
            if column.holes is not None:
                nan[np.asarray(column.holes)] = False
            role = view.roles.roles.get(key, "") or view.roles.parts.get(key, "")
            for bad, table in ((nan, self.nan), (infinite, self.infinite)):
                if not bad.any():
                    continue
                rows = row_of_element(column)[bad]
                target = table if role in MEASURED else self.other
                target.setdefault(key, Ranges()).add(view.path, view.records[np.unique(rows)])
                at = int(np.flatnonzero(bad)[0])
                self.samples.setdefault(key, []).append((int(view.records[rows[0]]), f"{key} = {flat[at]}"))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Where they stand; a warning where the field has no known role."""
        for word, table, severity in (
            ("NaN", self.nan, None),
            ("infinity", self.infinite, None),
            ("NaN or infinity", self.other, Severity.NOTE),
        ):
            for key, where in table.items():
                yield case.finding(
                    "GYR320",
                    f"`{key}` holds {word} at {where.rows} of {case.rows} records",
                    where=where,
                    field=key,
                    evidence=self.samples.get(key, ()),
                    severity=severity,
                )


class TimeTags(Question):
    """Whether records are tagged with version, sampling step and time when they are written (requirement A3)."""

    about = "time tags"

    def __init__(self) -> None:
        self.evidence = ""
        self.excused = False

    def feed(self, view: View) -> None:
        """Read one batch."""
        self.excused = self.excused or without_logprobs(view) is not None
        if not self.evidence:
            for role in ("trainer_version", "max_lag", "max_age", "lag", "trainer_step"):
                if view.has(role):
                    self.evidence = view.roles.key(role)

    def answer(self, case: Case) -> Iterator[Finding]:
        """Notes on what is not tagged; a warning when the file shows that versions matter to its reader."""
        sampled = any(case.roles.key(role) for role in ("action", "tokens", "logprob", "obs", "reward"))
        if not sampled:
            return
        if not case.roles.key("policy_version"):
            seen = f"; `{self.evidence}` shows that its reader compares versions" if self.evidence else ""
            yield case.finding(
                "GYR401",
                f"no record says which policy version sampled it{seen}",
                severity=Severity.WARNING if self.evidence in _VERSION_KEYS(case) else Severity.NOTE,
            )
        acted = case.roles.key("action") or case.roles.key("tokens")
        demanded = "logprob" in case.contract.schema_roles and case.contract.schema_roles["logprob"].required  # said as an error already
        if acted and case.roles.key("policy_version") and not case.roles.key("logprob") and not self.excused and not demanded:
            wanted = case.says("ratio_settings")
            wants = ("advantage", "group_id", "replay_logprob", *(() if case.roles.key("next_obs") else ("ratio",)))
            learnt = self.evidence and any(case.roles.key(role) for role in wants)  # a replay buffer's weights are those of its priorities
            why = f", and the setting `{wanted}` of the run says that its trainer takes one" if wanted else ""
            text = (
                f"no record carries the log-prob of `{acted}`, although each says its policy version: no importance ratio can be taken{why}"
            )
            severity = Severity.WARNING if wanted or learnt else Severity.NOTE
            yield case.finding("GYR303", text, role="logprob", severity=severity)
        missing = [role for role in ("sample_step", "wall_clock") if not case.roles.key(role)]
        if missing:
            yield case.finding(
                "GYR409", f"no record carries {' or '.join(missing)}: its age can be told in versions only", severity=Severity.NOTE
            )


def _VERSION_KEYS(case: Case) -> set[str]:  # noqa: N802 - a constant of the case
    return {case.roles.key(role) for role in ("trainer_version", "max_lag", "lag")} - {""}
