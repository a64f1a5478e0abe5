"""The two sides of a hooked run: who runs inside whom, in which mode it acts, whether the two grow one to one; and their call sites."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from gyrecheck.model.finding import Severity, State, Table, Topology
from gyrecheck.model.live import HookedRun, HookEvent
from gyrecheck.model.snapshot import Place
from gyrecheck.rulebook.hook_table import HookLimits
from gyrecheck.verdict.live_places import place_at, shorter
from gyrecheck.verdict.ruling import Because, Docket, count

SITES = 40
"""Rows of the table of call sites."""


def infer_topology(run: HookedRun) -> tuple[Topology | None, str]:
    """How the sides are laid out, from which processes did what; None when one of them was never seen."""
    sampling = {p.pid for p in run.processes if p.calls("S")}
    training = {p.pid for p in run.processes if p.calls("T")}
    if not sampling or not training:
        return None, "only one side ran" if sampling or training else "neither side ran"
    if sampling & training:
        return Topology.SYNCHRONOUS, f"process {min(sampling & training)} samples and trains"
    return Topology.DECOUPLED, f"{len(sampling)} sampling and {len(training)} training processes"


def judge_crossings(run: HookedRun, docket: Docket) -> None:
    """Enter updates under a sampling frame and samples under a training frame, one verdict for each shortest path."""
    paths: dict[tuple[str, tuple[str, ...]], list[HookEvent]] = defaultdict(list)
    for event in run.of("crossing"):
        functions = tuple(word.rpartition(" ")[2] for word in event.words("path"))
        paths[event.text("inner"), functions].append(event)
    shown: set[tuple[str, str]] = set()
    for (inner, functions), events in sorted(paths.items(), key=lambda item: len(item[0][1])):
        ends = (inner, functions[0] if functions else "")
        if ends in shown:
            continue  # a longer way to the same crossing
        shown.add(ends)
        sites = [place for word in events[0].words("path") if (place := place_at(word))]
        outer = "training" if inner == "sampling" else "sampling"
        what = "a sample call" if inner == "sampling" else "an update"
        total = sum(len(found) for (kind, names), found in paths.items() if (kind, names[0] if names else "") == ends)
        docket.add(
            "GYR502",
            State.BROKEN,
            f"{what} ({events[0].text('entry')}) runs with a {outer} frame on its stack, {count(total)} times: {' > '.join(functions)}",
            quantity=f"{inner}_calls_under_{outer}",
            value=total,
            unit="call",
            first=_innermost(sites),
            because=[Because(site, "outermost" if n == 0 else "") for n, site in enumerate(sites)],
            hint="hand the data over through the carrier; let the driver call both sides",
        )


def judge_acting(run: HookedRun, limits: HookLimits, docket: Docket) -> None:
    """Enter graphs recorded while sampling that nothing used, and random layers switched on while acting."""
    graphs = run.of("graphs")
    unused, used = (sum(e.number(name) for e in graphs) for name in ("unused", "used"))
    if unused >= limits.graphs and not used:
        docket.add(
            "GYR103",
            State.BROKEN,
            f"the acting forward recorded a graph in {count(unused)} of {count(unused)} sampling phases looked at, "
            "and no backward pass ever came back to it",
            quantity="sampling_phases_with_gradients_on",
            value=unused,
            unit="phase",
            first=place_at(next(e.text("site") for e in graphs if e.number("unused"))),
            hint="act under torch.no_grad() or torch.inference_mode()",
        )
    silent = {p.pid for p in run.processes if p.calls("S") and not p.cells.get("backward_calls")}
    alone = [e for e in run.of("phase") if e.fields.get("graph") and e.text("by") == "step" and e.pid in silent]
    if alone:
        docket.add(
            "GYR103",
            State.BROKEN,
            f"{alone[0].text('module')} acts with gradients recorded, in a process that makes no backward pass at all",
            quantity="sampling_phases_with_gradients_on",
            value=len(alone),
            unit="phase",
            first=place_at(alone[0].text("site")),
            hint="act under torch.no_grad() or torch.inference_mode()",
        )
    shared = [e for e in run.of("phase") if e.fields.get("same") and e.fields.get("inside") and e.number("version")]
    if len(shared) >= limits.phases:
        docket.add(
            "GYR120",
            State.BROKEN,
            f"{shared[0].text('module')} acts in one thread while another thread steps its parameters: in {len(shared)} sampling phases "
            "the acting network changed without a load",
            quantity="phases_on_weights_another_thread_trains",
            value=len(shared),
            unit="phase",
            first=place_at(shared[0].text("site")),
            hint="give the sampler a copy of its own, and load it between rounds",
        )
    noisy = [e for e in run.of("phase") if e.words("noisy") and not e.fields.get("look")]
    if noisy:
        docket.add(
            "GYR107",
            State.BROKEN,
            f"{noisy[0].text('module')} acts in training mode in {len(noisy)} sampling phases: "
            f"{', '.join(sorted(set(noisy[0].words('noisy'))))} answers otherwise there, so the recorded log-probability cannot be "
            "computed again",
            quantity="sampling_phases_in_training_mode",
            value=len(noisy),
            unit="phase",
            first=place_at(noisy[0].text("site")),
            hint="call eval() before acting and train() before the update",
        )


def judge_backwards(run: HookedRun, limits: HookLimits, docket: Docket) -> None:
    """Enter backward passes below a sampling frame, and those of a process that samples and holds no optimizer."""
    under = run.of("sampling_backward")
    if under:
        sites = [place for word in under[0].words("path") if (place := place_at(word))]
        amount = sum(max(e.number("n") for e in under if e.pid == pid) for pid in {e.pid for e in under})
        docket.add(
            "GYR101",
            State.BROKEN,
            f"a backward pass runs below a sampling call, at least {count(amount)} times: "
            + " > ".join(word.rpartition(" ")[2] for word in under[0].words("path")),
            quantity="backward_calls_under_sampling",
            value=amount,
            unit="call",
            first=_innermost(sites),
            because=[Because(site) for site in sites],
            hint="act under torch.no_grad(), and leave the gradient to the training side",
        )
    _inside_a_rollout(run, limits, docket)
    holding = {e.pid for e in run.of("optimizer")}
    elsewhere = {p.pid for p in run.processes if p.cells.get("optimizer_steps") or p.calls("T")}
    for process in run.processes if elsewhere else ():  # with no optimizer anywhere the program may change its weights by hand
        passes = process.cells.get("backward_calls", 0)
        if process.calls("S") and passes and process.pid not in holding and not process.cells.get("optimizer_steps"):
            docket.add(
                "GYR101",
                State.BROKEN,
                f"process {process.pid} samples ({count(process.calls('S'))} calls), holds no optimizer, and made "
                f"{count(passes)} backward passes: their gradients train nothing there",
                quantity="backward_calls_in_sampling_process",
                value=passes,
                unit="call",
                hint="act under torch.no_grad(), and leave the gradient to the training side",
                at_most=Severity.WARNING,  # workers that compute gradients for another process are a known design
            )


def _inside_a_rollout(run: HookedRun, limits: HookLimits, docket: Docket) -> None:
    """Backward passes between two env steps of one function, through an acting copy whose gradients no optimizer takes."""
    acting = {(e.pid, e.number("net")) for e in run.of("phase") if e.text("by") == "step" and not e.fields.get("same")}
    spare = {e.pid for e in run.of("phase") if e.number("left_out") and (e.pid, e.number("net")) in acting}
    every = Docket(replace(docket.rules, topology=Topology.COLOCATED.value))  # a fault in every layout
    last = {(e.pid, e.words("path")[:1]): e for e in run.of("rollout_backward")}
    for event in last.values():
        amount = event.number("n")
        if event.fields.get("trains") or event.pid not in spare or amount < limits.graphs or run.of("sampling_backward"):
            continue
        sites = [place for word in event.words("path") if (place := place_at(word))]
        names = [word.rpartition(" ")[2] for word in event.words("path")]
        every.add(
            "GYR101",
            State.BROKEN,
            f"{names[0] if names else 'a rollout'} makes a backward pass between two of its env steps, at least {count(amount)} times: "
            f"no optimizer ever steps in it, and none holds the network that acts ({' > '.join(names)})",
            quantity="backward_calls_between_env_steps",
            value=amount,
            unit="call",
            first=_innermost(sites),
            because=[Because(site) for site in sites],
            hint="act under torch.no_grad(), and leave the gradient to the training side",
            at_most=Severity.WARNING,  # a worker may hand its gradients over
        )
    docket.verdicts.extend(every.verdicts)


def judge_coupling(run: HookedRun, docket: Docket) -> str:
    """Enter whether sample and update calls grow one to one and in turns; the sentence for the report otherwise."""
    marked = bool(run.calls("S", marked=True) and run.calls("T", marked=True))
    samples, updates = (run.calls(letter, marked=marked or None) for letter in "ST")
    if not marked:
        updates = max(updates - run.calls("T", marked=True), run.total("optimizer_steps"))
    if not samples or not updates:
        return ""
    turns = run.total("turns_marked" if marked else "turns_hooked")
    alternation = min(1.0, 2 * turns / (samples + updates))
    ratio = samples / updates
    rules = docket.rules.thresholds
    figures = f"{count(samples)} sample calls, {count(updates)} update calls: ratio {ratio:.3g} : 1, alternation {alternation:.2f}"
    least = rules.coupling_calls
    if min(samples, updates) < least:
        docket.skip(f"coupling: {figures}, needs {least} calls of each side")
        return ""
    coupled = abs(ratio - 1) <= rules.coupling_ratio and alternation >= rules.coupling_alternation
    docket.add(
        "GYR501",
        State.BROKEN if coupled else State.HOLDS,
        f"{figures}: " + ("one side waits for the other at each call" if coupled else "independent"),
        quantity="sample_calls_per_update_call",
        value=round(ratio, 4),
        hint="put a carrier between the sides" if coupled else "",
    )
    synchronous = docket.rules.severity("GYR501") is Severity.OFF
    return f"Coupling: {figures}: {'not judged, one synchronous loop' if synchronous else 'coupled' if coupled else 'independent'}."


def tables(run: HookedRun) -> dict[str, Table]:
    """Call sites by side, entries first, and the processes."""
    totals: dict[tuple[str, str, str, bool], int] = defaultdict(int)
    for process in run.processes:
        for site in process.sites:
            totals[site.letter, site.role, site.label, site.entry] += site.calls
    rows = sorted(totals.items(), key=lambda item: (item[0][0], not item[0][3], -item[1]))
    sides = {"S": "sampling", "T": "training"}
    found = {
        "call_sites": Table(
            ("side", "role", "kind", "where", "calls"),
            tuple(
                (sides.get(letter, letter), role, "entry" if entry else "called from", _where(label), calls)
                for (letter, role, label, entry), calls in rows[:SITES]
            ),
            title="Call sites by side",
            note="entries are exact; callers exact for the first 511 calls of an entry, then one in 1,024 stands for all",
        )
    }
    if run.processes:
        found["processes"] = Table(
            ("pid", "parent", "sample calls", "env steps", "update calls", "optimizer steps", "backward", "loads", "events", "command"),
            tuple(
                (
                    p.pid, p.parent, p.calls("S"), p.env_steps, p.calls("T"), p.cells.get("optimizer_steps", 0), p.cells.get("backward_calls", 0),
                    p.cells.get("load_calls", 0), p.cells.get("events", 0), p.line[:80],
                )
                for p in run.processes
            ),
            title="Processes",
        )  # fmt: skip
    return found


def _innermost(sites: list[Place]) -> Place | None:
    """The last place of a path; the template of our own wrappers has no file."""
    return next((site for site in reversed(sites) if not site.path.startswith("<")), None)


def _where(label: str) -> str:
    path, space, function = label.partition(" ")
    return f"{shorter(path)}{space}{function}" if space else label
