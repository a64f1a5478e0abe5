"""Ignore comments, read from real comment tokens and bound to the whole statement they stand on, above or inside.

`# gyre: ignore[GYR203, GYR201] reason until=2027-01-31` hides findings of one statement: a logical line with all its physical lines, and
for a function or class its decorators and signature, never its body. On a line of its own it belongs to the statement right below it,
at the same indentation and with no blank line between. `# gyre: ignore-file[GYR301] reason` hides findings of the whole file.
Text in strings is never a comment. Nothing here needs a parser, so syntax newer than the running Python does no harm.
"""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass, field
from datetime import date

MARKER = b"gyre:"
"""A file without these bytes holds no ignore comment and need not be read."""

_COMMENT = re.compile(r"#\s*gyre:\s*(?P<word>[A-Za-z][\w-]*)\s*(?:\[(?P<codes>[^\]#]*)(?P<closed>\])?)?(?P<tail>[^#]*)")
_UNTIL = re.compile(r"(?:^|[\s(,;])until=(?P<day>[^\s),;]*)[),;]?")
_WORDS = ("ignore", "ignore-file")
_TRIVIA = {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
_UNREADABLE = (tokenize.TokenError, SyntaxError, UnicodeError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class Suppression:
    """One ignore comment. `first`..`last` are the physical lines of its statement; both 0 when it has none, or speaks for the file."""

    line: int
    column: int
    end_column: int
    codes: tuple[str, ...]
    reason: str
    until: date | None = None
    whole_file: bool = False
    first: int = 0
    last: int = 0
    problem: str = ""
    """Why the comment cannot be understood; such a comment hides nothing."""
    lead: int = 1
    """Column at which the white space before the comment begins; 1 when the comment has the line for itself."""
    alone: bool = True
    """Nothing else stands in the comment, so that it can be removed whole."""

    def covers(self, line: int) -> bool:
        """Whether a finding at `line` (0 = the whole file) lies in the statement, or the comment speaks for the file."""
        return self.whole_file or (line > 0 and self.first <= line <= self.last)


@dataclass(slots=True)
class _Statement:
    first: int = 0
    indent: int = -1
    decorated: bool = False
    open: bool = False
    inside: list[tokenize.TokenInfo] = field(default_factory=list)
    above: list[tokenize.TokenInfo] = field(default_factory=list)


def read_suppressions(source: bytes) -> tuple[Suppression, ...]:
    """All ignore comments of a Python file in order of lines; what follows a place where the tokenizer gives up is not read."""
    if MARKER not in source:
        return ()
    found: list[Suppression] = []
    now = _Statement()
    try:
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            now = _advance(now, token, found)
    except _UNREADABLE:
        pass
    found += [s for t in (*now.above, *now.inside) for s in _parse(t, 0, 0)]
    return tuple(sorted(found, key=lambda s: (s.line, s.column)))


def _advance(now: _Statement, token: tokenize.TokenInfo, found: list[Suppression]) -> _Statement:
    row, column = token.start
    if token.type == tokenize.COMMENT:
        if now.open or now.decorated:
            now.inside.append(token)
        else:
            if now.above and now.above[-1].start[0] != row - 1:
                found += [s for t in now.above for s in _parse(t, 0, 0)]
                now.above.clear()
            now.above.append(token)
    elif token.type == tokenize.NEWLINE:
        if now.decorated:
            now.open = False  # the decorators and what they decorate are one statement
            return now
        found += [s for t in now.inside for s in _parse(t, now.first, row)]
        return _Statement()
    elif token.type not in _TRIVIA and not now.open:
        now.open = True
        if not now.first:
            now.first, now.indent = row, column
            bound = bool(now.above) and now.above[-1].start[0] == row - 1
            kept = [t for t in now.above if bound and t.start[1] == column]
            found += [s for t in now.above if t not in kept for s in _parse(t, 0, 0)]
            now.inside, now.above = kept, []
        now.decorated = token.string == "@"
    return now


def _parse(token: tokenize.TokenInfo, first: int, last: int) -> list[Suppression]:
    """The ignore comments within one comment token; words that are not ours are left alone unless they look like a slip."""
    found = []
    row, start = token.start
    before = token.line[:start] if token.line[start : start + 1] == "#" else "?"
    for match in _COMMENT.finditer(token.string):
        word = match["word"]
        if word not in _WORDS and not (word.lower().startswith("ign") or match["codes"] is not None):
            continue
        codes = tuple(c.strip() for c in (match["codes"] or "").split(",") if c.strip())
        tail, until, problem = match["tail"].strip(), None, ""
        if day := _UNTIL.search(tail):
            tail = (tail[: day.start()].rstrip() + " " + tail[day.end() :].lstrip()).strip()
            try:
                until = date.fromisoformat(day["day"])
            except ValueError:
                problem = f"`until={day['day']}` is no date, expected until=YYYY-MM-DD"
        if word not in _WORDS:
            problem = f"`gyre: {word}` is not understood, expected ignore[CODE] or ignore-file[CODE]"
        elif match["codes"] is not None and not match["closed"]:
            problem = "the bracket after `ignore` is not closed"
        elif not codes:
            problem = f"`{word}` names no code, expected {word}[CODE] and a reason"
        whole_file = word == "ignore-file"
        column = start + match.start() + 1
        whole = match.end() - match.start() == len(token.string)
        found.append(
            Suppression(
                line=row,
                column=column,
                end_column=start + len(token.string[: match.end()].rstrip()) + 1,
                codes=codes,
                reason=tail.strip(" \t:-,;"),
                until=until,
                whole_file=whole_file,
                first=0 if whole_file else first,
                last=0 if whole_file else last,
                problem=problem,
                lead=len(before.rstrip()) + 1 if before != "?" else column,
                alone=whole and before != "?",
            )
        )
    return found
