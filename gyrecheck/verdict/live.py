"""The judgement over a hooked run: what its counters and rare facts show that no log says."""

from __future__ import annotations

from dataclasses import dataclass

from gyrecheck.model.finding import Scalar, Severity, State, Table, Topology, Verdict
from gyrecheck.model.live import HookedRun
from gyrecheck.rulebook.hook_table import HookTable
from gyrecheck.verdict.live_buffers import judge_buffers
from gyrecheck.verdict.live_evaluations import judge_modes, judge_turns
from gyrecheck.verdict.live_reach import judge_reach, judge_told
from gyrecheck.verdict.live_sides import (
    infer_topology,
    judge_acting,
    judge_backwards,
    judge_coupling,
    judge_crossings,
    tables,
)
from gyrecheck.verdict.live_sync import judge_sync
from gyrecheck.verdict.live_updates import judge_updates
from gyrecheck.verdict.ruling import Docket, Rules, count


@dataclass(frozen=True, slots=True)
class LiveJudgement:
    """What a hooked run adds to a report."""

    verdicts: tuple[Verdict, ...] = ()
    tables: dict[str, Table] | None = None
    sentences: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()
    heading: tuple[str, ...] = ()
    topology: str = ""
    topology_reason: str = ""
    statistics: dict[str, Scalar] | None = None


def judge_live(run: HookedRun, rules: Rules, table: HookTable) -> LiveJudgement:
    """All verdicts over the hook's data. A topology in `rules` is taken as declared; without one it is inferred."""
    limits = table.limits
    inferred, reason = infer_topology(run)
    topology = rules.topology or (inferred.value if inferred else "")
    docket = Docket(
        Rules(rules.codes, rules.thresholds, topology or Topology.DECOUPLED.value, rules.chosen, rules.max_age, rules.age_unit, rules.left)
    )
    sentences = []
    judge_sync(run, limits, docket)
    judge_updates(run, limits, docket)
    judge_crossings(run, docket)
    judge_acting(run, limits, docket)
    judge_modes(run, limits, docket)
    judge_turns(run, limits, docket)
    judge_backwards(run, limits, docket)
    judge_buffers(run, docket)
    judge_reach(run, table.unhooked, docket)
    judge_told(run, docket)
    if coupling := judge_coupling(run, docket):
        sentences.append(coupling)
    broken = any(v.state is State.BROKEN and v.severity is not Severity.NOTE for v in docket.verdicts)
    if run.calls("S") and run.calls("T") and not broken:
        sentences.insert(0, f"Sides: {_samples(run)} and {count(run.calls('T'))} updates, neither inside the other.")
    statistics: dict[str, Scalar] = {
        "sample_calls": run.calls("S"),
        "env_steps": run.env_steps,
        "update_calls": run.calls("T"),
        "optimizer_steps": run.total("optimizer_steps"),
        "backward_calls": run.total("backward_calls"),
        "scheduler_steps": run.total("scheduler_calls"),
        "weight_loads": run.total("load_calls"),
        "processes_hooked": len(run.processes),
    }
    amount = len(run.processes)
    calls = f"{_samples(run)}, {count(run.calls('T'))} update calls"
    heading = (f"{amount} hooked process{'es' * (amount != 1)}, {calls}",)
    return LiveJudgement(
        tuple(docket.verdicts),
        tables(run),
        tuple(sentences),
        tuple(docket.not_judged),
        heading,
        topology,
        "declared" if rules.topology else reason,
        statistics,
    )


def _samples(run: HookedRun) -> str:
    """The sample calls, and the env steps where a project's marks count something else."""
    steps = f" ({count(run.env_steps)} env steps)" if run.env_steps and run.calls("S", marked=True) else ""
    return f"{count(run.calls('S'))} sample calls{steps}"
