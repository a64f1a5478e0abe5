"""All questions over one pass of the records: findings, the ratio's verdict, and what could not be judged and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gyrecheck.model.fields import RecordBatch
from gyrecheck.model.finding import Finding, Severity, Table, Verdict
from gyrecheck.rulebook.codes import Code
from gyrecheck.rulebook.contract import Contract, RoleMap
from gyrecheck.rulebook.ratio_limits import RatioLimits
from gyrecheck.verdict.records.advantage_places import AdvantagePlace
from gyrecheck.verdict.records.chained_advantages import ChainedAdvantages
from gyrecheck.verdict.records.contents import SameContent
from gyrecheck.verdict.records.declared import DeclaredFields
from gyrecheck.verdict.records.defaults import Failures, FilledIn
from gyrecheck.verdict.records.duplicates import Duplicates
from gyrecheck.verdict.records.earlier_turns import EarlierTurns
from gyrecheck.verdict.records.end_tokens import EndTokens
from gyrecheck.verdict.records.endings import Endings
from gyrecheck.verdict.records.episodes import Episodes
from gyrecheck.verdict.records.final_observation import FinalObservation
from gyrecheck.verdict.records.first_flags import FirstFlags
from gyrecheck.verdict.records.group_prompts import GroupPrompts
from gyrecheck.verdict.records.groups import Groups
from gyrecheck.verdict.records.kinds import KindDrift
from gyrecheck.verdict.records.late_rewards import LateRewards
from gyrecheck.verdict.records.lengths import Lengths
from gyrecheck.verdict.records.logprobs import LogProbs
from gyrecheck.verdict.records.masked_returns import MaskedReturns
from gyrecheck.verdict.records.masks import Masks
from gyrecheck.verdict.records.meant import roles_meant
from gyrecheck.verdict.records.mixed_versions import MixedVersions
from gyrecheck.verdict.records.normal_logprobs import NormalLogProbs
from gyrecheck.verdict.records.placeholders import PlaceholderAction, PlaceholderToken
from gyrecheck.verdict.records.presence import NotANumber, Presence, TimeTags
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ratio import Ratio
from gyrecheck.verdict.records.reset_ticks import ResetTicks
from gyrecheck.verdict.records.returns import Returns
from gyrecheck.verdict.records.scales import Scales
from gyrecheck.verdict.records.shapes import ShapeJump, SwappedAxes
from gyrecheck.verdict.records.steps import StepReader
from gyrecheck.verdict.records.stuck_observation import StuckObservation
from gyrecheck.verdict.records.successors import Successor
from gyrecheck.verdict.records.summed_rows import SummedRows
from gyrecheck.verdict.records.told_values import Discounts, EpisodeReturn, RatioTold, RewardPlace
from gyrecheck.verdict.records.trained_tokens import TrainedTokens
from gyrecheck.verdict.records.twin_lanes import TwinLanes
from gyrecheck.verdict.records.value_targets import ValueTargets
from gyrecheck.verdict.records.version_order import Age, DeclaredLag, VersionOrder
from gyrecheck.verdict.records.versions import Lag
from gyrecheck.verdict.records.view import View
from gyrecheck.verdict.records.writing_order import WritingOrder

QUESTIONS: tuple[type[Question], ...] = (
    DeclaredFields,
    Presence,
    NotANumber,
    KindDrift,
    ShapeJump,
    SwappedAxes,
    Lengths,
    Lag,
    MixedVersions,
    VersionOrder,
    Age,
    DeclaredLag,
    Episodes,
    Successor,
    StuckObservation,
    ResetTicks,
    FirstFlags,
    Returns,
    MaskedReturns,
    LateRewards,
    SummedRows,
    ChainedAdvantages,
    ValueTargets,
    FinalObservation,
    Masks,
    AdvantagePlace,
    LogProbs,
    NormalLogProbs,
    TrainedTokens,
    EndTokens,
    Groups,
    Failures,
    FilledIn,
    Duplicates,
    SameContent,
    EarlierTurns,
    TwinLanes,
    GroupPrompts,
    Endings,
    WritingOrder,
    PlaceholderAction,
    PlaceholderToken,
    RatioTold,
    EpisodeReturn,
    Discounts,
    RewardPlace,
    Scales,
    TimeTags,
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What all questions found in the records read."""

    findings: tuple[Finding, ...]
    verdict: Verdict | None
    """The importance ratio, where the records carry both log-probs."""
    table: Table | None
    not_judged: tuple[str, ...]
    judged: tuple[str, ...]
    roles: RoleMap
    rows: int
    records: int


