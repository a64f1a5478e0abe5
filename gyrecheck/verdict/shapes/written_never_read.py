"""Are weights published after each update, while the sampler beside the trainer keeps those of its constructor? (GYR406).

The sampler is a class that makes a network of its own and acts with it; the trainer is whoever asks it for samples and trains in one loop.
Silent as soon as anything loads, sends or refreshes weights elsewhere than where objects are made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gyrecheck.model.facts import Function
from gyrecheck.model.finding import Severity
from gyrecheck.program.program import ACTING, LEARNING, Program, readable
from gyrecheck.program.topology import Layout
from gyrecheck.verdict.shapes.suspect import Suspect, at_call, in_tests

_GIVES = re.compile(r"publish|push|export|broadcast|ship|share|deploy|hand_?over|announce|release|send")
_SAVES = frozenset({"save", "save_file", "save_model", "dump", "save_pretrained"})
_MOVES = re.compile(
    r"sync|refresh|reload|refit|pull|fetch|receive|update_weight|update_param|set_weight|set_param|load_weight|load_latest|copy_\b|lerp_|collective"
)
_HANDED = re.compile(r"lora|adapter|weights|params|state_dict|checkpoint|model_path")
_MADE = frozenset({"__init__", "<module>", "__post_init__", "setup", "__setstate__"})
_ACTS = frozenset({"generate", "sample", "act", "get_action", "forward", "predict", "select_action"})


def written_never_read(program: Program, _layout: Layout) -> Iterator[Suspect]:
    """Every publishing save in a training loop whose sampler has no way to take it."""
    published = [n for n in program.calling(_SAVES) if _GIVES.search(program.functions[n].fact.name.lower()) and not in_tests(program, n)]
    if not published or any(_moves(program, fn.number, fn.fact) for fn in program.functions):
        return
    for number in published:
        fact = program.functions[number].fact
        save = next((i for i, c in enumerate(fact.calls) if c.name.rpartition(".")[2] in _SAVES and _weights(fact, i)), -1)
        if save < 0:
            continue
        for caller in {e.caller for e in program.callers[number] if e.call >= 0}:
            asked = _asked_in_loop(program, caller, number)
            if asked is None:
                continue
            at, (cls, path, line) = asked
            call, owner = program.call(caller, at), program.tree.classes[cls].fact.name
            yield at_call(
                program, number, save, "GYR406", f"`{readable(fact.calls[save])}` publishes the trained weights, and `{path}` of `{owner}`, which "
                    "the samples come from, never loads any: it keeps those of its constructor",
                evidence=(program.place(caller, call.line, f"samples come from here: {readable(call)}", "because", call.column + 1),
                          program.place(program.tree.classes[cls].methods["__init__"], line, "the sampler's own network is made here", "because")),
                hint="load what is published before the next samples are taken", side="handoff", at_most=Severity.WARNING, key=path, pure=True,
            )  # fmt: skip
            break


def _weights(fact: Function, at: int) -> bool:
    """What is saved are weights."""
    call = fact.calls[at]
    given = [fact.calls[a].name for arg in call.args for a in arg if isinstance(a, int)]
    return call.name.endswith("save_pretrained") or any(name.endswith("state_dict") for name in given)


def _moves(program: Program, number: int, fact: Function) -> bool:
    """Weights are loaded, sent or refreshed after objects were made."""
    if _MOVES.search(fact.name.lower()) and program.tree.functions[number].cls >= 0:
        return True
    for call in fact.calls:
        last = call.name.rpartition(".")[2].lower()
        if _MOVES.search(last):
            return True
        loads = last in {"load_state_dict", "from_pretrained", "load_model", "load_file"} or (last == "load" and "torch" in call.name)
        if loads and (program.loop_of(number, call.block) >= 0 or not (fact.name in _MADE or _opens(program, number))):
            return True
    return False


def _opens(program: Program, number: int) -> bool:
    """Nobody's part: called by module bodies only."""
    fn = program.tree.functions[number]
    return fn.cls < 0 and all(program.tree.functions[e.caller].fact.name == "<module>" for e in program.callers[number])


def _asked_in_loop(program: Program, number: int, publisher: int) -> tuple[int, tuple[int, str, int]] | None:
    """A loop that publishes, trains, and asks a sampler with a network of its own: the asking call, and that sampler."""
    fact = program.tree.functions[number].fact
    for edge in program.calls.edges[number]:
        loop = program.loop_of(number, fact.calls[edge.call].block) if edge.call >= 0 and edge.callee == publisher else -1
        if loop < 0 or not program.has(number, *LEARNING, full=True):
            continue
        for at, call in enumerate(fact.calls):
            found = (
                _sampler(program, call.name.rpartition(".")[2]) if "." in call.name and program.within(number, call.block, loop) else None
            )
            if found is not None:
                return at, found
    return None


def _sampler(program: Program, method: str) -> tuple[int, str, int] | None:
    """The one class with this method that acts with a network which its constructor makes: class, path, line."""
    owners = [cls for cls in program.tree.classes if method in cls.methods]
    if len(owners) != 1 or "__init__" not in owners[0].methods:
        return None
    cls = owners[0]
    if any(program.has(m, *LEARNING, full=True) for m in cls.methods.values()):
        return None
    acting = program.tree.functions[cls.methods[method]].fact
    init = program.tree.functions[cls.methods["__init__"]].fact
    used = {c.name.rpartition(".")[0] for c in acting.calls if c.name.rpartition(".")[2] in _ACTS}
    if any(_HANDED.search(k.lower()) for c in acting.calls for k, _ in c.keywords):
        return None  # the weights come with every call
    acts = bool(program.own(cls.methods[method], *ACTING))
    used |= {c.name for i, c in enumerate(acting.calls) if acts or program.role(cls.methods[method], i) == "policy.forward"}
    for bind in init.binds:
        named = program.lexicon.named(bind.target.rpartition(".")[2])
        if named is None or named.kind != "module":
            continue
        if bind.target in used and bind.target.startswith("self.") and len(bind.value) == 1 and isinstance(bind.value[0], int):
            return cls.number, bind.target, bind.line
    return None
