"""Which roles a function has, by itself or through calls, each with its shortest chain down to the call that does it.

Breadth-first from the primitives against the edges, once a role: linear, no fixpoint, recursion ends by itself. Sure edges come
first; a chain that needs a `hint` edge or a `hint` role is a hint as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gyrecheck.model.finding import Confidence
from gyrecheck.program.calls import Calls, Edge, RoleAt


class Hop(NamedTuple):
    """One step of a chain: in `function`, call number `call` leads on to `callee`, or does the role itself (-1)."""

    function: int
    call: int
    callee: int


class Effect(NamedTuple):
    """A role that a function has; `distance` 0 means that it does so itself."""

    role: str
    distance: int
    confidence: Confidence
    next: Hop


class Effects:
    """Every function's effects. `barrier(callee)` true: an edge into that function carries nothing back."""

    def __init__(self, calls: Calls, barrier: Callable[[int], bool]) -> None:
        self._calls = calls
        count = len(calls.roles)
        self.of: list[dict[str, Effect]] = [{} for _ in range(count)]
        incoming: list[list[Edge]] = [[] for _ in range(count)]
        for edges in calls.edges:
            for edge in edges:
                if not barrier(edge.callee) and edge.caller != edge.callee:
                    incoming[edge.callee].append(edge)
        owners: dict[str, list[tuple[int, RoleAt]]] = {}
        for number, found in enumerate(calls.roles):
            for role in found:
                owners.setdefault(role.role, []).append((number, role))
        for name, sources in owners.items():
            self._spread(name, sources, incoming)

    def _spread(self, role: str, sources: list[tuple[int, RoleAt]], incoming: list[list[Edge]]) -> None:
        known = self._pass(role, [s for s in sources if s[1].confidence is not Confidence.HINT], incoming, [], sure=True)
        self._pass(role, sources, incoming, sorted(known), sure=False)

    def _pass(self, role: str, sources: list[tuple[int, RoleAt]], incoming: list[list[Edge]], queue: list[int], *, sure: bool) -> list[int]:
        """Spread from `queue` and the sources; all functions that have the role now, in the order they got it."""
        for number, at in sources:
            if role not in self.of[number]:
                confidence = at.confidence if sure else Confidence.HINT
                self.of[number][role] = Effect(role, 0, confidence, Hop(number, at.call, -1))
                queue.append(number)
        head = 0
        while head < len(queue):
            number = queue[head]
            head += 1
            here = self.of[number][role]
            for edge in incoming[number]:
                if role in self.of[edge.caller] or (sure and edge.confidence is Confidence.HINT):
                    continue
                confidence = here.confidence if sure else Confidence.HINT
                self.of[edge.caller][role] = Effect(role, here.distance + 1, confidence, Hop(edge.caller, edge.call, number))
                queue.append(edge.caller)
        return queue

    def chain(self, number: int, role: str) -> tuple[Hop, ...]:
        """The way from a function down to the call that has the role, shortest first; empty when it has not."""
        hops: list[Hop] = []
        at = number
        while role in self.of[at]:
            hop = self.of[at][role].next
            hops.append(hop)
            if hop.callee < 0:
                break
            at = hop.callee
        return tuple(hops)
