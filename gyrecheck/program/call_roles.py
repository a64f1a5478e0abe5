"""The role of one call and the confidence it is known by: by symbol, by the type of its receiver, by its own class, else by its shape.

What is known for certain comes first; names alone say something only weakly, and never for a receiver that is known to be another thing.
"""

from __future__ import annotations

from gyrecheck.model.facts import Call
from gyrecheck.model.finding import Confidence
from gyrecheck.program.call_names import called_directly, fits, receiver_name
from gyrecheck.program.kinds import Kinds
from gyrecheck.program.resolve import Resolver
from gyrecheck.program.tree import Fn, Thing, Tree
from gyrecheck.rulebook.lexicon import Lexicon, fold


class CallRoles(Kinds):
    """Answers `_role` for the calls of a tree."""

    def __init__(self, tree: Tree, lexicon: Lexicon, resolver: Resolver) -> None:
        super().__init__(tree, lexicon, resolver)
        self._fits: dict[tuple[str, tuple[str, ...]], bool] = {}

    def _role(self, fn: Fn, call: Call, target: Thing | None, last: str) -> tuple[str, Confidence, str] | None:
        lexicon = self.lexicon
        if target is not None:
            if target.kind == "ext":
                role = lexicon.symbols.get(str(target.ref))
                if role is None:
                    made = lexicon.type_made_by(str(target.ref))
                    role = lexicon.makes.get(made) if made else None
                if role:
                    return role, Confidence.EXACT, str(target.ref)
                owner, _, method = str(target.ref).rpartition(".")
                known = lexicon.type_names.get(owner)
                if known and method in lexicon.methods[known]:
                    role = lexicon.methods[known][method]
                    return (role, Confidence.EXACT, f"{known}.{method}") if role else None
                return None if role == "" else self._by_import(str(target.ref), call, last)
            if target.kind == "func":
                return self._own_role(int(target.ref), last)
            if target.kind == "class":
                return self._class_role(int(target.ref))
            if target.kind == "type":
                role = lexicon.methods.get(str(target.ref), {}).get("__call__")
                return (role, Confidence.BOUND, f"{target.ref}()") if role else None
            if target.kind in {"inst", "module"}:
                return None
        base = self.resolver.receiver(fn.number, call)
        if base is not None and base.kind == "type":
            methods = lexicon.methods.get(str(base.ref), {})
            if last in methods:
                return (methods[last], Confidence.BOUND, f"{base.ref}.{last}") if methods[last] else None
            if lexicon.kinds.get(str(base.ref)) not in {"module", "neutral"}:
                return None
        if base is not None and base.kind == "inst":
            found = self._inherited_role(int(base.ref), last)
            if found is not None:
                return found
            if not self.resolver.bases(int(base.ref))[1]:
                held = called_directly(lexicon, last) if self.resolver.method(int(base.ref), last) < 0 else None
                return (held[0], held[1], call.name) if held is not None else None
        if base is not None and base.kind in {"module", "func", "class"}:
            return None
        return self._by_shape(call, last, fn, base)

    def _by_import(self, qualified: str, call: Call, last: str) -> tuple[str, Confidence, str] | None:
        """A call of something imported that no file lists: only names say something, and only weakly."""
        if "." not in call.name or qualified.startswith("builtins."):
            return None
        role = self.lexicon.names.get(last)
        return (role, Confidence.HINT, call.name) if role and not role.startswith(("wrap.", "grad.", "guard.", "mode.")) else None

    def _own_role(self, callee: int, last: str) -> tuple[str, Confidence, str] | None:
        """A first-party function that plays a role: an environment's step, or a name that a vocabulary lists."""
        fn = self.tree.functions[callee]
        if fn.cls >= 0:
            kind = self.class_kind(fn.cls)
            if kind == "env" and last in {"step", "reset"}:
                return f"env.{last}", Confidence.BOUND, fn.fact.qualname
            found = self._inherited_role(fn.cls, last)
            if found is not None:
                return found
        role = self.lexicon.symbols.get(self.tree.qualified(callee))
        return (role, Confidence.EXACT, self.tree.qualified(callee)) if role else None

    def _inherited_role(self, cls: int, method: str) -> tuple[str, Confidence, str] | None:
        for base in self.resolver.types_of_class(cls):
            role = self.lexicon.methods.get(base, {}).get(method)
            if role:
                return role, Confidence.BOUND, f"{base}.{method}"
        return None

    def _class_role(self, cls: int) -> tuple[str, Confidence, str] | None:
        for base in self.resolver.types_of_class(cls):
            role = self.lexicon.makes.get(base)
            if role:
                return role, Confidence.BOUND, base
        return ("env.make", Confidence.BOUND, self.tree.classes[cls].fact.name) if self.class_kind(cls) == "env" else None

    def _by_shape(self, call: Call, last: str, fn: Fn, base: Thing | None) -> tuple[str, Confidence, str] | None:
        variable = receiver_name(call, fn)
        given = len(call.args) + len(call.keywords)
        for shape in self.lexicon.calls.get(last, ()):
            if shape.unpack and call.result not in shape.unpack:
                continue
            if shape.arguments and not shape.arguments[0] <= given <= shape.arguments[-1]:
                continue
            if shape.keywords and not any(k in shape.keywords for k, _ in call.keywords):
                continue
            if shape.receivers and not (variable and self._fitting(variable, shape.receivers)):
                continue
            return (shape.role, Confidence(shape.confidence), call.name) if shape.role else None
        named = self.lexicon.named(variable) if variable else None
        if named is not None and last in named.methods:
            role = named.methods[last]
            return (role, Confidence(named.confidence), call.name) if role else None
        direct = called_directly(self.lexicon, last) if base is None or base.kind == "inst" else None
        if direct is not None:
            return direct[0], direct[1], call.name
        if "." not in call.name and self.resolver.path(fn.number, call.name) is not None:
            return None
        said = self.lexicon.names.get(last)
        if said and not said.startswith("wrap."):
            sure = said.startswith(("grad.", "guard.", "mode."))
            return said, Confidence.BOUND if sure else Confidence.HINT, call.name
        return None

    def _fitting(self, variable: str, patterns: tuple[str, ...]) -> bool:
        key = (variable, patterns)
        known = self._fits.get(key)
        if known is None:
            self._fits[key] = known = fits(fold(variable), patterns)
        return known
