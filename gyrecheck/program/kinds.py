"""What instances of a class are: a vocabulary kind by their bases, an environment by step and reset, a buffer by name."""

from __future__ import annotations

from gyrecheck.program.resolve import Resolver
from gyrecheck.program.tree import Thing, Tree
from gyrecheck.rulebook.lexicon import Lexicon


class Kinds:
    """Answers over one tree; each class is judged once."""

    def __init__(self, tree: Tree, lexicon: Lexicon, resolver: Resolver) -> None:
        self.tree, self.lexicon, self.resolver = tree, lexicon, resolver
        self._kinds: dict[int, str] = {}

    def class_kind(self, cls: int) -> str:
        """What instances of a first-party class are: a vocabulary kind, `env` for step + reset, or empty."""
        if cls not in self._kinds:
            self._kinds[cls] = ""
            kinds = [self.lexicon.kinds[t] for t in self.resolver.types_of_class(cls)]
            found = next((k for k in kinds if k not in {"module", "neutral"}), kinds[0] if kinds else "")
            if found in {"", "neutral"} and self.resolver.method(cls, "step") >= 0 and self.resolver.method(cls, "reset") >= 0:
                step = self.tree.functions[self.resolver.method(cls, "step")].fact
                plain = [p for p in step.params if not p.kind.startswith("*")]
                found = "env" if len(plain) >= 2 or len(step.params) > len(plain) else ""
            if found == "dataset" and any(self._named_kind(c) == "collector" for c in self.resolver.bases(cls)[0]):
                found = "collector"
            if not found:
                named = self.lexicon.named(self.tree.classes[cls].fact.name)
                found = named.kind if named is not None and named.kind in {"buffer", "queue"} else ""
            self._kinds[cls] = found
        return self._kinds[cls]

    def _named_kind(self, cls: int) -> str:
        """What a class's own name says its instances are, or empty."""
        named = self.lexicon.named(self.tree.classes[cls].fact.name)
        return named.kind if named is not None else ""

    def kind_of(self, thing: Thing | None) -> str:
        """The vocabulary kind of a value, or empty."""
        if thing is None:
            return ""
        if thing.kind == "inst":
            return self.class_kind(int(thing.ref))
        return self.lexicon.kinds.get(str(thing.ref), "") if thing.kind == "type" else ""
