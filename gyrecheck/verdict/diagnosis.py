"""The ladder: why nothing trains, in the order a person should look. What lies below the first failing rung is skipped, never passed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gyrecheck.model.finding import Severity, State, Step
from gyrecheck.model.snapshot import Place
from gyrecheck.rulebook.ladder import Ladder
from gyrecheck.verdict.ruling import Because, Docket, count, share
from gyrecheck.verdict.view import View

Answer = Literal["pass", "FAIL", "undecided"]


@dataclass(frozen=True, slots=True)
class Checked:
    """A rung's answer, and where it was read."""

    state: Answer
    message: str
    place: Place | None = None


def climb(run: View, ladder: Ladder, filter_all: float) -> tuple[tuple[Step, ...], Checked | None, str]:
    """All rungs; the first failing cause (else the failing flow rung), and its name. No failing flow rung: no cause is asked."""
    steps: list[Step] = []
    stopped = failed = False
    worst: Checked | None = None
    named = ""
    for rung in ladder.rungs:
        if (rung.kind == "flow" and stopped) or (rung.kind == "cause" and (failed or not stopped)):
            steps.append(Step(rung.name, "skipped"))
            continue
        answer = _CHECKS[rung.check](run, filter_all)
        arrow = ""
        if answer.state == "FAIL":
            arrow = "   <- flow stops here" if rung.kind == "flow" else "   <- first failing cause"
            worst, named = answer, rung.name
            stopped = stopped or rung.kind == "flow"
            failed = failed or rung.kind == "cause"
        steps.append(Step(rung.name, answer.state, answer.message + arrow))
    return tuple(steps), worst, named


def judge_diagnosis(run: View, ladder: Ladder, docket: Docket) -> None:
    """Attach the ladder to a run in which nothing is consumed or no step is made."""
    if run.sampled is None and run.taken is None and run.updates is None:
        return
    steps, worst, named = climb(run, ladder, docket.rules.thresholds.filter_all)
    if worst is None:
        return
    known = next((i for i, v in enumerate(docket.verdicts) if v.code == ladder.code), None)
    if known is not None:
        from dataclasses import replace

        docket.verdicts[known] = replace(docket.verdicts[known], steps=steps)
        return
    if steps[0].state == "FAIL" and run.taken is None:
        return  # a log of the training side alone: nothing says that sampling failed
    where = worst.place
    because = [Because(where, named)] if where else []
    docket.add(
        ladder.code,
        State.BROKEN,
        f"nothing trains: {named}: {worst.message}",
        quantity=named.replace(" ", "_"),
        first=where,
        because=because,
        steps=steps,
        hint="mend the first failing cause; a longer timeout only hides it",
        at_most=None if run.taken is not None or run.updates is not None else Severity.WARNING,
    )


def _sampled(run: View, _: float) -> Checked:
    flow = run.sampled
    if flow is None:
        return Checked("undecided", "no count of what was sampled")
    return Checked("pass" if flow.last > 0 else "FAIL", count(flow.last), flow.last_place)


def _consumed(run: View, _: float) -> Checked:
    flow = run.taken
    if flow is None:
        return Checked("undecided", "no count of what was consumed")
    if flow.last <= 0 and len(flow.orders) < 3 and not flow.sure:
        return Checked("undecided", "0, in less than 3 readings")
    seconds = run.snapshot.seconds
    span = f" in {seconds / 60:.0f} min" if seconds and seconds >= 90 else ""
    return Checked("pass" if flow.last > 0 else "FAIL", count(flow.last) + span, flow.last_place)


def _train_steps(run: View, _: float) -> Checked:
    flow = run.updates
    if flow is None:
        return Checked("undecided", "no count of train steps")
    start = run.setting("learning_starts")
    reached = max([s.last for s in run.series("step")] + ([run.sampled.last] if run.sampled else []), default=None)
    if flow.last <= 0 and start is not None and reached is not None and reached <= start.last:
        return Checked("undecided", f"0, before the learning start at {count(start.last)}")
    if flow.last <= 0 and len(flow.orders) < 3:
        return Checked("undecided", "0, in less than 3 readings")
    return Checked("pass" if flow.last > 0 else "FAIL", count(flow.last), flow.last_place)


def _carrier(run: View, _: float) -> Checked:
    written, read = run.series("written"), run.series("read")
    if written and read:
        put, got = (
            max(written[0].last, written[0].total if written[0].falls else 0),
            max(read[0].last, read[0].total if read[0].falls else 0),
        )
        return Checked("FAIL" if put > 0 and got == 0 else "pass", f"{count(put)} written, {count(got)} read", read[0].last_place)
    knocks = run.snapshot.marked("connecting")
    if knocks and not run.snapshot.marked("connected"):
        return Checked("FAIL", f"{len(knocks)} tries to connect, no connection", knocks[0].place)
    arrived = [f for a in run.accounts[:1] for f in (*a.drops, a.left) if f is not None and max(f.values) > 0]
    if arrived:
        return Checked("pass", "data arrives at the consumer")
    return Checked("undecided", "the log does not say what was written and read")


def _data_form(run: View, _: float) -> Checked:
    account = run.main
    bad = [f for f in (account.drops if account else ()) if f.reason == "failed" and f.last > 0]
    if bad and account and account.sampled and bad[0].last >= 0.5 * account.sampled.last:
        return Checked("FAIL", f"{count(bad[0].last)} failed (`{bad[0].name}`)", bad[0].last_place)
    return Checked("undecided", "fields are not in this log (gyrecheck handoff check)")


def _filter(run: View, filter_all: float) -> Checked:
    account = run.main
    if account is None or account.sampled is None or account.sampled.last <= 0:
        return Checked("undecided", "no count of drops")
    if not account.drops:
        return Checked("undecided", "no count of drops")
    worst = max(account.drops, key=lambda f: f.last)
    part = worst.last / account.sampled.last
    text = (
        f"{count(worst.last)} of {count(account.sampled.last)} dropped ({share(worst.last, account.sampled.last)}), "
        f"reason={worst.reason or 'not said'}"
    )
    return Checked("FAIL" if part >= filter_all else "pass", text, worst.last_place)


def _batch(run: View, _: float) -> Checked:
    batch, left = run.setting("batch_size"), next(iter(run.series("left")), None)
    if batch is None or left is None:
        return Checked("undecided", "no batch size and buffer level to compare")
    if left.high < batch.last:
        return Checked("FAIL", f"a batch needs {count(batch.last)}, the buffer never held more than {count(left.high)}", left.last_place)
    return Checked("pass", f"a batch needs {count(batch.last)}, the buffer held up to {count(left.high)}")


_CHECKS: dict[str, Callable[[View, float], Checked]] = {
    "sampled": _sampled,
    "consumed": _consumed,
    "train_steps": _train_steps,
    "carrier": _carrier,
    "data_form": _data_form,
    "filter": _filter,
    "batch": _batch,
}
