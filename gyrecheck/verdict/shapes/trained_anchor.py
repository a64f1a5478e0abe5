"""Is the old log-prob of a ratio taken from the network that is being trained, through any helper? (GYR407).

Two moments at which that is wrong: anew in each pass over the same rows, so that the ratio follows every step; and on rows of a sampler
that runs on its own, whose recorded log-prob nobody reads, so that staleness cannot show.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.finding import Evidence, Topology
from gyrecheck.program.program import Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.pass_again import same_rows_again
from gyrecheck.verdict.shapes.ratio_sides import Ratio, ratios
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests
from gyrecheck.verdict.shapes.unread_logprob import Unread, unread_logprobs


def trained_anchor(program: Program, layout: Layout) -> Iterator[Suspect]:
    """Every anchor from the trained network that should have come with the rows, or stood before the passes."""
    unread: list[Unread] | None = None
    for number in program.calling(frozenset({"exp"})):
        for where in sorted({number, *(e.caller for e in program.callers[number] if e.kind == "call")}):
            if program.region(where) & {"evaluation"} or in_tests(program, where):
                continue
            for ratio in ratios(program, where, number):
                again = same_rows_again(program, where, ratio.old)
                if again:
                    yield _said(program, where, ratio, "anew on every pass over the same rows: the ratio is always 1", again)
                    continue
                if unread is None:
                    unread = list(unread_logprobs(program))
                yield from _stale(program, layout, where, ratio, unread)


def _stale(program: Program, layout: Layout, number: int, ratio: Ratio, unread: list[Unread]) -> Iterator[Suspect]:
    """The rows come from a sampler of its own, and its record of the log-prob is read nowhere."""
    fact = program.tree.functions[number].fact
    read = {a for arg in fact.calls[ratio.old].args for a in arg if isinstance(a, str)}
    for record in unread:
        rows = {path.partition("[")[0].partition(".")[0] for path in read if any(f"[{k}]" in path or f".{k}" in path for k in record.keys)}
        group = layout.of_module[program.functions[record.function].module]
        alone = record.apart or (group.topology is Topology.DECOUPLED and group.meeting < 0)
        if not rows or not alone or _given_whole(program, number, rows):
            continue
        because = (program.place(record.function, record.line, f"the sampler records `{record.field}`, which is read nowhere", "because"),)
        yield _said(program, number, ratio, "while the rows are of an older one: staleness cannot show, and nothing corrects it", because)
        return


def _said(program: Program, number: int, ratio: Ratio, why: str, because: tuple[Evidence, ...]) -> Suspect:
    name = readable(program.call(number, ratio.old))
    ratio_at = program.call(ratio.function, ratio.exp)
    seen = program.place(ratio.function, ratio_at.line, "the ratio", "because", ratio_at.column + 1)
    return at_call(
        program, number, ratio.old, "GYR407", f"`{name}` is the old log-prob of the ratio and comes from the policy being trained, {why}",
        evidence=(seen, *because), side="training", hint="take the log-prob that the sampler recorded, or compute it once before the passes",
    )  # fmt: skip


def _given_whole(program: Program, number: int, rows: set[str]) -> bool:
    """The rows go whole to code that nobody here can read: it may use the recorded log-prob."""
    fact = program.tree.functions[number].fact
    for at, call in enumerate(fact.calls):
        given = {a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg if isinstance(a, str)}
        if not given & rows or call.name in {"len", "print", "isinstance", "{}"}:
            continue
        target = program.resolver.callee(number, at)
        if target is None or target.kind != "func":
            return True
    return False
