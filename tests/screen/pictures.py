"""Views for the screen's tests: numbers add up by hand (18,432 = 0 + 18,176 + 256; 48,320 = 41,984 + 5,120 + 1,216)."""

from __future__ import annotations

import dataclasses
import math

from gyrecheck.model.finding import Evidence, First, Severity, State, Step, Verdict
from gyrecheck.screen.view import AgeRow, BalanceRow, CounterRow, ProcessRow, SeriesView, View

WAVE = tuple(50 + 6 * math.sin(at / 3) for at in range(60))
FILTER = Verdict(
    "GYR506",
    "filter-rejects-all",
    Severity.ERROR,
    State.BROKEN,
    "dropped_stale",
    18176.0,
    "trajectory",
    "18,176 of 18,432 dropped: max_age 0, youngest 1 [/x] [batch, time]",
    First("runs/r-0415/trainer.log", 97, "00:00:12", "dropped n=256 reason=stale age=1 max_age=0"),
    (Evidence("runs/r-0415/sampler.log", 412, "sampled n=256 policy_version=0", label="the youngest trajectory"),),
    (),
    "let the sampler load new versions, or set max_age to 1 or more",
    "gyrecheck explain GYR506",
)
SYNC = Verdict(
    "GYR406", "no-weight-sync", Severity.ERROR, State.BROKEN, "loaded", 0.0, "", "trainer published version 1, sampler never loaded it"
)
FINE = tuple(
    Verdict("GYR507", "conservation-gap", Severity.ERROR, State.HOLDS, name, 0.0, "trajectory", f"{name} holds")
    for name in ("conservation", "version tags")
)

HEALTHY = View(
    run="r-0412",
    topology="decoupled",
    state="live",
    note="runs/r-0412",
    seconds=872.0,
    age=0.4,
    counters=(
        CounterRow("sampled", 48320, "traj", 55.0, WAVE),
        CounterRow("consumed", 41984, "traj", 48.0, WAVE),
        CounterRow("train steps", 328, "", 0.4, (0.4,) * 60),
    ),
    versions=(("trainer", "328"), ("sampler", "326")),
    coupling=(("sample calls", "193,280"), ("update calls", "5,248"), ("ratio", "36.8 : 1  alternation 0.05")),
    coupling_state="ok",
    coupling_recent=WAVE,
    balance=(
        BalanceRow("sampled", 48320, None, 0),
        BalanceRow("taken", 41984, 41984 / 48320),
        BalanceRow("dropped stale", 5120, 5120 / 48320),
        BalanceRow("left in buffer", 1216, 1216 / 48320),
        BalanceRow("residual", 0, None, 0),
    ),
    balance_unit="trajectory",
    balance_state="ok",
    ages=(AgeRow(0, 0.58), AgeRow(1, 0.27), AgeRow(2, 0.15), AgeRow(3, 0.0)),
    ages_note=("limit 3 versions", "in flight 0.2  in queue 0.4  p99 2"),
    handoff=(("written", "190 files"), ("read", "186 files"), ("newest", "0.4 s old"), ("loaded version", "326")),
    ladder=(),
    processes=(ProcessRow("4121", "sampling", "alive", "0.4 s ago"), ProcessRow("4122", "training", "alive", "0.4 s ago")),
    processes_note="cross-process: yes (2 pids)",
    verdicts=FINE,
    not_judged=("logprob ratio (no weights for version 326 on disk)",),
    files=("sampler.log", "trainer.log"),
    lines=12904,
    series=(
        SeriesView("sampled", "traj", tuple(float(t) for t in range(60)), tuple(t * 55.0 for t in range(60))),
        SeriesView("loss", "", tuple(float(t) for t in range(60)), tuple(math.exp(-t / 20) for t in range(60)), breach_at=30.0),
    ),
    command="gyrecheck watch --once runs/r-0412",
)
BROKEN = dataclasses.replace(
    HEALTHY,
    run="r-0415",
    note="runs/r-0415/sampler.log + trainer.log",
    seconds=370.0,
    counters=(
        CounterRow("sampled", 18432, "traj", 49.8, WAVE),
        CounterRow("consumed", 0, "traj", 0.0, (0.0,) * 60),
        CounterRow("train steps", 0, "", 0.0, (0.0,) * 60),
    ),
    versions=(("trainer", "1"), ("sampler", "0")),
    coupling=(("sample calls", "73,728"), ("update calls", "0")),
    coupling_state="waiting",
    balance=(
        BalanceRow("sampled", 18432, None, 0),
        BalanceRow("taken", 0, 0.0),
        BalanceRow("dropped stale", 18176, 18176 / 18432),
        BalanceRow("left in buffer", 256, 256 / 18432),
        BalanceRow("residual", 0, None, 0),
    ),
    ages=(AgeRow(0, 0.0), AgeRow(1, 1.0, over=True)),
    ages_note=("limit 0 versions, youngest seen 1",),
    ladder=(
        Step("sampled > 0", "pass", "18,432 trajectories in 72 files"),
        Step("consumed > 0", "FAIL", "0 taken, trainer alive, 6 min"),
        Step("carrier", "pass", "72 written, 72 read, no wait"),
        Step("data form", "pass", "12/12 fields, 0 None, 0 jumps"),
        Step("consumer filter", "FAIL", "98.6% dropped as stale"),
        Step("batch threshold", "skipped"),
    ),
    ladder_note="flow stops at 2; first failing cause: 5, consumer filter",
    verdicts=(FILTER, SYNC, *FINE),
    not_judged=("coupling (needs 50 update calls, has 0)",),
    lines=2310,
    not_understood=3,
    unknown_lines=("trainer.log:3   hello [/x]",),
)
WAITING = View(run="r-0413", state="waiting", seconds=7.0, note="runs/r-0413", command="gyrecheck watch --once runs/r-0413")
ENDED = dataclasses.replace(HEALTHY, state="ended", note="ended, exit 0")
DISCONNECTED = dataclasses.replace(
    HEALTHY, state="disconnected", age=12.0, note="disconnected 12 s ago, last figures kept", gaps=("train.log was truncated",)
)
MANY = dataclasses.replace(
    HEALTHY,
    processes=tuple(
        ProcessRow(
            str(5000 + at),
            "sampling" if at % 8 else "training",
            "presumed dead" if at == 63 else "alive",
            "34 s ago" if at == 63 else "0.2 s ago",
        )
        for at in range(64)
    ),
)
PICTURES = {"waiting": WAITING, "healthy": HEALTHY, "broken": BROKEN, "ended": ENDED, "disconnected": DISCONNECTED, "many": MANY}