class Judge:
    """Feed batches in order, then take `result`. Roles are assigned from the first batch and grow with later keys."""

    def __init__(
        self,
        contract: Contract,
        codes: Mapping[str, Code],
        limits: RatioLimits,
        explicit: Mapping[str, str] | None = None,
        settings: frozenset[str] = frozenset(),
    ) -> None:
        self._contract = contract
        self._codes = codes
        self._limits = limits
        self._settings = settings
        self._explicit = dict(explicit or {})
        self._keys: dict[str, None] = {}
        self._roles: RoleMap | None = None
        self._questions: list[Question] = [kind() for kind in QUESTIONS]
        self._ratio: Ratio | None = None
        self._steps = StepReader()
        self._path = ""
        self.rows = 0
        self.records = 0
        self._last: tuple[str, int] = ("", 0)

    @property
    def roles(self) -> RoleMap:
        """Which key plays which role, so far."""
        return self._roles or RoleMap({}, {})

    def feed(self, batch: RecordBatch) -> None:
        """Read one batch; one without rows says nothing.

        Raises:
            GyreError: `--field` names a role that does not exist.
        """
        if not batch.rows:
            return
        if self._roles is None or any(key not in self._keys for key in batch.columns):
            self._keys.update(dict.fromkeys(batch.columns))
            given = {word: key for word, key in self._explicit.items() if key in self._keys and self._contract.role(word)}
            fixed = given | dict(self._roles.keys if self._roles else {})
            self._roles = roles_meant(self._contract.assign(self._keys, fixed), batch, self._contract, given)
        if self._ratio is None or not self._ratio.role:
            self._ratio = Ratio(self._roles, self._limits)
        self._path = self._path or batch.path
        self.rows += batch.rows
        self.records += int(batch_records(batch, self._last))
        self._last = (batch.path, last_record(batch))
        view = View(batch, self._roles, self._contract)
        view.shared["reader"] = self._steps
        for question in self._questions:
            question.feed(view)
        self._ratio.feed(view)

    def result(self) -> Judgement:
        """All findings, the gravest first, in the order of their records.

        Raises:
            GyreError: `--field` names a key that is a slip of the pen for one that is there.
        """
        roles = self.roles
        case = Case(self._codes, self._contract, roles, self.rows, self._path, self._settings)
        findings: list[Finding] = []
        missing: list[str] = list(self._contract.absent(self._keys, self._explicit))
        judged: list[str] = []
        for question in self._questions:
            lacks = question.lacks(roles)
            if lacks:
                missing.append(f"{question.about}: no {lacks}")
                continue
            why = question.unjudged(case)
            if why:
                missing.append(f"{question.about}: {why}")
            else:
                judged.append(question.about)
            known = {(f.code, f.path, f.records) for f in findings if f.code in question.yields}
            findings.extend(f for f in question.answer(case) if (f.code, f.path, f.records) not in known)
        verdict, table = None, None
        if self._ratio is not None and self._ratio.judge() is not None:
            findings.extend(self._ratio.findings(case))
            verdict, table = self._ratio.verdict(case), self._ratio.table()
            judged.append(Ratio.about)
        else:
            missing.append(
                f"{Ratio.about}: no record carries both a recorded and a replayed log-prob (`gyrecheck handoff replay` computes the second)"
            )
        findings.sort(key=lambda f: (-f.severity.rank, f.path, f.line, f.code))
        shown = tuple(f for f in findings if f.severity is not Severity.OFF)
        return Judgement(shown, verdict, table, tuple(missing), tuple(judged), roles, self.rows, self.records)


def judge_records(
    batches: Iterable[RecordBatch],
    contract: Contract,
    codes: Mapping[str, Code],
    limits: RatioLimits,
    explicit: Mapping[str, str] | None = None,
) -> Judgement:
    """One pass over `batches`.

    Raises:
        GyreError: as for `Judge.feed`, and what the reading of the batches raises.
    """
    judge = Judge(contract, codes, limits, explicit)
    for batch in batches:
        judge.feed(batch)
    return judge.result()


def batch_records(batch: RecordBatch, last: tuple[str, int]) -> int:
    """Distinct records of a batch, not counting one that began in the batch before."""
    import numpy as np

    numbers = np.asarray(batch.records)
    fresh = int((np.diff(numbers) != 0).sum()) + 1
    return fresh - int(last == (batch.path, int(numbers[0])))


def last_record(batch: RecordBatch) -> int:
    """The number of the batch's last record."""
    import numpy as np

    return int(np.asarray(batch.records)[-1])
