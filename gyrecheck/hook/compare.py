"""An acting network against what the optimizers hold: which tensors agree, which stayed behind, and whether buffers follow, too.

Two networks are told to be counterparts by the shapes of their parameters in order, never by names: a wrapper may have prefixed those.
"""

from __future__ import annotations

import gc
import sys
import weakref

from gyrecheck.hook.gradients import held_by
from gyrecheck.hook.networks import counterpart, differing, fingerprint

TYPE_CHECKING = False  # importing `typing` costs more than this package; type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gyrecheck.hook.updates import Updates

SEARCHES = 2
"""Times that a trained module is searched for among all objects: once may come before it is built."""


class Comparison:
    """The comparisons of one process; it remembers which trained module an acting one belongs to."""

    def __init__(self, updates: Updates) -> None:
        self.updates = updates
        self.found: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()
        self.hosts: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()
        self.searched: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def of(self, root: Any, acting: Sequence[Any]) -> dict[str, Any]:
        """The fields of a phase event that relate the parameters `acting` of `root` to the trained ones; empty without counterpart."""
        ours = {id(p) for p in acting}
        best: tuple[int, Sequence[Any], Sequence[Any], int, float] | None = None  # optimizer, mine, theirs, differing, gap
        for optimizer, state in self.updates.alive():
            held = held_by(optimizer)
            if shared := sum(id(p) in ours for p in held):
                return {"same": True, "opt": state.number, "of": shared, "differ": 0, "gap": 0.0, **self._left_out(root, acting)}
            for mine, theirs in counterpart(acting, held):
                count, gap = differing(mine, theirs)
                if best is None or (len(mine) - count, len(mine)) > (len(best[1]) - best[3], len(best[1])):
                    best = (state.number, mine, theirs, count, gap)
        if best is None:  # in no optimizer, and like none that is
            return {**self._left_out(root, acting), **self._base(root, acting)}
        number, mine, theirs, count, gap = best
        fields = {"opt": number, "of": len(mine), "differ": count, "gap": float(f"{gap:.4g}"), "trained_fp": fingerprint(theirs)}
        fields |= self._left_out(root, acting)
        if 0 < count < len(mine):
            apart = [differing([one], [other])[0] > 0 for one, other in zip(mine, theirs, strict=True)]
            names = {id(p): name for name, p in root.named_parameters()}
            fields["apart"] = [names.get(id(p), "?") for p, off in zip(mine, apart, strict=True) if off][:4]
            fields["still"] = fingerprint([p for p, off in zip(mine, apart, strict=True) if off])
            fields["met"] = fingerprint([p for p, off in zip(mine, apart, strict=True) if not off])
        return {**fields, **self._buffers(root, {id(p) for p in theirs})}

    def _base(self, root: Any, acting: Sequence[Any]) -> dict[str, Any]:
        """Against the frozen parameters of a module that is trained in part: its base, without what is trained beside it."""
        trained = {id(p): p for o, _ in self.updates.alive() for p in held_by(o)}
        if not trained:
            return {}
        host = self._host(root, set(trained))
        if host is None:
            return {}
        frozen = [p for p in host.parameters() if id(p) not in trained]
        moving = [p for p in host.parameters() if id(p) in trained]
        for mine, theirs in counterpart(acting, frozen):
            if len(mine) == len(acting):
                count, _ = differing(mine, theirs)
                return {"base_of": len(mine), "base_differ": count, "host": type(host).__name__, "beside_fp": fingerprint(moving)}
        return {}

    def _host(self, root: Any, trained: set[int]) -> Any:
        """The largest module that holds both trained parameters and frozen ones; None where there is none."""
        known = self.hosts.get(root)
        if known is not None and known() is not None:
            return known()
        times = self.searched.get(root, 0)
        if times >= SEARCHES:
            return None
        self.searched[root] = times + 1
        best, most, kind = None, 0, sys.modules["torch"].nn.Module
        for thing in gc.get_objects():
            if thing is root or not issubclass(type(thing), kind):
                continue
            ids = [id(p) for p in thing.parameters()]
            if len(ids) > most and 0 < sum(one in trained for one in ids) < len(ids):
                best, most = thing, len(ids)
        if best is not None:
            self.hosts[root] = weakref.ref(best)
        return best

    def _left_out(self, root: Any, acting: Sequence[Any]) -> dict[str, Any]:
        if not self.updates.steps:
            return {}
        held = {id(p) for o, _ in self.updates.alive() for p in held_by(o)}
        left = {id(p) for p in acting if id(p) not in held and p.requires_grad and p.grad is not None}
        names = [name for name, p in root.named_parameters() if id(p) in left] if left else []
        return {"left": names[:4], "left_out": len(left)}

    def _buffers(self, root: Any, trained: set[int]) -> dict[str, Any]:
        ours = {name: b for name, b in root.named_buffers() if b.is_floating_point()}
        module = self._trained(root, trained) if ours else None
        if module is None:
            return {}
        theirs = dict(module.named_buffers())
        names = [name for name in ours if name in theirs and ours[name].shape == theirs[name].shape]
        apart = [name for name in names if differing([ours[name]], [theirs[name]])[0]]
        own, others = fingerprint([ours[name] for name in names]), fingerprint([theirs[name] for name in names])
        return {"buffers_fp": own, "trained_buffers_fp": others, "buffers_apart": apart[:4]}

    def _trained(self, root: Any, trained: set[int]) -> Any:
        """The module of the same class that holds the trained parameters; None where there is none."""
        known = self.found.get(root)
        if known is not None and known() is not None:
            return known()
        times = self.searched.get(root, 0)
        if times >= SEARCHES:
            return None
        self.searched[root] = times + 1
        for thing in gc.get_objects():
            if type(thing) is type(root) and thing is not root and id(next(thing.parameters(), None)) in trained:
                self.found[root] = weakref.ref(thing)
                return thing
        return None
