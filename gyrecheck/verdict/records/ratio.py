"""The importance ratio where the file itself carries both log-probs: gathered over all batches, judged by `replay_ratio`."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.finding import Finding, Table, Verdict
from gyrecheck.rulebook.contract import RoleMap
from gyrecheck.rulebook.ratio_limits import RatioLimits
from gyrecheck.verdict.records.question import Case
from gyrecheck.verdict.records.view import View
from gyrecheck.verdict.replay_columns import ReplayColumns
from gyrecheck.verdict.replay_ratio import RatioJudgement, judge_ratio
from gyrecheck.verdict.replay_report import ratio_findings, ratio_table, ratio_verdict

MEASURES = ("replay_logprob", "proximal_logprob")
"""Roles that can stand for the replayed log-prob, the best first."""


class Ratio:
    """Feeds `ReplayColumns` and judges once."""

    about = "importance ratio on replay"

    def __init__(self, roles: RoleMap, limits: RatioLimits) -> None:
        self._limits = limits
        self.role = next((role for role in MEASURES if roles.key(role)), "")
        self._columns = ReplayColumns(roles, limits, replay=self.role) if self.role and roles.key("logprob") else None
        self._judged: RatioJudgement | None = None

    def feed(self, view: View) -> None:
        """Read one batch."""
        if self._columns is not None:
            self._columns.feed(view.batch)

    def judge(self) -> RatioJudgement | None:
        """The judgement; None when no record carries both."""
        if self._judged is None and self._columns is not None:
            rows = self._columns.rows()
            self._judged = judge_ratio(rows, self._limits) if rows is not None else None
        return self._judged

    def findings(self, case: Case) -> Iterator[Finding]:
        """What is off, by row pattern."""
        judged = self.judge()
        if judged is None or self._columns is None:
            return
        severity = {code: rule.severity for code, rule in case.codes.items()}
        yield from ratio_findings(judged, case.codes, severity, columns=self._columns, field=case.roles.key(self.role))

    def verdict(self, case: Case) -> Verdict | None:
        """The ratio as one verdict."""
        judged = self.judge()
        if judged is None:
            return None
        return ratio_verdict(judged, case.codes, {code: rule.severity for code, rule in case.codes.items()})

    def table(self) -> Table | None:
        """Figures by version and age."""
        judged = self.judge()
        return ratio_table(judged) if judged is not None else None
