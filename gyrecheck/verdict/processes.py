"""One process or several, from pids, prefixes and files; and what stands in a log of the wrong side."""

from __future__ import annotations

from dataclasses import dataclass

from gyrecheck.model.finding import State
from gyrecheck.model.snapshot import ProcessSeen
from gyrecheck.verdict.ruling import Because, Docket
from gyrecheck.verdict.view import View

_TRAINING_TERMS = frozenset(("taken", "update", "update_call", "trainer_version", "published", "drawn", "zero_grad"))
_METRICS = ("loss", "lr", "grad_norm")


@dataclass(frozen=True, slots=True)
class Layout:
    """How the run lies over processes."""

    pids: int
    files: int
    sides: dict[str, tuple[int, ...]]
    sentence: str


def layout(run: View) -> Layout:
    """What pids and files say."""
    processes = run.snapshot.processes
    known = [p for p in processes if p.pid]
    sides: dict[str, list[int]] = {}
    for process in known:
        for side in process.sides:
            sides.setdefault(side, []).append(process.pid)
    frozen = {side: tuple(sorted(set(pids))) for side, pids in sides.items()}
    count = len({(p.host, p.pid) for p in known})
    if not known:
        return Layout(0, len(processes), {}, "no process ids in the log")
    where = ", ".join(f"{', '.join(map(str, pids[:3]))}{' …' if len(pids) > 3 else ''} {side}" for side, pids in sorted(frozen.items()))
    word = "1 process" if count == 1 else f"{count} processes"
    shared = set(frozen.get("sampling", ())) & set(frozen.get("training", ()))
    kind = ", one process does both" if shared else ", cross-process" if len(frozen) > 1 else ""
    return Layout(count, len(processes), frozen, f"{word} ({where}){kind}" if where else word)


def judge_processes(run: View, docket: Docket) -> None:
    """Enter the verdicts on processes and sides."""
    found = layout(run)
    sampling, training = set(found.sides.get("sampling", ())), set(found.sides.get("training", ()))
    if docket.rules.topology == "decoupled" and sampling and training and sampling == training and len(sampling) == 1:
        pid = next(iter(sampling))
        place = next(s.first_place for s in run.snapshot.series if s.pid == pid)
        docket.add(
            "GYR601",
            State.BROKEN,
            f"declared decoupled, but one process ({pid}) writes both sides' lines",
            quantity="processes",
            value=1,
            first=place,
            because=[place],
            hint="give each side its own entry point, or declare the topology colocated or synchronous",
        )
    _foreign(run, docket)


def _foreign(run: View, docket: Docket) -> None:
    """Loss, learning rate or gradient norm in a sampler's own log."""
    for process in run.snapshot.processes:
        own = [s for s in run.snapshot.series if _belongs(s.path, s.pid, process)]
        if any(s.key.term in _TRAINING_TERMS for s in own):
            continue
        found = [s for s in own if s.key.term in _METRICS and s.side == "sampling"]
        if found:
            series = found[0]
            names = ", ".join(f"`{s.name}`" for s in found[:3])
            who = f"pid {process.pid}" if process.pid else process.path
            docket.add(
                "GYR104",
                State.BROKEN,
                f"{names} in the sampling side's log ({who}): a training number where no training belongs",
                quantity=series.name,
                value=series.last,
                first=series.first_place,
                because=[Because(series.first_place, "first")],
                hint="see why the sampler knows it: gyrecheck lint, GYR101 and GYR102",
            )


def _belongs(path: str, pid: int, process: ProcessSeen) -> bool:
    return pid == process.pid if process.pid else path == process.path
