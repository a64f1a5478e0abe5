"""The keys behind the names of one format's lines: the user's mapping first, then the format's own keys, then the alias table.

On lines of a described format that table is asked only for what the format has no key for and what counts nothing: gaps, ages, norms.

The same name gives the same `Key` object every time, and what was asked once costs one look-up.
"""

from __future__ import annotations

import re
from fnmatch import translate

from gyrecheck.model.errors import GyreError, did_you_mean
from gyrecheck.model.events import Key, Unit
from gyrecheck.rulebook.aliases import Aliases
from gyrecheck.rulebook.log_formats import KeyRule, LineRule, LogFormat, load_terms
from gyrecheck.stream.cells import folded

NO_LINE = LineRule("")
PLANS = 20000
"""How many answers are remembered before all are forgotten: a log that names its lines by number must not fill the memory."""
MEASURED = frozenset(
    ("logp_gap", "mismatch_kl", "ratio", "age", "age_max", "entropy", "grad_norm", "clip_fraction", "weight_print", "prob_error")
)
"""What a name's words tell on the lines of a described format, too."""


class FormatKeys:
    """What names mean in one format; `unit` is the user's, for counters and levels whose unit is not said."""

    def __init__(self, form: LogFormat | None, *, mapping: tuple[tuple[str, str], ...], unit: Unit | None, aliases: Aliases) -> None:
        self._form, self._unit, self._aliases = form, unit, aliases
        self._terms = load_terms()
        self._mapped = {folded(key): self._map(term, key) for term, key in mapping}
        self._mapped_terms = {key.term for key in self._mapped.values()}
        self._wild = tuple((re.compile(translate(name)), rule) for name, rule in (form.keys if form else {}).items() if "*" in name)
        self._given: dict[tuple[str, int], tuple[LineRule, tuple[tuple[Key, float], ...]]] = {}
        self._looked: dict[tuple[str, str, bool], Key | None] = {}
        self._interned: dict[tuple[object, ...], Key] = {}

    def look(self, name: str, noun: str, config: bool) -> Key | None:
        """A generic name, with the user's mapping and the format's own keys before the alias table."""
        asked = (name, noun, config)
        if asked in self._looked:
            return self._looked[asked]
        if len(self._looked) > PLANS:
            self._looked.clear()
        found = self._looked[asked] = self._look(name, noun, config)
        return found

    def _look(self, name: str, noun: str, config: bool) -> Key | None:
        if self._mapped and (mapped := self._mapped.get(folded(name))):
            return self._own(mapped)
        if self._form and (rule := self._form.keys.get(name)):
            return self._from_rule(name, rule, NO_LINE)[0]
        key = self._aliases.understand(name, noun, config)
        if key is None or key.term in self._mapped_terms:
            return None
        return self._own(key)

    def _own(self, key: Key) -> Key:
        unit = (
            self._unit if self._unit and key.unit is Unit.SAMPLE and self._terms.terms[key.term].kind in {"counter", "level"} else key.unit
        )
        return self._intern(key.name, key.term, unit, key.cumulative, key.reason, key.part, key.side, key.stream, key.sure)

    def _intern(
        self, name: str, term: str, unit: Unit, cumulative: str, reason: str, part: bool, side: str, stream: str, sure: bool
    ) -> Key:
        given = (name, term, unit, cumulative, reason, part, side, stream, sure)
        found = self._interned.get(given)
        if found is None:
            found = self._interned[given] = Key(name, term, unit, cumulative, reason, part, side, stream, sure)
        return found

    def keyed(self, name: str, value: float, line: LineRule) -> list[tuple[Key, float]]:
        """What a key of the format gives for a value; empty when the format does not name it."""
        asked = (name, id(line))
        known = self._given.get(asked)
        if known is None:
            if len(self._given) > PLANS:
                self._given.clear()
            known = self._given[asked] = (line, tuple(self._keyed(name, 1.0, line)))
        return [(key, value * factor) for key, factor in known[1]]

    def _keyed(self, name: str, value: float, line: LineRule) -> list[tuple[Key, float]]:
        if self._mapped and (mapped := self._mapped.get(folded(name))):
            return [(self._own(mapped), value)]
        rule = self._form.keys.get(name) if self._form else None
        if rule is None:
            rule = next((r for pattern, r in self._wild if pattern.match(name)), None)
        if rule is None:
            measured = self._measured(name) if line.pairs or line is NO_LINE else None
            return [] if measured is None else [(measured, value)]
        return [(key, value * rule.factor) for key in self._from_rule(name, rule, line)]

    def _measured(self, name: str) -> Key | None:
        """A number that the format does not name, of a term that no key of the format gives, where it only measures and counts nothing."""
        form = self._form
        key = self._aliases.understand(name) if form is not None else None
        if form is None or key is None or key.term in form.gives or key.term in {rule.term for rule in form.keys.values()}:
            return None
        return self._own(key) if key.term in MEASURED and key.term not in self._mapped_terms else None

    def _from_rule(self, name: str, rule: KeyRule, line: LineRule) -> list[Key]:
        terms, form = self._terms.terms, self._form
        out = []
        for at, term in enumerate((rule.term, *rule.also)):
            kind = terms[term].kind
            counted = kind in {"counter", "level"}
            unit = (rule.unit or line.unit or self._unit or (form.unit if form else Unit.SAMPLE)) if counted else Unit.SAMPLE
            if term in {"update", "sample_call", "update_call", "zero_grad"}:
                unit = rule.unit or Unit.CALL
            counting = rule.cumulative or (
                form.cumulative if form and kind == "counter" else "yes" if kind in {"level", "axis"} else "detect"
            )
            part = rule.part or at > 0 or term == "dropped_other"
            side = rule.side or line.side or terms[term].side
            out.append(self._intern(name, term, unit, counting, rule.reason, part, side, rule.stream or line.stream, True))
        return out

    def counted(self, term: str, line: LineRule) -> Key:
        """The key of what a line's presence counts."""
        form = self._form
        unit = line.unit or (form.unit if form else Unit.SAMPLE)
        if term in {"update", "sample_call", "update_call", "zero_grad"}:
            unit = line.unit or Unit.CALL
        side = line.side or self._terms.terms[term].side
        return self._intern(line.anchor.strip(), term, unit, "no", line.reason, term == "dropped_other", side, line.stream, True)

    def _map(self, term: str, key: str) -> Key:
        found = self._aliases.mapped(term, key)
        if found is None:
            raise GyreError(
                f"--map {term}={key}: `{term}` is no term of the ledger",
                hint=did_you_mean(term, [*self._terms.terms, *self._aliases.rules.map_names])
                or "terms: " + ", ".join(dict.fromkeys([*self._aliases.rules.map_names, *self._terms.terms])),
            )
        return found
