"""Does a step run on a path on which no batch arrived or no backward pass ran? (GYR208)."""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Block
from gyrecheck.model.finding import Severity
from gyrecheck.program.flow import reach
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes import steps
from gyrecheck.verdict.shapes.steps import BACK, STEP, Event
from gyrecheck.verdict.shapes.suspect import Suspect, at_call
from gyrecheck.verdict.shapes.used_again import used_again


def empty_update(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every step that a handler, a test of the data or an empty mask lets run on nothing, once."""
    seen: set[tuple[int, int]] = set()
    for fn in program.functions:
        if not program.own(fn.number, STEP, "scaler.step"):
            continue
        for suspect in (*_without_data(program, fn.number, steps.events(program, fn.number)), *used_again(program, fn.number)):
            if (suspect.function, suspect.line) not in seen:
                seen.add((suspect.function, suspect.line))
                yield suspect


def _without_data(program: Program, root: int, found: list[Event]) -> Iterator[Suspect]:
    backs = [e for e in found if e.role == BACK]
    for step in (e for e in found if e.role == STEP):
        number, at = step.place
        if number != root:
            continue
        call = program.call(number, at)
        for back in backs:
            if len(back.way) > 1 and len(step.way) == 1 and back.way[0] == step.way[0]:
                continue
            head = back.way[0]
            if head[0] != number:
                continue
            block = program.call(*head).block
            skipped = _skipping(program, number, block, call.block)
            if skipped is None or not steps.before(program, back, step):
                continue
            if any(
                b is not back and b.way[0][0] == number and program.within(number, call.block, program.call(*b.way[0]).block) for b in backs
            ):
                continue
            kind, line, words = skipped
            del kind
            yield at_call(
                program, number, at, "GYR208", f"`{readable(call)}` runs although no backward pass may have run: {words}",
                evidence=(program.place(number, line, words, "because"),
                steps.evidence(program, back, "the backward pass that is left out")),
                side="training", hint="return or continue when there is no batch, and count it",
            )  # fmt: skip
            break
        else:
            yield from _masked(program, number, at, backs)


def _skipping(program: Program, number: int, inner: int, outer: int) -> tuple[str, int, str] | None:
    """Why code in block `inner` may not have run when `outer` is reached after it: a handler that goes on, or a test of the data."""
    fact = program.tree.functions[number].fact
    blocks = fact.blocks
    for at in program.blocks_up(number, inner):
        if program.within(number, outer, at):
            return None
        block = blocks[at]
        if block.kind in {"for", "while", "else", "except", "case"}:
            return None
        if block.kind == "try":
            for index, handler in enumerate(blocks):
                if handler.kind == "except" and handler.link == at and not _leaves(program, number, index):
                    return "except", handler.line, f"the handler at line {handler.line} goes on to it"
        if block.kind == "then":
            if any(b.kind == "else" and b.link == at for b in blocks):
                return None
            words = [str(a).rpartition(".")[2].lower() for a in block.detail if isinstance(a, str) and not a.startswith("=")]
            asked = [program.call(number, a).name.rpartition(".")[2] for a in block.detail if isinstance(a, int)]
            if "len" in asked or "any" in asked or "numel" in asked or any(w in program.words["data"] for w in words):
                return "then", block.line, f"the test at line {block.line} may leave it out"
    return None


def _leaves(program: Program, number: int, block: int) -> bool:
    """A block that ends in return, raise, continue or break."""
    exits = program.tree.functions[number].fact.exits
    return any(e.kind in {"return", "raise", "continue", "break"} and e.block == block for e in exits)


def _masked(program: Program, number: int, step: int, backs: list[Event]) -> Iterator[Suspect]:
    """A mean over a mask whose count is lifted to 1, with no test whether anything is left: the step runs on nothing."""
    fact = program.tree.functions[number].fact
    if not any(b.place[0] == number for b in backs):
        return
    for at, call in enumerate(fact.calls):
        if call.name.rpartition(".")[2] not in {"clamp", "clamp_min", "clip", "clamp_"} or not _least_one(call.args, call.keywords):
            continue
        masks = [
            p
            for a in call.receiver
            if isinstance(a, int) and fact.calls[a].name.endswith(".sum")
            for p in _mask_of(fact.calls[a].name, fact.calls[a].receiver)
        ]
        flow = reach(fact, [at])
        fed = any(b.place[0] == number and b.place[1] in flow.calls for b in backs)
        tested = any(
            str(p).split(".")[0] in {str(a).split(".")[0].split("[")[0] for a in _tested(program, number, block)}
            for p in masks
            for block in fact.blocks
        )
        if masks and fed and not tested:
            yield at_call(
                program, number, step, "GYR208", f"`{readable(fact.calls[step])}` runs although `{masks[0]}` "
                    "may leave no row: the count is only lifted to 1",
                evidence=(program.place(number, call.line, "an empty mask gives a loss of 0 here", "because", call.column + 1),),
                side="training", hint="skip the step and count the batch as dropped when the mask is empty", at_most=Severity.NOTE,
            )  # fmt: skip
            return


def _mask_of(name: str, receiver: tuple[str | int, ...]) -> list[str]:
    head = name.rpartition(".")[0]
    return [head] if head else [a for a in receiver if isinstance(a, str)]


def _tested(program: Program, number: int, block: Block) -> list[str]:
    if block.kind not in {"then", "while"}:
        return []
    out = [a for a in block.detail if isinstance(a, str)]
    for atom in block.detail:
        if isinstance(atom, int):
            call = program.call(number, atom)
            out += [
                call.name,
                *(a for arg in call.args for a in arg if isinstance(a, str)),
                *(a for a in call.receiver if isinstance(a, str)),
            ]
    return out


def _least_one(args: tuple[tuple[str | int, ...], ...], keywords: tuple[tuple[str, tuple[str | int, ...]], ...]) -> bool:
    given = [*(a for arg in args for a in arg), *(a for _, v in keywords for a in v)]
    return any(a in {"=1", "=1.0"} for a in given)
