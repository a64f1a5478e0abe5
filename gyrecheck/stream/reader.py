"""A format, ready to read lines: which literals to look for, and what a line's body gives."""

from __future__ import annotations

import json
import re
from fnmatch import translate
from functools import cache
from itertools import pairwise
from pathlib import Path

from gyrecheck.model.errors import GyreError, did_you_mean
from gyrecheck.model.events import Key, Unit
from gyrecheck.rulebook.aliases import Aliases, load_aliases
from gyrecheck.rulebook.log_formats import KeyRule, LineRule, LogFormat, load_terms
from gyrecheck.stream.cells import NO_DIGITS, bounded, boxed, flattened, folded, head_of
from gyrecheck.stream.phrases import NUMBER, Plan, number, numbers, plan, prepared
from gyrecheck.stream.probe import Caution
from gyrecheck.stream.strip import ANSI

Values = tuple[tuple[Key, float], ...]
_PAIR = re.compile(
    r"([A-Za-z_][\w./@\-]*)['\"]?\s*[=:]\s*['\"]?(?:(?:np\.|numpy\.|torch\.)?[a-z]+\d*\(\[?)?\s*([-+]?(?:0[xX][\da-fA-F]+|\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf|NaN))(?![\w.]*\w)"
)
_WORDS = re.compile(rb"[a-z]+")
_FIGURES = b"0123456789"
_CELLS = re.compile(r"\s*[|│┃,\t]\s*|\s{2,}")
_PLANS = 20000
_NO_LINE = LineRule("")


@cache
def _ignoring_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)  # when a line first holds its words: a start must not pay for all marks


