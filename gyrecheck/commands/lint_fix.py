"""`--fix` and `--diff`: plan the fixes of a run with what the whole program knows, then write them, or print them as a patch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn

import typer

from gyrecheck.commands.streams import write_stderr, write_stdout
from gyrecheck.model.errors import GyreError
from gyrecheck.model.finding import Finding
from gyrecheck.model.fix import Fix
from gyrecheck.rulebook.fix_forms import load_fix_forms
from gyrecheck.source.texts import Text

if TYPE_CHECKING:
    from gyrecheck.program.program import Program
    from gyrecheck.source.file_text import FileContext

PASSES = 5
"""A fix that another one stands in the way of is made in the next pass; more passes mean that two fixes undo each other."""


@dataclass(slots=True)
class Mender:
    """Plans fixes when they are asked for. `build` gives the program of the texts; it is called only when a fix needs it."""

    asked: bool
    unsafe: bool
    build: Callable[[tuple[Text, ...]], Program]
    planned: dict[str, tuple[Finding, ...]] = field(default_factory=dict)

    def plan(self, findings: tuple[Finding, ...], texts: tuple[Text, ...]) -> tuple[Finding, ...]:
        """The findings with their fixes; as they are when nobody asked. Notebooks and standard input have none that can be written."""
        self.planned = {}
        if not self.asked:
            return findings
        from gyrecheck.source.edits import plan_fixes

        forms = load_fix_forms()
        by_path: dict[str, list[Finding]] = {}
        for finding in findings:
            by_path.setdefault(finding.path, []).append(finding)
        open_ = {
            p for p, found in by_path.items() if any(_open(f) and (f.fixes or f.code in forms) for f in found) and not p.endswith(".ipynb")
        }
        program = None
        if any(forms[f.code].form != "insert-call" for p in open_ for f in by_path[p] if f.code in forms and _open(f)):
            program = self.build(texts)
        out = dict(by_path)
        for text in texts:
            path = text.file.shown
            if path in open_:
                self.planned[path] = plan_fixes(path, text.data, by_path[path], context_of(path, program))
                out[path] = list(self.planned[path])
        order = {id(f): at for at, f in enumerate(findings)}
        pairs = [(order[id(old)], new) for path, found in by_path.items() for old, new in zip(found, out[path], strict=True)]
        return tuple(f for _, f in sorted(pairs, key=lambda pair: pair[0]))

    def fixes(self, path: str) -> list[Fix]:
        """The fixes to make in one file, in order of place; one a finding, equal ones once."""
        wanted = [fix for f in self.planned.get(path, ()) if _open(f) for fix in f.fixes if fix.safe or self.unsafe]
        return list(dict.fromkeys(wanted))

    @property
    def held_back(self) -> int:
        """How many findings have only an unsafe fix, and none was asked for."""
        return (
            0
            if self.unsafe
            else sum(bool(f.fixes) and _open(f) and not any(x.safe for x in f.fixes) for fs in self.planned.values() for f in fs)
        )

    def write(self, texts: tuple[Text, ...]) -> tuple[int, int]:
        """Make the fixes on disk; how many, in how many files.

        Raises:
            GyreError: a file changed meanwhile or cannot be written.
        """
        from gyrecheck.source.text_edit import apply_fixes, write_source

        made = files = 0
        for text in texts:
            edited = apply_fixes(text.data, self.fixes(text.file.shown))
            if edited.made:
                write_source(text.file.path, text.data, edited.source)
                made, files = made + len(edited.made), files + 1
        return made, files

    def patch(self, texts: tuple[Text, ...]) -> str:
        """All fixes as one patch; what overlaps waits for the next run, as with `--fix`."""
        from gyrecheck.source.text_edit import apply_fixes, unified_diff

        return "".join(unified_diff(t.file.shown, t.data, apply_fixes(t.data, self.fixes(t.file.shown)).source) for t in texts)


def refuse_together(*, fix: bool, diff: bool, stdin: bool) -> None:
    """Options that contradict each other.

    Raises:
        GyreError: `--fix` with `--diff`, or with standard input.
    """
    if fix and diff:
        raise GyreError("--fix and --diff together", hint="--diff shows what --fix would do, and writes nothing")
    if fix and stdin:
        raise GyreError("--fix cannot write to standard input", hint="--diff prints the fixes as a patch")


def leave_with_patch(mender: Mender, texts: tuple[Text, ...], *, quiet: bool) -> NoReturn:
    """Print the fixes as a patch and leave: 1 when there is anything to fix, 0 otherwise."""
    patch = mender.patch(texts)
    write_stdout(patch, exact=not sys.stdout.isatty(), last=True)  # a patch for a program is kept to the byte
    if mender.held_back and not quiet:
        write_stderr(f"{mender.held_back} more with --unsafe-fixes")
    raise typer.Exit(1 if patch else 0)


def fixed_summary(summary: str, made: tuple[int, int], held_back: int) -> str:
    """The report's closing lines with what was fixed."""
    count, files = made
    lines = (
        [f"Fixed {count} finding{'s' if count != 1 else ''} in {files} file{'s' if files != 1 else ''}."] if count else ["Nothing to fix."]
    )
    lines += [f"{held_back} more with --unsafe-fixes."] if held_back else []
    return "\n".join([summary, " ".join(lines)])


