"""Fixes: what to replace in a file so that a finding goes away, exact to the character, and the bytes outside left as they are.

Safe fixes change no value that the program computes: a guard on a function that only samples, an import that nobody uses. Unsafe ones
say so and wait to be asked for. Places come from libcst; the edit itself is made on the text, so line ends, tabs, BOM, comments and the
coding cookie stay as they were. A file whose text does not survive decoding, or that no longer parses after the edit, is not touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gyrecheck.model.finding import Finding
from gyrecheck.model.fix import Fix, Replacement
from gyrecheck.rulebook.fix_forms import FixForm, load_fix_forms
from gyrecheck.source.file_text import FileContext, FileText
from gyrecheck.source.import_edits import import_fix
from gyrecheck.source.places import CallPlace, FunctionPlace
from gyrecheck.source.text_edit import decode


def plan_fixes(path: str, source: bytes, findings: Sequence[Finding], context: FileContext | None = None) -> tuple[Finding, ...]:
    """The findings of one file, each with the fixes that fit it; all unchanged when none of them has a form of mending.

    libcst is imported only when a code in `rules/fixes.toml` is among the findings that are neither hidden nor baselined.
    """
    forms = load_fix_forms()
    wanted = [f for f in findings if f.code in forms and not f.suppressed and not f.baselined and f.path == path and f.line]
    if not wanted or (text := decode(source)) is None:
        return tuple(findings)
    from gyrecheck.source.concrete import UNREADABLE, read_concrete

    try:
        places = read_concrete(text)
    except UNREADABLE:
        return tuple(findings)
    file = FileText(path, text, places, context or FileContext(), tuple(text.split("\n")))
    return tuple(replace(f, fixes=(*f.fixes, *_fixes(file, f, forms[f.code], wanted))) if f in wanted else f for f in findings)


def _fixes(file: FileText, finding: Finding, form: FixForm, wanted: Sequence[Finding]) -> tuple[Fix, ...]:
    if form.form == "decorate":
        fix = _decorate(file, finding, form)
    elif form.form == "insert-call":
        fix = _insert_call(file, finding, form)
    else:
        fix = import_fix(file, finding, [f for f in wanted if load_fix_forms()[f.code].form == form.form])
    return (fix,) if fix is not None else ()


def _decorate(file: FileText, finding: Finding, form: FixForm) -> Fix | None:
    own = file.places.enclosing(finding.line)
    along = [file.places.enclosing(e.line) for e in finding.evidence if e.path == file.path and e.line]
    pure = [f for f in (own, *along) if f is not None and f.qualname in file.context.samplers]
    function = pure[0] if pure else own
    if function is None or function.asynchronous or function.calls & set(form.refused_when):
        return None  # on a coroutine function the guard would end before the body runs
    if any(form.name in d for d in function.decorators):
        return None
    prefix, bring = _module_name(file, form, function)
    place = function.span
    call = f"@{prefix}()"
    put = Replacement(place.line, place.column, place.line, place.column, f"{call}{file.newline}{file.indent(place.line, place.column)}")
    title = f"put {call} on {function.qualname.rpartition('.')[2]}"
    return Fix(title, safe=bool(pure) and not function.yields, replacements=(*bring, put))


def _module_name(file: FileText, form: FixForm, function: FunctionPlace) -> tuple[str, tuple[Replacement, ...]]:
    """How the file calls the guard before the function, and the import to add when it cannot."""
    for place in file.places.imports:
        if place.statement.depth or place.statement.guarded or place.statement.span.line > function.span.line:
            continue
        for alias in place.aliases:
            if not place.module and (
                alias.name == form.module or (alias.bound == form.module and alias.name.startswith(f"{form.module}."))
            ):
                return f"{alias.bound}.{form.name}", ()
            if place.module == form.module and alias.name == form.name:
                return alias.bound, ()
    line = _import_line(file, function)
    new = Replacement(line, 1, line, 1, f"import {form.module}{file.newline}")
    return f"{form.module}.{form.name}", (new,)


def _import_line(file: FileText, function: FunctionPlace) -> int:
    """The line below the last import at the top of the file, the docstring, or the first statement itself."""
    top = [p.statement.span for p in file.places.imports if not p.statement.depth and not p.statement.guarded]
    ends = [s.end_line for s in top if s.end_line < function.span.line]
    if ends:
        return max(ends) + 1
    return file.places.docstring_end + 1 if file.places.docstring_end else max(file.places.first_statement, 1)


def _insert_call(file: FileText, finding: Finding, form: FixForm) -> Fix | None:
    lines = [e.line for e in finding.evidence if e.path == file.path] + [finding.line]
    for line in lines:
        for call in file.places.calls:
            if call.span.holds(line) and call.method == form.after and call.statement.own_line:
                target = _stepped(file, call, form)
                if target is not None:
                    return _call_after(file, call, f"{target}.{form.method}()")
    return None


def _stepped(file: FileText, call: CallPlace, form: FixForm) -> str | None:
    """`opt` in `opt.step()` and in `scaler.step(opt)` where the file clears or steps `opt` by itself; otherwise unknown."""
    if not call.arguments:
        return call.receiver
    first = call.arguments[0]
    own = any(c.receiver == first and c.method in {form.after, form.method} for c in file.places.calls)
    return first if len(call.arguments) == 1 and own else None


def _call_after(file: FileText, call: CallPlace, text: str) -> Fix:
    span = call.statement.span
    lines = file.lines
    indent = file.indent(span.line, span.column)
    if span.end_line < len(lines):
        put = Replacement(span.end_line + 1, 1, span.end_line + 1, 1, f"{indent}{text}{file.newline}")
    else:
        end = len(lines[-1]) + 1
        put = Replacement(span.end_line, end, span.end_line, end, f"{file.newline}{indent}{text}")
    return Fix(f"call {text} after line {span.end_line}", safe=False, replacements=(put,))
