"""Is a state kept for later the living one, so that restoring it restores nothing? (GYR109)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Call
from gyrecheck.program.program import LEARNING, Program, readable
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind


def live_snapshot(program: Program, number: int) -> Iterator[Suspect]:
    """`self.best = net.state_dict()`, and later `net.load_state_dict(self.best)`: it holds the newest weights, whatever was meant."""
    fn = program.tree.functions[number]
    for bind in fn.fact.binds:
        if bind.form != "=" or len(bind.value) != 1 or not isinstance(bind.value[0], int):
            continue
        call = fn.fact.calls[bind.value[0]]
        network, _, last = call.name.rpartition(".")
        if last != "state_dict" or "opt" in network or not network:
            continue
        places = [number]
        if bind.target.startswith("self.") and fn.cls >= 0:
            places = list(program.tree.classes[fn.cls].methods.values())
        for place in places:
            back = next((c for c in program.functions[place].fact.calls if _restores(c, network, bind.target)), None)
            if back is None or not _trained_between(program, number, bind, place, back, places):
                continue
            yield at_bind(
                number, bind, "GYR109", f"`{bind.target}` holds the living tensors of `{network}`: it changes with every step",
                evidence=(program.place(place, back.line, f"this brings back the newest weights: {readable(back)}", "because", back.column + 1),),
                hint=f"copy it: copy.deepcopy({call.name}())", side="training",
            )  # fmt: skip
            break


def _restores(call: Call, network: str, held: str) -> bool:
    head, _, last = call.name.rpartition(".")
    return last == "load_state_dict" and head == network and any(held in arg for arg in call.args)


def _trained_between(program: Program, number: int, bind: Bind, place: int, back: Call, places: list[int]) -> bool:
    """The network is trained between keeping and restoring: in other methods, in a loop around both branches, or in between."""
    if not any(program.has(n, *LEARNING, full=True) for n in places):
        return False
    if place != number or (program.loops_of(number, bind.block) and not program.within(number, back.block, bind.block)):
        return True
    fact = program.functions[number].fact
    learned = [call.order for at, call in enumerate(fact.calls) if program.role(number, at) in LEARNING]
    learned += [
        fact.calls[e.call].order for e in program.calls.edges[number] if e.call >= 0 and program.has(e.callee, *LEARNING, full=True)
    ]
    return any(bind.order < order < back.order for order in learned) or (
        back.order < bind.order and bool(program.loops_of(number, bind.block))
    )