def _open(finding: Finding) -> bool:
    return not finding.suppressed and not finding.baselined


def context_of(path: str, program: Program | None) -> FileContext:
    """What a fix in one file may rely on: its pure samplers, and for imports what others take from it and where names are defined."""
    from gyrecheck.source.file_text import FileContext
    from gyrecheck.verdict.shapes.meant_graph import only_samples

    context = FileContext(package=path.endswith("__init__.py"))
    if program is None:
        return context
    tree = program.tree
    own = next((at for at, m in enumerate(tree.modules) if m.path == path), -1)
    if own < 0:
        return context
    samplers = frozenset(program.name(fn.number) for fn in tree.functions_of(own) if only_samples(program, fn.number))
    taken, origins = set(), {}
    for at, module in enumerate(tree.modules):
        for entry in module.imports:
            target = _target(program, at, entry.level, entry.module)
            if target == own and at != own and entry.name:
                taken.add(entry.name)
            if at == own and target >= 0 and entry.kind == "from":
                origin = _origin(program, target, entry.name)
                if origin:
                    origins[f"{_absolute(program, at, entry.level, entry.module)}.{entry.name}"] = origin
    return replace(context, samplers=samplers, module=tree.dotted_name(own), exported=frozenset(taken), origins=origins)


def _target(program: Program, importer: int, level: int, module: str) -> int:
    tree = program.tree
    return tree.at_path(tree.relative(importer, level, module)) if level else tree.module(module, importer)


def _absolute(program: Program, importer: int, level: int, module: str) -> str:
    """The dotted name as the planner of a fix makes it from the file's own dotted name."""
    if not level:
        return module
    own = program.tree.dotted_name(importer).split(".")
    package = program.tree.modules[importer].path.endswith("__init__.py")
    base = own[: len(own) - level + (1 if package else 0)]
    return ".".join([*base, *filter(None, [module])])


def _origin(program: Program, module: int, name: str) -> str:
    """Where a name that `module` only passes on is defined, or empty when `module` defines it or nobody of ours does."""
    tree = program.tree
    seen = {module}
    at = module
    while True:
        names = tree.names(tree.first_function[at])
        if name in names.functions or name in names.classes:
            return f"{tree.dotted_name(at)}.{name}" if at != module else ""
        entries = names.imports.get(name, [])
        if name in names.binds or len(entries) != 1 or entries[0].kind != "from":
            return ""
        at, name = _target(program, at, entries[0].level, entries[0].module), entries[0].name
        if at < 0 or at in seen:
            return ""
        seen.add(at)
