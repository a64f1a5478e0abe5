"""Do a version label and the weights it names belong together? (GYR414).

Read after the generation it should describe; put on by the reader of the record; sent out before the step that makes it true;
announced in a file before the weights are there.
"""

from __future__ import annotations

from collections.abc import Iterator

from gyrecheck.model.facts import Bind, Call, Function
from gyrecheck.program.program import ACTING, LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.steps import BACK, STEP
from gyrecheck.verdict.shapes.suspect import Suspect, at_bind, at_call

_SAVES = frozenset({"save", "save_pretrained", "save_file", "save_model", "save_checkpoint", "dump"})
_TELLS = frozenset({"write_text", "write", "dump", "replace", "rename", "symlink_to", "symlink", "touch", "set"})
_ANNOUNCES = ("latest", "current", "newest", "pointer", "marker", "ready", "version")


def version_apart(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every label that is taken, put on or sent out at the wrong moment."""
    for fn in program.functions:
        if fn.fact.name.startswith("test"):
            continue
        yield from _read_late(program, fn.number)
    for questions, numbers in (
        (_put_on_by_reader, program.doing("carrier.read", "buffer.take")),
        (_sent_early, program.doing(BACK)),
        (_announced, program.calling(_SAVES)),
    ):
        for number in numbers:
            if not program.functions[number].fact.name.startswith("test"):
                yield from questions(program, number)


def _is_label(program: Program, path: object) -> bool:
    leaf = str(path).rpartition(".")[2].lower().strip("_")
    return isinstance(path, str) and "." in path and not path.startswith(("=", "<")) and (
        program.words.field(leaf) == "version" or leaf.endswith(("policy_version", "weight_version", "weights_version", "model_version"))
    )  # fmt: skip


# ---- read after the generation


def _read_late(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    if not fact.is_async:
        return
    waits = [
        (b, a) for b in fact.binds if b.op == "await" or b.form.partition("/")[2]
        for a in b.value if isinstance(a, int) and (program.role(number, a) in {"policy.generate", "rollout.run"} or _told_by(program, fact, b, a))
    ]  # fmt: skip
    if not waits:
        return
    reads = list(_reads(program, fact, {b.target for b, _ in waits}))
    last = max(waits, key=lambda w: w[0].order)
    start = fact.calls[min(waits, key=lambda w: w[0].order)[1]]
    if not reads or any(order < start.order for order, *_ in reads):
        return
    for order, line, path, at in reads:
        if order > last[0].order:
            awaited = program.place(
                number, start.line, f"weights may change while this waits: {readable(start)}", "because", start.column + 1
            )
            words = f"`{path}` is read after `{readable(start)}` has returned: the record may name weights that did not act"
            hint = f"read {path} before the await, and put that value into the record"
            if isinstance(at, int):
                yield at_call(program, number, at, "GYR414", words, evidence=(awaited,), hint=hint, side="sampling", key=path)
            else:
                yield at_bind(number, at, "GYR414", words, evidence=(awaited,), hint=hint, side="sampling", key=path)
            return
        del line


def _told_by(program: Program, fact: Function, bind: Bind, at: int) -> bool:
    """The awaited answer is asked for tokens or log-probs that go into a record together with a version read from somewhere else."""
    if bind.op != "await" or fact.calls[at].name.startswith("asyncio.") or not program.words.has("completions", fact.calls[at].name):
        return False
    told = {bind.target}
    for other in fact.binds:  # its parts: `for choice in answer["choices"]`
        if any(isinstance(a, str) and a.split(".")[0].split("[")[0] in told for a in other.value):
            told.add(other.target)
    for call in fact.calls:
        if call.order < bind.order:
            continue
        given = [a for arg in (*call.args, *(v for _, v in call.keywords)) for a in arg if isinstance(a, str)]
        if any(a.split(".")[0].split("[")[0] in told for a in given) and any(_is_label(program, a) for a in given):
            return True
    return False


def _reads(program: Program, fact: Function, results: set[str]) -> Iterator[tuple[int, int, str, int | Bind]]:
    """Where a version attribute of a living object is read: (order, line, path, call or binding); the answer's own version is none."""
    for at, call in enumerate(fact.calls):
        for atoms in (*call.args, *(v for _, v in call.keywords)):
            for atom in atoms:
                if _is_label(program, atom) and str(atom).split(".")[0] not in results:
                    yield call.order, call.line, str(atom), at
    for bind in fact.binds:
        for atom in bind.value:
            if _is_label(program, atom) and str(atom).split(".")[0] not in results:
                yield bind.order, bind.line, str(atom), bind


# ---- put on by the reader


def _put_on_by_reader(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    if program.has(number, *ACTING, full=True):
        return
    taken = _taken(program, number)
    if not taken or not any(
        program.has(f.number, *LEARNING, full=True) for f in program.tree.functions_of(program.functions[number].module)
    ):
        return
    for bind in fact.binds:
        root = bind.target.split(".")[0].split("[")[0]
        leaf = bind.target.rstrip("]").rpartition("[")[2].rpartition(".")[2]
        if root == bind.target or root not in taken or program.words.field(leaf) != "version" or bind.form != "=":
            continue
        value = bind.value[0] if len(bind.value) == 1 else ""
        if _is_label(program, value) and str(value).split(".")[0].split("[")[0] not in taken:
            call = fact.calls[taken[root]]
            yield at_bind(
                number, bind, "GYR414", f"`{bind.target}` is set to the reader's own `{value}`: every record looks fresh",
                evidence=(program.place(number, call.line, f"the record comes from {readable(call)}", "because", call.column + 1),),
                hint="let the sampler stamp the record; the reader only compares", side="training",
            )  # fmt: skip


def _taken(program: Program, number: int) -> dict[str, int]:
    """Names that hold what came out of a queue or buffer, with the call that gave it."""
    fact = program.tree.functions[number].fact
    gives = {at for at, _ in program.own(number, "carrier.read", "buffer.take")}
    out: dict[str, int] = {}
    if not gives:
        return out
    for _ in range(2):
        for bind in fact.binds:
            for atom in bind.value:
                if isinstance(atom, int) and atom in gives:
                    out.setdefault(bind.target, atom)
                elif isinstance(atom, str) and atom in out and bind.form == "for":
                    out.setdefault(bind.target, out[atom])
    return out


# ---- sent before the step


def _sent_early(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    backs = [fact.calls[a] for a, _ in program.own(number, BACK)]
    taken = [fact.calls[a] for a, _ in program.own(number, STEP, "scaler.step")]
    if not backs or not taken:
        return
    for at in _sends(program, number):
        call = fact.calls[at]
        before = [b for b in backs if b.order < call.order and program.within(number, call.block, b.block)]
        after = [s for s in taken if s.order > call.order and s.block == call.block]
        if not before or not after or any(before[-1].order < s.order < call.order for s in taken):
            continue
        first = after[0]
        yield at_call(
            program, number, at, "GYR414", f"`{readable(call)}` sends the weights before `{readable(first)}`: samplers stay one update behind",
            evidence=(program.place(number, first.line, "the update happens only here", "because", first.column + 1),),
            hint="step first, then raise the version and publish", side="training",
        )  # fmt: skip


def _sends(program: Program, number: int) -> list[int]:
    fact = program.tree.functions[number].fact
    out = [a for a, _ in program.own(number, "weights.publish", hints=True)]
    for at, _ in program.own(number, "carrier.write"):
        if _given_weights(fact, fact.calls[at]):
            out.append(at)
    return sorted(set(out))


def _given_weights(fact: Function, call: Call) -> bool:
    for atom in (*(a for arg in call.args for a in arg), *(a for _, v in call.keywords for a in v)):
        if isinstance(atom, int):
            inner = fact.calls[atom]
            if inner.name.endswith(".state_dict") or _given_weights(fact, inner):
                return True
    return False


# ---- announced before it is there


def _announced(program: Program, number: int) -> Iterator[Suspect]:
    fact = program.tree.functions[number].fact
    saves = [
        c for c in fact.calls if c.name.rpartition(".")[2] in _SAVES and (_given_weights(fact, c) or c.name.endswith("save_pretrained"))
    ]
    if not saves:
        return
    for at, call in enumerate(fact.calls):
        if call.name.rpartition(".")[2] not in _TELLS or call in saves or not _names_pointer(fact, call):
            continue
        later = [s for s in saves if s.order > call.order and s.block == call.block]
        if later and not any(s.order < call.order for s in saves):
            yield at_call(
                program, number, at, "GYR414", f"`{readable(call)}` announces a version before `{readable(later[0])}` has written its weights",
                evidence=(program.place(number, later[0].line, "the weights are written here", "because", later[0].column + 1),),
                hint="write the weights to a temporary name, rename, and announce last", side="training",
            )  # fmt: skip


def _names_pointer(fact: Function, call: Call) -> bool:
    """The file written is the one that says which version is newest."""
    texts = [call.name.lower().rpartition(".")[0]]
    given = [a for arg in (*call.args, call.receiver) for a in arg]
    texts += [str(a).lower() for a in given if isinstance(a, str)]
    head = call.name.rpartition(".")[0]
    for bind in fact.binds:
        if bind.target == head or bind.target in given:
            texts += [str(a).lower() for a in bind.value if isinstance(a, str)]
    for atom in given:
        if isinstance(atom, int):
            inner = fact.calls[atom]
            texts += [inner.name.lower(), *(str(a).lower() for arg in inner.args for a in arg if isinstance(a, str))]
            texts += [k.lower() for k, _ in inner.keywords]
    return any(word in text for text in texts for word in _ANNOUNCES)
