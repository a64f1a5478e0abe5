"""Fixes of imports: remove a name that the file does not use, or take a used one from the module that defines it.

Removing is safe unless the import may be there for its effect: in a package's `__init__`, with a comment beside it, or a plain import in
a file that uses another import of the same kind. In a try statement nothing is removed. Taking a name from elsewhere skips the module
between, with whatever it does when imported, and is never safe.
"""

from __future__ import annotations

from collections.abc import Sequence

from gyrecheck.model.finding import Finding
from gyrecheck.model.fix import Fix, Replacement
from gyrecheck.source.file_text import FileText
from gyrecheck.source.places import AliasPlace, ImportPlace, Span


def import_fix(file: FileText, finding: Finding, wanted: Sequence[Finding]) -> Fix | None:
    """What mends one import finding: removal when the file does not use the name, else the module that defines it; None when neither fits.

    `wanted` are all import findings of the file.
    """
    place = next((p for p in file.places.imports if p.statement.span.holds(finding.line) and _fits(p.statement.span, finding)), None)
    if place is None or place.star:
        return None
    aliases = _named(place, finding)
    idle = [a for a in aliases if not file.places.uses(a.bound) and a.bound not in file.context.exported and a.bound != "annotations"]
    if idle and not place.statement.guarded and len(idle) == len(aliases):
        return _drop(file, place, idle, [f.line for f in wanted if f is not finding])
    return _repoint(file, place, aliases)


def _fits(span: Span, finding: Finding) -> bool:
    """Two imports may share a line; a finding without a column fits the first."""
    at = (finding.line, finding.column)
    return not finding.column or (span.line, span.column) <= at < (span.end_line, span.end_column)


def _named(place: ImportPlace, finding: Finding) -> list[AliasPlace]:
    """The alias at the finding's column, else those on its line, else all of the statement."""
    here = [a for a in place.aliases if a.span.line == finding.line and a.span.column == finding.column]
    on_line = [a for a in place.aliases if a.span.holds(finding.line)]
    start = place.statement.span
    whole = (finding.line, finding.column) == (start.line, start.column)
    return here or (list(place.aliases) if whole or not on_line else on_line)


def _drop(file: FileText, place: ImportPlace, idle: Sequence[AliasPlace], imports: Sequence[int]) -> Fix | None:
    span = place.statement.span
    commented = "#" in file.between(span.line, 1, span.end_line + 1, 1)
    others_used = any(
        p is not place and any(file.places.uses(a.bound) for a in p.aliases)
        for p in file.places.imports
        if any(p.statement.span.holds(line) for line in imports)
    )
    # a plain import may be there for what it registers; so may one that somebody commented
    safe = not (commented or file.context.package or file.path.endswith("__init__.py") or (not place.module and others_used))
    cut = _drop_statement(file, place) if len(idle) == len(place.aliases) else _drop_alias(file, place, idle)
    if cut is None:
        return None
    return Fix(f"remove the unused import of {', '.join(a.name for a in idle)}", safe=safe, replacements=cut)


def _drop_statement(file: FileText, place: ImportPlace) -> tuple[Replacement, ...]:
    s = place.statement
    if s.sole:
        return (Replacement(s.span.line, s.span.column, s.span.end_line, s.span.end_column, "pass"),)
    if s.own_line:
        lines = len(file.lines)
        end = (s.span.end_line + 1, 1) if s.span.end_line < lines else (s.span.end_line, s.span.end_column)
        return (Replacement(s.span.line, 1, *end, ""),)
    if s.after is not None:
        return (Replacement(s.span.line, s.span.column, s.after.line, s.after.column, ""),)
    before = s.before or s.span
    return (Replacement(before.end_line, before.end_column, s.span.end_line, s.span.end_column, ""),)


def _drop_alias(file: FileText, place: ImportPlace, idle: Sequence[AliasPlace]) -> tuple[Replacement, ...] | None:
    kept = [a for a in place.aliases if a not in idle]
    cuts = []
    for alias in idle:
        at = place.aliases.index(alias)
        follower = next((a for a in place.aliases[at + 1 :]), None)
        if follower is not None:
            cut = Replacement(alias.span.line, alias.span.column, follower.span.line, follower.span.column, "")
        else:
            last = kept[-1].span
            cut = Replacement(last.end_line, last.end_column, alias.span.end_line, alias.span.end_column, "")
        if "#" in file.between(cut.line, cut.column, cut.end_line, cut.end_column):
            return None  # a comment would go with it
        cuts.append(cut)
    trailing = cuts[-1]
    return tuple(c for c in cuts if c is trailing or (c.end_line, c.end_column) <= (trailing.line, trailing.column))


def _repoint(file: FileText, place: ImportPlace, aliases: Sequence[AliasPlace]) -> Fix | None:
    if not place.module or place.module_span is None or len(aliases) != 1:
        return None
    alias = aliases[0]
    origin = file.context.origins.get(f"{file.context.absolute(place.module)}.{alias.name}")
    if origin is None:
        return None
    module, _, name = origin.rpartition(".")
    written = file.context.written(module, relative=place.module.startswith("."))
    listed = name if name == alias.bound else f"{name} as {alias.bound}"
    title = f"import {name} from {module}, where it is defined"
    if len(place.aliases) == 1:
        at = place.module_span
        cuts = [Replacement(at.line, at.column, at.end_line, at.end_column, written)]
        if name != alias.name:
            cuts.append(Replacement(alias.span.line, alias.span.column, alias.span.end_line, alias.span.end_column, listed))
        return Fix(title, safe=False, replacements=tuple(cuts))
    cut = _drop_alias(file, place, [alias])
    if cut is None or not place.statement.own_line:
        return None
    span = place.statement.span
    new = f"from {written} import {listed}{file.newline}{file.indent(span.line, span.column)}"
    return Fix(title, safe=False, replacements=(Replacement(span.line, span.column, span.line, span.column, new), *cut))
