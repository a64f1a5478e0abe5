"""A snapshot in, all verdicts on the run out: the one entry that ledger, watch, run and probe share."""

from __future__ import annotations

from dataclasses import dataclass

from gyrecheck.model.finding import Severity, State, Verdict
from gyrecheck.model.snapshot import Snapshot
from gyrecheck.rulebook.codes import Code
from gyrecheck.rulebook.ladder import load_ladders
from gyrecheck.rulebook.thresholds import Thresholds, load_thresholds
from gyrecheck.verdict.accounts import Account
from gyrecheck.verdict.balance import Balance
from gyrecheck.verdict.began_anew import judge_began_anew
from gyrecheck.verdict.cadence import judge_cadence
from gyrecheck.verdict.cadence_changes import judge_cadence_changes
from gyrecheck.verdict.conservation import judge_conservation
from gyrecheck.verdict.consumption import judge_consumption
from gyrecheck.verdict.coupling import judge_coupling
from gyrecheck.verdict.deliveries import judge_deliveries
from gyrecheck.verdict.diagnosis import judge_diagnosis
from gyrecheck.verdict.drift import judge_drift
from gyrecheck.verdict.early_stops import judge_early_stops
from gyrecheck.verdict.finite import judge_finite
from gyrecheck.verdict.first_mini import judge_first_mini
from gyrecheck.verdict.gap import judge_gap
from gyrecheck.verdict.inflated import judge_inflated
from gyrecheck.verdict.meant import as_meant
from gyrecheck.verdict.open_groups import judge_open_groups
from gyrecheck.verdict.out_of_range import within_range
from gyrecheck.verdict.processes import Layout, judge_processes, layout
from gyrecheck.verdict.ratio import judge_ratio
from gyrecheck.verdict.read_otherwise import closing_accounts
from gyrecheck.verdict.repeats import judge_repeats
from gyrecheck.verdict.resume import judge_resume, runs_in_log
from gyrecheck.verdict.ruling import Docket, Rules
from gyrecheck.verdict.settings import judge_settings
from gyrecheck.verdict.signal import judge_signal
from gyrecheck.verdict.staleness import judge_staleness
from gyrecheck.verdict.standstill import judge_standstill
from gyrecheck.verdict.syncs import judge_syncs
from gyrecheck.verdict.unmoved import judge_unmoved
from gyrecheck.verdict.versions import judge_versions
from gyrecheck.verdict.view import View, view
from gyrecheck.verdict.waiting import judge_waiting

BALANCE_TERMS = ("sampled", "taken", "left", "dropped_stale", "in_flight")
_ORDER = {State.BROKEN: 0, State.UNDECIDED: 1, State.HOLDS: 2}


@dataclass(frozen=True, slots=True)
class Judgement:
    """All verdicts, worst first, and what they were made from."""

    verdicts: tuple[Verdict, ...]
    accounts: tuple[Account, ...]
    balances: tuple[Balance, ...]
    layout: Layout
    run: View
    not_judged: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def judge(
    snapshot: Snapshot,
    codes: dict[str, Code],
    thresholds: Thresholds | None = None,
    *,
    topology: str = "",
    chosen: frozenset[str] | None = None,
    max_age: float | None = None,
    age_unit: str = "version",
    left: float | None = None,
) -> Judgement:
    """Judge a run as far as it is known. Pure: the same snapshot gives the same verdicts. `age_unit` is `version`, `step` or `second`."""
    rules = Rules(codes, thresholds or load_thresholds(), topology, chosen, max_age, age_unit, left)
    docket = Docket(rules)
    told, snapshot = snapshot, as_meant(within_range(snapshot, docket))
    accounts = closing_accounts(snapshot, left=left)
    balances = judge_conservation(snapshot, accounts, docket)
    run = view(snapshot, accounts, balances)
    judge_settings(run, docket)
    judge_consumption(run, docket)
    judge_resume(run, docket)
    judge_began_anew(run, docket)
    judge_repeats(run, docket)
    judge_staleness(run, docket)
    judge_versions(run, docket)
    judge_syncs(run, docket)
    judge_coupling(run, docket)
    judge_ratio(run, docket)
    judge_gap(run, docket)
    judge_drift(run, docket)
    judge_deliveries(run, docket)
    judge_first_mini(run, docket)
    judge_signal(run, docket)
    judge_unmoved(run, docket)
    judge_finite(run, docket)
    judge_cadence(run, docket)
    judge_cadence_changes(run, docket)
    judge_early_stops(run, docket)
    judge_inflated(run, docket)
    judge_waiting(run, docket)
    judge_open_groups(run, docket)
    judge_standstill(run, docket)
    judge_processes(run, docket)
    judge_diagnosis(run, load_ladders()["nothing_trains"], docket)
    if not balances:
        _no_balance(told, docket)
    if not docket.verdicts and chosen is None:
        _nothing_to_judge(snapshot, docket)
    verdicts = sorted(docket.verdicts, key=lambda v: (_ORDER[v.state], -v.severity.rank if v.state is not State.HOLDS else 0))
    notes = (*(note for account in accounts[:1] for note in account.notes), *runs_in_log(run))
    return Judgement(tuple(verdicts), accounts, balances, layout(run), run, tuple(docket.not_judged), notes)


def _no_balance(snapshot: Snapshot, docket: Docket) -> None:
    """Say why a format's log has no balance, in the format's own words for what it does not print."""
    told = {s.key.term for s in snapshot.series}
    lacks = {term: said for file in snapshot.files for term, said in file.lacks.items() if term in BALANCE_TERMS and term not in told}
    if lacks:
        docket.skip("conservation (" + "; ".join(f"{term}: {said}" for term, said in lacks.items()) + ")")


def _nothing_to_judge(snapshot: Snapshot, docket: Docket) -> None:
    """Say what the log tells, what of the balance it lacks, and how to get it."""
    known = ", ".join(dict.fromkeys(s.name for s in snapshot.series)) or "nothing"
    told = {s.key.term for s in snapshot.series}
    lacks = [
        word
        for term, word in (("sampled", "what was sampled"), ("taken", "what training took"), ("left", "what is left"))
        if term not in told
    ]
    forms = ", ".join(dict.fromkeys(f.format for f in snapshot.files if f.format != "generic"))
    no_count = f"it counts neither {' nor '.join(lacks[:2])}" if len(lacks) > 1 else "no two of its numbers belong together"
    what = f"nothing to judge: the log tells {known[:200]}; {no_count}, and no version or age stands beside the data"
    hint = (
        "run the program under `gyrecheck run`, which counts on its own, or name the counters with --map sampled_total=KEY --map taken=KEY"
    )
    if forms:
        hint = f"{forms} prints no such counters: " + hint
    docket.add("GYR507", State.UNDECIDED, what, quantity="terms", value=None, hint=hint, at_most=Severity.WARNING)
