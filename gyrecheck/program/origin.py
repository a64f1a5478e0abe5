"""Which object a path stands for, across functions: through parameters, plain aliases and what constructors put into fields.

An origin is (function, path): the oldest name for the same object that the reading of the code can give. `@7` stands for what call 7 of
the function makes; fields of an instance whose construction is not seen belong to its class, (-1 - class, path). Two paths with one
origin are one object; two origins may still be one object, so that only equality says something.
"""

from __future__ import annotations

from gyrecheck.model.facts import Atom
from gyrecheck.program.program import Program

Origin = tuple[int, str]
Frame = dict[str, Origin]
"""What a function's parameters, `self` among them, stand for in a caller."""
_DEEP = 12


def origin(program: Program, number: int, path: str, frame: Frame | None = None, depth: int = 0) -> Origin:
    """The origin of a path read in function `number`; `frame` says what its parameters are."""
    fn = program.tree.functions[number]
    root, dot, rest = path.partition(".")
    if depth > _DEEP or "[" in root:
        return number, path
    if frame is not None and root in frame:
        home, base = frame[root]
        return _at_home(program, home, base + dot + rest, depth + 1)
    if fn.cls >= 0 and fn.fact.params and fn.fact.params[0].name == root:
        return _at_home(program, -1 - fn.cls, path, depth + 1)
    if root[:1] == "@":
        return _at_home(program, number, path, depth + 1)
    if fn.parent >= 0 and root not in program.tree.names(number).bound:
        return origin(program, fn.parent, path, None, depth + 1)
    binds = [b for b in fn.fact.binds if b.target == root]
    if len(binds) != 1 or binds[0].form != "=" or binds[0].op or len(binds[0].value) != 1:
        return number, path
    atom = binds[0].value[0]
    if isinstance(atom, int):
        return _at_home(program, number, f"@{atom}{dot}{rest}", depth + 1)
    return (number, path) if atom.startswith(("=", "<")) else origin(program, number, atom + dot + rest, frame, depth + 1)


def frame_of(program: Program, number: int, at: int, callee: int, frame: Frame | None = None) -> Frame:
    """What the parameters of `callee` stand for at call `at` of function `number`."""
    call, fn = program.call(number, at), program.tree.functions[callee]
    plain = [p.name for p in fn.fact.params if not p.kind.startswith("*")]
    out: Frame = {}
    if fn.cls >= 0 and plain and not any(d.name.rpartition(".")[2] in {"staticmethod", "classmethod"} for d in fn.fact.decorators):
        head = call.name.rpartition(".")[0]
        if fn.fact.name == "__init__":
            out[plain[0]] = (number, f"@{at}")
        elif head:
            out[plain[0]] = origin(program, number, head, frame)
        plain = plain[1:]
    for name, atoms in (*zip(plain, call.args, strict=False), *call.keywords):
        if len(atoms) == 1:
            out[name] = _of_atom(program, number, atoms[0], frame, 0)
    return out


def _of_atom(program: Program, number: int, atom: Atom, frame: Frame | None, depth: int) -> Origin:
    if isinstance(atom, int):
        return number, f"@{atom}"
    return (number, atom) if atom.startswith(("=", "<")) else origin(program, number, atom, frame, depth)


def _at_home(program: Program, home: int, path: str, depth: int) -> Origin:
    """Follow a path within the function (or class, when negative) that owns its root."""
    if depth > _DEEP:
        return home, path
    root, _, rest = path.partition(".")
    if home < 0:
        return _field_of(program, -1 - home, path, depth)
    if root[:1] == "@":
        return _of_made(program, home, int(root[1:]), rest, depth) if rest else (home, path)
    return origin(program, home, path, None, depth + 1)


def _of_made(program: Program, home: int, at: int, rest: str, depth: int) -> Origin:
    """A field of what a constructor of ours makes: what it was given for it."""
    target = program.resolver.callee(home, at)
    field, dot, more = rest.partition(".")
    if target is None or target.kind != "class":
        return home, f"@{at}.{rest}"
    put = _put(program, int(target.ref), field)
    if put is None:
        return home, f"@{at}.{rest}"
    start, atom = put
    if isinstance(atom, int):
        return _at_home(program, start, f"@{atom}{dot}{more}", depth + 1) if more else (start, f"@{atom}/{home}/{at}")
    return origin(program, start, atom + dot + more, frame_of(program, home, at, start), depth + 1)


def _field_of(program: Program, cls: int, path: str, depth: int) -> Origin:
    """A field of the object itself, whose construction is not seen: as far as its own constructor tells."""
    me, _, rest = path.partition(".")
    field, dot, more = rest.partition(".")
    put = _put(program, cls, field) if field else None
    if put is None:
        return -1 - cls, path
    start, atom = put
    if isinstance(atom, int):
        return _at_home(program, start, f"@{atom}{dot}{more}", depth + 1)
    params = {p.name for p in program.tree.functions[start].fact.params}
    root = atom.partition(".")[0]
    if root in params and root != me:
        return -1 - cls, f"{me}.{field}{dot}{more}"
    return origin(program, start, atom + dot + more, None, depth + 1)


def _put(program: Program, cls: int, field: str) -> tuple[int, Atom] | None:
    """The one value that a field ever holds, as (constructor, atom); None when it is not one plain value, or is replaced anywhere."""
    start = program.resolver.method(cls, "__init__")
    if start < 0:
        return None
    fact = program.tree.functions[start].fact
    me = fact.params[0].name if fact.params else "self"
    binds = [b for b in fact.binds if b.target == f"{me}.{field}"]
    if len(binds) != 1 or binds[0].form != "=" or binds[0].op or len(binds[0].value) != 1 or _replaced(program, cls, start, field):
        return None
    atom = binds[0].value[0]
    return None if isinstance(atom, str) and atom.startswith(("=", "<")) else (start, atom)


def _replaced(program: Program, cls: int, start: int, field: str) -> bool:
    """Another method of the class, or anything in its file through another name than `self`, binds the field anew."""
    own = {m for c in program.resolver.bases(cls)[0] for m in program.tree.classes[c].methods.values()}
    for fn in program.tree.functions_of(program.tree.classes[cls].module):
        for bind in fn.fact.binds if fn.number != start else ():
            head, _, last = bind.target.rpartition(".")
            if last == field and head and (head != "self" or fn.number in own):
                return True
    return False
