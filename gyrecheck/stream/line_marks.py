"""The marks that a line of text sets: restarts, holds, ends and the like, found by their words and then by their patterns."""

from __future__ import annotations

import re
from functools import cache

from gyrecheck.rulebook.log_formats import load_terms
from gyrecheck.stream.cells import NO_DIGITS, head_of
from gyrecheck.stream.format_keys import PLANS
from gyrecheck.stream.probe import Caution

WORDS = re.compile(rb"[a-z]+")


@cache
def _ignoring_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)  # when a line first holds its words: a start must not pay for all marks


class LineMarks:
    """Finds the marks of texts, once for all texts that differ only in digits."""

    def __init__(self, caution: Caution) -> None:
        self._caution = caution
        self._marks = tuple(
            (name, rule.anchors, rule.patterns, frozenset(head_of(a) for a in rule.anchors)) for name, rule in load_terms().marks.items()
        )
        self._mark_heads = frozenset(head for *_, own in self._marks for head in own)
        self._marked: dict[str, tuple[str, ...]] = {}

    def of(self, text: str) -> tuple[str, ...]:
        """The marks of a text, found once for all that differ only in digits, unless a digit decides (`version=-1`)."""
        if self._caution.refuses(text):
            return self.find(text)
        shape = text.translate(NO_DIGITS)
        found = self._marked.get(shape)
        if found is None:
            if len(self._marked) > PLANS:
                self._marked.clear()
            found = self._marked[shape] = self.find(text)
        return found

    def find(self, text: str, words: set[bytes] | None = None) -> tuple[str, ...]:
        """The marks of a text; `words` are its words in lower case, where they are known already."""
        low = text.lower()
        heads = {word[:4] for word in (WORDS.findall(low.encode("utf-8", "replace")) if words is None else words)}
        if self._mark_heads.isdisjoint(heads):
            return ()
        return tuple(
            name
            for name, anchors, patterns, own in self._marks
            if not own.isdisjoint(heads) and any(a in low for a in anchors) and any(_ignoring_case(p).search(text) for p in patterns)
        )
