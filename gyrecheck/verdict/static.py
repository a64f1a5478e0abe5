"""All static shapes over one program: suspects become findings, with the severity that code, topology and confidence allow.

Nothing is read here: the text of a line comes from `lines`. A finding known by name only is never above a note, nor is one in a test of
a program whose own files are checked with it: tests break rules to see what happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gyrecheck.model.finding import Confidence, Evidence, Finding, Severity, Topology, fingerprint
from gyrecheck.program.program import Program
from gyrecheck.program.topology import Layout
from gyrecheck.rulebook.codes import Code
from gyrecheck.verdict.shapes.suspect import Suspect, is_test
from gyrecheck.verdict.shapes.table import SHAPES

Lines = Callable[[str], Sequence[str]]


def judge(program: Program, layout: Layout, codes: dict[str, Code], lines: Lines) -> tuple[Finding, ...]:
    """Every finding of every shape, in order of place; codes that `codes` does not hold are left out."""
    found: dict[tuple[str, int, int, str], Finding] = {}
    own = any(not is_test(program.path(fn.number)) for fn in program.functions)
    for shape in SHAPES:
        for suspect in shape(program, layout):
            code = codes.get(suspect.code)
            if code is None:
                continue
            if own and is_test(program.path(suspect.function)):
                suspect = replace(suspect, at_most=Severity.NOTE)  # noqa: PLW2901 - the same suspect, held lower
            finding = _finding(program, layout, suspect, code, lines)
            if finding is not None:
                key = (finding.path, finding.line, finding.column, finding.code)
                if key not in found or found[key].severity.rank < finding.severity.rank:
                    found[key] = finding
    return tuple(sorted(found.values(), key=lambda f: (f.path, f.line, f.column, f.code)))


def severity_of(
    code: Code, topology: Topology, confidence: Confidence, at_most: Severity = Severity.ERROR, *, pure: bool = False
) -> Severity:
    """The code's severity in a topology, no higher than `at_most`, and a note when known by name only.

    Inside a pure side a colocated layout changes nothing, and a synchronous one lowers to a warning, never to silence.
    """
    level = code.severity_in(topology)
    if pure and topology is Topology.COLOCATED:
        level = code.severity
    if pure and level.rank < Severity.WARNING.rank:
        level = Severity.WARNING
    if confidence is Confidence.HINT and level.rank > Severity.NOTE.rank:
        level = Severity.NOTE
    return at_most if level.rank > at_most.rank else level


def _finding(program: Program, layout: Layout, suspect: Suspect, code: Code, lines: Lines) -> Finding | None:
    module = program.tree.functions[suspect.function].module
    level = severity_of(code, layout.of_module[module].topology, suspect.confidence, suspect.at_most, pure=suspect.pure)
    if level is Severity.OFF:
        return None
    path = program.path(suspect.function)
    text = lines(path)
    snippet = _line(text, suspect.line)
    return Finding(
        code=code.code,
        name=code.name,
        severity=level,
        message=suspect.message,
        path=path,
        line=suspect.line,
        column=_characters(snippet, suspect.column) + 1,
        end_line=suspect.end_line,
        end_column=_characters(_line(text, suspect.end_line), suspect.end_column) + 1 if suspect.end_line else 0,
        evidence=_evidence(suspect, path, lines),
        hint=suspect.hint,
        confidence=suspect.confidence,
        fingerprint=fingerprint(code.code, path, program.name(suspect.function), suspect.key),
        side=suspect.side,
        snippet=snippet,
    )


def _evidence(suspect: Suspect, path: str, lines: Lines) -> tuple[Evidence, ...]:
    """Each place once, its reason as label, its source line as text."""
    out: dict[tuple[str, int, str], Evidence] = {}
    for place in suspect.evidence:
        reason = place.text or place.label
        if place.path == path and place.line == suspect.line and place.label != "because":
            continue
        text = _line(lines(place.path), place.line)
        column = place.column or (len(text) - len(text.lstrip()) + 1)
        made = replace(place, text=text.rstrip(), label=reason, column=column, end_column=max(column + 1, len(text.rstrip()) + 1))
        out.setdefault((place.path, place.line, reason), made)
    return tuple(out.values())


def _line(text: Sequence[str], line: int) -> str:
    return text[line - 1].rstrip("\r\n") if 0 < line <= len(text) else ""


def _characters(text: str, offset: int) -> int:
    """A byte offset in UTF-8 as a count of characters."""
    return offset if text.isascii() else len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore"))
