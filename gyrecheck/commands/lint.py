"""`gyrecheck lint`: check the sampling/training boundary in source code."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gyrecheck.commands.lint_options import (
    Baseline,
    CacheDir,
    Diff,
    DiffBase,
    Duties,
    Exclude,
    ExtendSelect,
    Fix,
    Graph,
    Hints,
    Jobs,
    NoCache,
    OnOff,
    Paths,
    ShowSuppressed,
    Statistics,
    StdinFilename,
    UnsafeFixes,
    WriteBaseline,
)
from gyrecheck.commands.options import (
    Color,
    ColorWhen,
    Config,
    ExitZero,
    FailOnOption,
    Force,
    Ignore,
    Output,
    OutputFormat,
    Quiet,
    Select,
    TopologyOption,
    Verbose,
    emit,
    fail_level,
    finish,
)
from gyrecheck.model.errors import ExitCode, GyreError

if TYPE_CHECKING:
    from gyrecheck.commands.lint_check import Rules
    from gyrecheck.model.facts import Unreadable
    from gyrecheck.model.finding import Finding
    from gyrecheck.program.program import Program
    from gyrecheck.rulebook.codes import Sample
    from gyrecheck.source.cache import Cache
    from gyrecheck.source.texts import Text


def command(
    paths: Paths = None,
    topology: TopologyOption = None,
    select: Select = None,
    extend_select: ExtendSelect = None,
    ignore: Ignore = None,
    exclude: Exclude = None,
    statistics: Statistics = False,
    duties: Duties = False,
    hints: Hints = OnOff.ON,
    show_suppressed: ShowSuppressed = False,
    stdin_filename: StdinFilename = "",
    no_cache: NoCache = False,
    cache_dir: CacheDir = None,
    jobs: Jobs = 0,
    baseline: Baseline = None,
    write_baseline: WriteBaseline = False,
    diff_base: DiffBase = "",
    fix: Fix = False,
    diff: Diff = False,
    unsafe_fixes: UnsafeFixes = False,
    graph: Graph = None,
    config: Config = None,
    output_format: OutputFormat = None,
    output: Output = None,
    force: Force = False,
    color: Color = ColorWhen.AUTO,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    fail_on: FailOnOption = None,
    exit_zero: ExitZero = False,
) -> None:
    """Check the sampling/training boundary in source code."""
    from gyrecheck.commands.lint_alone import with_neighbours
    from gyrecheck.commands.lint_check import Judged, Timer, judge_texts, load_rules
    from gyrecheck.commands.lint_compare import accepted, say
    from gyrecheck.commands.lint_fix import PASSES, Mender, fixed_summary, leave_with_patch, refuse_together
    from gyrecheck.commands.lint_report import Chosen, as_unchecked, none_checked, report_of, with_suppressions
    from gyrecheck.rulebook.project_config import load_project_config
    from gyrecheck.source.cache import Cache, default_folder

    timer = Timer()
    given = tuple(paths or [Path()])
    settings = load_project_config(config, given[0] if given[0].is_dir() else given[0].parent)
    cache = Cache(None if no_cache else cache_dir or default_folder())
    texts, failed = _texts(given, (*settings.exclude, *(exclude or ())), stdin_filename, cache)
    timer.mark("read")
    rules = load_rules(cache, settings.rules_folder)
    timer.mark("rules")
    chosen = Chosen.of(
        rules.codes,
        settings,
        tuple(select or ()),
        tuple(extend_select or ()),
        tuple(ignore or ()),
        hints=hints is OnOff.ON,
        suppressed=show_suppressed,
    )
    declared = topology or settings.topology
    refuse_together(fix=fix, diff=diff, stdin=str(given[0]) == "-")

    def build(texts: tuple[Text, ...]) -> Program:
        from gyrecheck.program.program import Program
        from gyrecheck.source.collect import collect

        return Program(collect(texts, cache, jobs)[0], rules.lexicon, rules.regions, rules.words)

    def judge(texts: tuple[Text, ...]) -> Judged:
        return judge_texts(texts, rules, cache, declared=declared, settings=settings, jobs=jobs, timer=timer)

    def old(texts: tuple[Text, ...]) -> tuple[Finding, ...]:
        found = judge_texts(texts, rules, cache, declared=declared, settings=settings, jobs=jobs).findings
        return with_suppressions(tuple(f for f in found if chosen.shows(f)), texts, chosen.codes, rules.codes)

    before = accepted(
        baseline,
        root=settings.root,
        write=write_baseline,
        diff_base=diff_base,
        paths=given,
        exclude=(*settings.exclude, *(exclude or ())),
        old=old,
    )
    mender = Mender(fix or diff or any(name.partition(":")[0] == "sarif" for name in output_format or ()), unsafe_fixes, build)
    made = (0, 0)
    for _ in range(PASSES if fix else 1):
        judged = with_neighbours(judge(texts), texts, given, rules, cache, judge)
        report = report_of(
            judged,
            texts,
            failed,
            chosen,
            rules.codes,
            inputs=tuple(p.as_posix() for p in given),
            declared=declared is not None,
            timer=timer if statistics or verbose > 1 else None,
            duties=duties,
            accepted=before,
            mender=mender,
        )
        now = mender.write(texts) if fix else (0, 0)
        if not now[0]:
            break
        made = (made[0] + now[0], max(made[1], now[1]))
        texts, failed = _texts(given, (*settings.exclude, *(exclude or ())), stdin_filename, cache)
    say(before.said, quiet=quiet)
    if none_checked(judged, texts, failed):
        emit(as_unchecked(report), ExitCode.COULD_NOT_CHECK, output_format=output_format, output=output, color=color, force=force)
        raise typer.Exit(ExitCode.COULD_NOT_CHECK)
    if diff:
        leave_with_patch(mender, texts, quiet=quiet)
    if graph is not None:
        from gyrecheck.commands.lint_graph import graph_of, write_graph
        from gyrecheck.program.stated import stated_by
        from gyrecheck.program.topology import layout

        program = build(texts)
        laid = layout(program, stated_by(settings, declared, program.tree))
        write_graph(graph_of(program, laid, report.findings), graph.value, output, force=force)
    if fix:
        report = replace(report, summary=fixed_summary(report.summary, made, mender.held_back))
    finish(
        report,
        output_format=output_format,
        output=output,
        color=color,
        quiet=quiet,
        fail_on=fail_level(fail_on, settings.fail_on),
        exit_zero=exit_zero,
        force=force,
    )


def _texts(
    paths: tuple[Path, ...], exclude: tuple[str, ...], stdin_filename: str, cache: Cache
) -> tuple[tuple[Text, ...], tuple[Unreadable, ...]]:
    from gyrecheck.source.cache import digest
    from gyrecheck.source.files import SourceFile, find_files
    from gyrecheck.source.texts import Text, cells_of, read_texts

    if str(paths[0]) == "-":
        if len(paths) > 1:
            raise GyreError("`-` and other paths together", hint="standard input is checked alone; name it with --stdin-filename")
        name = stdin_filename or "stdin.py"
        raw = _standard_input()
        data = cells_of(raw) if name.endswith(".ipynb") else raw
        return (Text(SourceFile(Path(name), name), data, digest(data), raw),), ()
    return read_texts(find_files(paths, exclude), cache)


def _standard_input() -> bytes:
    """Everything on standard input.

    Raises:
        GyreError: it is closed or cannot be read.
    """
    hint = "pipe a file into it: gyrecheck lint - < FILE"
    if sys.stdin is None or sys.stdin.closed:
        raise GyreError("standard input is closed, so `-` has nothing to check", hint=hint)
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise GyreError(f"standard input cannot be read ({error.strerror or error})", hint=hint) from error


def prove(sample: Sample) -> tuple[tuple[str, int], ...]:
    """The (code, line) pairs that a rule's sample gives, for `check-rules`."""
    from gyrecheck.commands.lint_check import judge_modules
    from gyrecheck.commands.lint_report import with_suppressions
    from gyrecheck.model.facts import Module
    from gyrecheck.source.files import SourceFile
    from gyrecheck.source.read import read_source
    from gyrecheck.source.texts import Text

    name = sample.file or "sample.py"
    data = sample.text.encode()
    found = read_source(data, name)
    modules, failed = ((found,), ()) if isinstance(found, Module) else ((), (found,))
    rules = _proof_rules()
    judged = judge_modules(modules, failed, rules, {name: data}, declared=sample.topology)
    text = Text(SourceFile(Path(name), name), data, "", data)
    shown = with_suppressions(judged.findings, (text,), frozenset(rules.codes), rules.codes)
    return tuple((f.code, f.line) for f in shown if not f.suppressed)


@cache
def _proof_rules() -> Rules:
    from gyrecheck.commands.lint_check import load_rules
    from gyrecheck.source.cache import Cache

    return load_rules(Cache(None))
