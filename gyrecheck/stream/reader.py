"""A format, ready to read lines: which literals to look for, and what a line's body gives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from gyrecheck.model.events import Key, Unit
from gyrecheck.rulebook.aliases import Aliases, load_aliases
from gyrecheck.rulebook.log_formats import LineRule, LogFormat, load_terms
from gyrecheck.stream.cells import NO_DIGITS, bounded, boxed, flattened
from gyrecheck.stream.format_keys import NO_LINE, PLANS, FormatKeys
from gyrecheck.stream.line_marks import WORDS, LineMarks
from gyrecheck.stream.phrases import Plan, plan
from gyrecheck.stream.probe import Caution
from gyrecheck.stream.spelling import NUMBER, number, numbers, prepared
from gyrecheck.stream.strip import ANSI

Values = tuple[tuple[Key, float], ...]
_PAIR = re.compile(
    r"([A-Za-z_][\w./@\-]*)['\"]?\s*[=:]\s*['\"]?(?:(?:np\.|numpy\.|torch\.)?[a-z]+\d*\(\[?)?\s*([-+]?(?:0[xX][\da-fA-F]+|\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf|NaN))(?![\w.]*\w)"
)
_FIGURES = b"0123456789"
_GAPS = re.compile(r"\s{2,}")
_CLOCKS = re.compile(r"time|timestamp|date|clock|ts|when|wall.?clock|wall.?time")
_NOTHING = frozenset(("", "-", "--", "n/a", "na", "none", "null"))


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
        self._keys = FormatKeys(form, mapping=mapping, unit=unit, aliases=self._aliases)
        self._mapped = bool(mapping)
        self._rules = tuple(_Line(rule, self._keys) for rule in (form.lines if form else ()))
        self._plans: dict[str, Plan] = {}
        self._rule_anchors = tuple(r.rule.anchor.encode() for r in self._rules)
        critical = {b"[repeated ", b"restart", b"Restart", b"resum", b"Resum"}
        self.anchors = tuple(critical | {r.rule.anchor.encode() for r in self._rules} | {key.encode() for _, key in mapping})
        self.shapely = not any(anchor != anchor.translate(None, _FIGURES) for anchor in self.anchors)
        """Whether anchors are the same for all lines that differ only in digits."""
        self.caution = self._cautious(self._mapped)
        self._marks = LineMarks(self.caution)
        self.header: list[Key | None] | None = None
        self._headers: tuple[tuple[list[Key | None], Callable[[str], list[str]]], ...] = ()
        self._first_cell = ""

    def _cautious(self, mapped: bool) -> Caution:
        """What must be known before lines of one shape may be read alike."""
        patterns = [(rule.anchors, pattern) for rule in load_terms().marks.values() for pattern in rule.patterns]
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
        words = set(WORDS.findall(low))
        if b"[repeated " in low or self._marks.find(line.decode("utf-8", "replace"), words):
            return True
        if low.translate(None, _FIGURES) == low and not any(c in low for c in (b",", b"|", b"\t", b"  ")) and not _named(low):
            return False  # no number, and no header of a table
        known = self._aliases
        if any(one <= words for word in words & known.needed.keys() for one in known.needed[word]):
            return True
        if any(all(not part.isdisjoint(words) for part in need) for need in known.kindred):
            return True
        return not words.isdisjoint(known.loose) and not words.isdisjoint(known.nouns)

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
        found = self._marks.of(text)
        if len(out) > 1:
            once: dict[int, tuple[Key, float]] = {}
            for item in out:
                once.setdefault(id(item[0]), item)
            out = list(once.values())
        return tuple(out), (*marks, *(name for name in found if name not in marks)) if found else tuple(marks), side

    def _generic(self, text: str, taken: set[str], claimed: bool) -> list[tuple[Key, float]]:
        if claimed and not any(rule.rule.pairs and rule.rule.anchor in text for rule in self._rules):
            return []
        line = prepared(text)
        first = line.lstrip()[:1]
        barred = first in {"|", "│", "┃"}
        pairs = boxed(line) if barred else line
        if barred and pairs != line:
            line = pairs
        elif (rows := self._table(line.strip(" |│┃") if barred else line)) is not None:
            return rows
        figures = numbers(line)
        shape = "\0".join(NUMBER.split(line)).translate(NO_DIGITS)  # where the numbers stand is part of it
        found = self._plans.get(shape)
        if found is None:
            if len(self._plans) > PLANS:
                self._plans.clear()
            found = self._plans[shape] = plan(line, self._keys.look)
        return [(key, figures[at] * factor) for at, key, factor in found if key.name not in taken]

    def _json(self, text: str) -> list[tuple[Key, float]]:
        try:
            value = json.JSONDecoder().raw_decode(text)[0]
        except ValueError:
            return [item for name, figure in _PAIR.findall(text) for item in self._keys.keyed(name, number(figure), NO_LINE)]
        return [item for name, figure in flattened(value, "") for item in self._keys.keyed(name, figure, NO_LINE)]

    def _box(self, text: str) -> list[tuple[Key, float]]:
        cells = [cell.strip() for cell in re.split(r"[|│┃]", text)]
        out = []
        for name, cell in pairwise(cells):
            if name and NUMBER.fullmatch(cell):
                out.extend(self._keys.keyed(name, number(cell), NO_LINE))
        return out

    def _table(self, line: str) -> list[tuple[Key, float]] | None:
        """Rows under a header of names (CSV, bars or columns): None when the line is neither header nor row."""
        if self.header is None and any(c in line for c in "0123456789:="):
            return None
        if not any(c in line for c in _FIGURES.decode()):
            self._heads(line)
            return None
        for header, cut in self._headers:
            cells = cut(line)
            if len(cells) == len(header) - 1 and _CLOCKS.fullmatch(self._first_cell):
                header = header[1:]  # noqa: PLW2901 - the time was taken off with the line's dress
            if len(cells) == len(header) and sum(NUMBER.fullmatch(cell) is not None for cell in cells) >= 2 and _all_told(header, cells):
                known = zip(header, cells, strict=True)
                return [(key, number(cell)) for key, cell in known if key is not None and NUMBER.fullmatch(cell)]
        return None

    def _heads(self, line: str) -> None:
        """Take a line of names as a header, cut as its rows may be cut: which way is right is seen from the rows."""
        if ":" in line or "=" in line:
            return
        kind = next((c for c in "|│┃,\t" if c in line), "")
        found: list[tuple[list[Key | None], Callable[[str], list[str]]]] = []
        for cut in _cuts(kind):
            cells = cut(line)
            if not 3 <= len(cells) <= 60 or any(len(cells) == len(header) for header, _ in found):
                continue
            keys = [self._keys.look(cell, "", False) if len(cell) < 40 else None for cell in cells]
            known = sum(key is not None for key in keys)
            prose = not kind and "  " not in line.strip()  # single spaces: a sentence holds known words, too
            if known >= (0.6 * len(cells) if prose else max(2, len(cells) // 3)):
                found.append((keys, cut))
                self._first_cell = cells[0].lower()
        if found:
            self._headers, self.header = tuple(found), found[0][0]


def _named(low: bytes) -> bool:
    """Whether a line is names and single spaces, nothing else."""
    return low.count(b" ") >= 2 and low.translate(None, b" _/\r\n").isalpha()


def _cuts(kind: str) -> tuple[Callable[[str], list[str]], ...]:
    """The ways in which a table's lines may be cut into cells; bars and commas are certain, spaces are not."""
    if kind:
        return (lambda line: [cell.strip() for cell in line.strip(" |│┃" if kind in "|│┃" else " ").split(kind)],)
    return (lambda line: [cell for cell in _GAPS.split(line.strip()) if cell], str.split)


def _all_told(header: Sequence[Key | None], cells: list[str]) -> bool:
    """Whether each cell under a known name is a number, or says that there is none."""
    return all(key is None or NUMBER.fullmatch(cell) or cell.lower() in _NOTHING for key, cell in zip(header, cells, strict=True))


class _Line:
    """One line rule, compiled."""

    __slots__ = ("_counts", "_keys", "_pattern", "rule")

    def __init__(self, rule: LineRule, keys: FormatKeys) -> None:
        self.rule, self._keys = rule, keys
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
                    out.extend(self._keys.keyed(name, number(spelled.strip()), self.rule))
        elif not bounded(text, self.rule.anchor):
            return None
        if self.rule.pairs:
            for name, spelled in _PAIR.findall(text):
                out.extend(self._keys.keyed(name, number(spelled), self.rule))
        if self.rule.count:
            if self._counts is None:
                self._counts = [(self._keys.counted(term, self.rule), value) for term, value in self.rule.count.items()]
            out.extend(self._counts)
        return out