class FormatReader:
    """What a format makes of lines. `open` readers look at every line, closed ones at lines that hold one of `anchors`."""

    def __init__(
        self,
        form: LogFormat | None,
        *,
        mapping: tuple[tuple[str, str], ...] = (),
        unit: Unit | None = None,
        extra: Path | None = None,
        whole_last_line: bool = False,
    ) -> None:
        self.form, self.unit, self.whole_last_line = form, unit, whole_last_line
        self.open = form is None or form.open
        self.side = form.side if form else ""
        self._aliases: Aliases = load_aliases(extra)
        self._terms = load_terms()
        self._mapped = {folded(key): self._map(term, key) for term, key in mapping}
        self._mapped_terms = {key.term for key in self._mapped.values()}
        self._rules = tuple(_Line(rule, self) for rule in (form.lines if form else ()))
        self._keys: dict[str, tuple[Key, ...]] = {}
        self._wild = tuple((re.compile(translate(name)), rule) for name, rule in (form.keys if form else {}).items() if "*" in name)
        self._known: dict[str, tuple[tuple[Key, float], ...]] = {}
        self._plans: dict[str, Plan] = {}
        self._marks = tuple(
            (name, rule.anchors, rule.patterns, frozenset(head_of(a) for a in rule.anchors)) for name, rule in self._terms.marks.items()
        )
        self._mark_heads = frozenset(head for *_, own in self._marks for head in own)
        self._marked: dict[str, tuple[str, ...]] = {}
        self._needed = {
            word.encode(): tuple(frozenset(w.encode() for w in one) for one in sets) for word, sets in self._aliases.needed.items()
        }
        self._loose = frozenset(word.encode() for word in self._aliases.loose_words)
        self._nouns = frozenset(word.encode() for word in self._aliases.rules.nouns)
        self._given: dict[tuple[str, int], tuple[LineRule, tuple[tuple[Key, float], ...]]] = {}
        self._looked: dict[tuple[str, str, bool], Key | None] = {}
        self._rule_anchors = tuple(r.rule.anchor.encode() for r in self._rules)
        critical = {b"[repeated ", b"restart", b"Restart", b"resum", b"Resum"}
        self.anchors = tuple(critical | {r.rule.anchor.encode() for r in self._rules} | {key.encode() for _, key in mapping})
        self.shapely = not any(anchor != anchor.translate(None, _FIGURES) for anchor in self.anchors)
        """Whether anchors are the same for all lines that differ only in digits."""
        self.caution = self._cautious(bool(mapping))
        self.header: list[Key | None] | None = None
        self._interned: dict[tuple[object, ...], Key] = {}

    def _map(self, term: str, key: str) -> Key:
        found = self._aliases.mapped(term, key)
        if found is None:
            raise GyreError(
                f"--map {term}={key}: `{term}` is no term of the ledger",
                hint=did_you_mean(term, [*self._terms.terms, *self._aliases.rules.map_names]) or "terms: " + ", ".join(self._terms.terms),
            )
        return found

    def _cautious(self, mapped: bool) -> Caution:
        """What must be known before lines of one shape may be read alike."""
        patterns = [(rule.anchors, pattern) for rule in self._terms.marks.values() for pattern in rule.patterns]
        patterns += [
            ((one.rule.anchor.lower(),), pattern) for one in self._rules for pattern in (one.rule.pattern, re.escape(one.rule.anchor))
        ]
        keys = self.form.keys if self.form else {}
        glued = self.open or mapped or any("*" in name or any(c.isdigit() for c in name) for name in keys)
        return Caution(tuple(patterns), {rule.factor for rule in keys.values()}, glued=glued)

    def worth_a_look(self, line: bytes) -> bool:
        """Whether a line of this shape could give anything; may say yes in vain, never no."""
        if b"\x1b" in line or b"^[[" in line:
            line = ANSI.sub(b"", line)
        if self.header is not None or self._mapped or any(anchor in line for anchor in self._rule_anchors):
            return True
        low = line.lower()
        if low[:1] == b"(" and (end := low.find(b")", 0, 120)) > 0 and b"[repeated " not in low:
            low = low[end + 1 :]  # an actor's name is no counter's
        words = set(_WORDS.findall(low))
        if b"[repeated " in low or self._find_marks(line.decode("utf-8", "replace"), words):
            return True
        if low.translate(None, _FIGURES) == low and not any(c in low for c in (b",", b"|", b"\t", b"  ")):
            return False  # no number, and no header of a table
        if any(one <= words for word in words & self._needed.keys() for one in self._needed[word]):
            return True
        return not words.isdisjoint(self._loose) and not words.isdisjoint(self._nouns)

    def read(self, body: bytes) -> tuple[Values, tuple[str, ...], str]:
        """Values, marks and the side of a line's body."""
        text = body.decode("utf-8", "replace")
        out: list[tuple[Key, float]] = []
        marks: list[str] = []
        side, claimed = "", False
        for rule in self._rules:
            if rule.rule.anchor in text:
                got = rule.read(text)
                if got is not None:
                    out.extend(got)
                    side = side or rule.rule.side
                    claimed = claimed or bool(got)
                    if rule.rule.mark:
                        marks.append(rule.rule.mark)
        if self.form and "json" in self.form.reads and (brace := text.find("{")) >= 0:
            out.extend(self._json(text[brace:]))
        if self.form and "box" in self.form.reads and text.lstrip()[:1] in "|│┃":
            out.extend(self._box(text))
        if self.open:
            out.extend(self._generic(text, {key.name for key, _ in out}, claimed))
        found = self._marks_of(text)
        if len(out) > 1:
            once: dict[int, tuple[Key, float]] = {}
            for item in out:
                once.setdefault(id(item[0]), item)
            out = list(once.values())
        return tuple(out), (*marks, *(name for name in found if name not in marks)) if found else tuple(marks), side

    def _marks_of(self, text: str) -> tuple[str, ...]:
        """The marks of a text, found once for all that differ only in digits, unless a digit decides (`version=-1`)."""
        if self.caution.refuses(text):
            return self._find_marks(text)
        shape = text.translate(NO_DIGITS)
        found = self._marked.get(shape)
        if found is None:
            if len(self._marked) > _PLANS:
                self._marked.clear()
            found = self._marked[shape] = self._find_marks(text)
        return found

    def _find_marks(self, text: str, words: set[bytes] | None = None) -> tuple[str, ...]:
        low = text.lower()
        heads = {word[:4] for word in (_WORDS.findall(low.encode("utf-8", "replace")) if words is None else words)}
        if self._mark_heads.isdisjoint(heads):
            return ()
        return tuple(
            name
            for name, anchors, patterns, own in self._marks
            if not own.isdisjoint(heads) and any(a in low for a in anchors) and any(_ignoring_case(p).search(text) for p in patterns)
        )

    def _generic(self, text: str, taken: set[str], claimed: bool) -> list[tuple[Key, float]]:
        if claimed and not any(rule.rule.pairs and rule.rule.anchor in text for rule in self._rules):
            return []
        line = prepared(text)
        first = line.lstrip()[:1]
        if first in {"|", "│", "┃"}:
            line = boxed(line)
        elif (rows := self._table(line)) is not None:
            return rows
        figures = numbers(line)
        shape = "\0".join(NUMBER.split(line)).translate(NO_DIGITS)  # where the numbers stand is part of it
        found = self._plans.get(shape)
        if found is None:
            if len(self._plans) > _PLANS:
                self._plans.clear()
            found = self._plans[shape] = plan(line, self.look)
        return [(key, figures[at] * factor) for at, key, factor in found if key.name not in taken]

    def look(self, name: str, noun: str, config: bool) -> Key | None:
        """A generic name, with the user's mapping and the format's own keys before the alias table."""
        asked = (name, noun, config)
        if asked in self._looked:
            return self._looked[asked]
        if len(self._looked) > _PLANS:
            self._looked.clear()
        found = self._looked[asked] = self._look(name, noun, config)
        return found

    def _look(self, name: str, noun: str, config: bool) -> Key | None:
        if self._mapped and (mapped := self._mapped.get(folded(name))):
            return self._own(mapped)
        if self.form and (rule := self.form.keys.get(name)):
            return self._from_rule(name, rule, _NO_LINE)[0]
        key = self._aliases.understand(name, noun, config)
        if key is None or key.term in self._mapped_terms:
            return None
        return self._own(key)

    def _own(self, key: Key) -> Key:
        unit = self.unit if self.unit and key.unit is Unit.SAMPLE and self._terms.terms[key.term].kind in {"counter", "level"} else key.unit
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
            if len(self._given) > _PLANS:
                self._given.clear()
            known = self._given[asked] = (line, tuple(self._keyed(name, 1.0, line)))
        return [(key, value * factor) for key, factor in known[1]]

    def _keyed(self, name: str, value: float, line: LineRule) -> list[tuple[Key, float]]:
        if self._mapped and (mapped := self._mapped.get(folded(name))):
            return [(self._own(mapped), value)]
        rule = self.form.keys.get(name) if self.form else None
        if rule is None:
            rule = next((r for pattern, r in self._wild if pattern.match(name)), None)
        if rule is None:
            return []
        return [(key, value * rule.factor) for key in self._from_rule(name, rule, line)]

    def _from_rule(self, name: str, rule: KeyRule, line: LineRule) -> list[Key]:
        terms, form = self._terms.terms, self.form
        out = []
        for at, term in enumerate((rule.term, *rule.also)):
            kind = terms[term].kind
            counted = kind in {"counter", "level"}
            unit = (rule.unit or line.unit or self.unit or (form.unit if form else Unit.SAMPLE)) if counted else Unit.SAMPLE
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
        form = self.form
        unit = line.unit or (form.unit if form else Unit.SAMPLE)
        if term in {"update", "sample_call", "update_call", "zero_grad"}:
            unit = line.unit or Unit.CALL
        side = line.side or self._terms.terms[term].side
        return self._intern(line.anchor.strip(), term, unit, "no", line.reason, term == "dropped_other", side, line.stream, True)

    def _json(self, text: str) -> list[tuple[Key, float]]:
        try:
            value = json.JSONDecoder().raw_decode(text)[0]
        except ValueError:
            return [item for name, figure in _PAIR.findall(text) for item in self.keyed(name, number(figure), _NO_LINE)]
        return [item for name, figure in flattened(value, "") for item in self.keyed(name, figure, _NO_LINE)]

    def _box(self, text: str) -> list[tuple[Key, float]]:
        cells = [cell.strip() for cell in re.split(r"[|│┃]", text)]
        out = []
        for name, cell in pairwise(cells):
            if name and NUMBER.fullmatch(cell):
                out.extend(self.keyed(name, number(cell), _NO_LINE))
        return out

    def _table(self, line: str) -> list[tuple[Key, float]] | None:
        """Rows under a header of names (CSV or columns): None when the line is neither header nor row."""
        if self.header is None and any(c in line for c in "0123456789:="):
            return None
        cells = [cell for cell in _CELLS.split(line.strip()) if cell]
        if len(cells) < 3 and self.header is None:
            cells = line.split()
        figures = [NUMBER.fullmatch(cell) for cell in cells]
        if not any(figures) and 3 <= len(cells) <= 60 and ":" not in line and "=" not in line:
            keys = [self.look(cell, "", False) if len(cell) < 40 else None for cell in cells]
            if sum(key is not None for key in keys) >= max(2, len(cells) // 3):
                self.header = keys
            return None
        header = self.header
        if header is None or not all(figures):
            return None
        if len(cells) != len(header):
            cells = line.split()
            if len(cells) != len(header) or not all(NUMBER.fullmatch(cell) for cell in cells):
                return None
        return [(key, number(cell)) for key, cell in zip(header, cells, strict=True) if key is not None]


class _Line:
    """One line rule, compiled."""

    __slots__ = ("_counts", "_keys", "_names", "_pattern", "_reader", "rule")

    def __init__(self, rule: LineRule, reader: FormatReader) -> None:
        self.rule, self._reader = rule, reader
        self._pattern = re.compile(rule.pattern) if rule.pattern else None
        self._counts: list[tuple[Key, float]] | None = None

    def read(self, text: str) -> list[tuple[Key, float]] | None:
        """The line's values; None when the line only looks like one of this kind."""
        out: list[tuple[Key, float]] = []
        if self._pattern is not None:
            found = self._pattern.search(text)
            if found is None:
                return None
            for name, spelled in found.groupdict().items():
                if spelled is not None and NUMBER.fullmatch(spelled.strip()):
                    out.extend(self._reader.keyed(name, number(spelled.strip()), self.rule))
        elif not bounded(text, self.rule.anchor):
            return None
        if self.rule.pairs:
            for name, spelled in _PAIR.findall(text):
                out.extend(self._reader.keyed(name, number(spelled), self.rule))
        if self.rule.count:
            if self._counts is None:
                self._counts = [(self._reader.counted(term, self.rule), value) for term, value in self.rule.count.items()]
            out.extend(self._counts)
        return out
