"""`gyrecheck watch --once --json`, the form that a status bar or a scraper calls every few seconds: one report, no option parser.

It takes paths and the few options below; every other spelling is left to the full command, which says the same on the same words.
"""

from __future__ import annotations

import gc
from pathlib import Path

WORDS = frozenset({"--once", "--json", "--exit-zero", "-q", "--quiet"})


def glance(words: list[str]) -> int | None:
    """Write the report on what is there now and give the exit code; None when the words ask for more than a glance.

    Raises:
        GyreError: as for `gyrecheck ledger` on the same paths.
    """
    options = {word for word in words if word.startswith("-")}
    targets = tuple(word for word in words if not word.startswith("-"))
    if not {"--once", "--json"} <= options <= WORDS or not targets:
        return None
    gc.disable()  # what is made here lives to the end of one look
    from gyrecheck.commands.streams import write_stderr, write_stdout
    from gyrecheck.commands.watch_look import Look, report_now, runs_in
    from gyrecheck.model.finding import Severity
    from gyrecheck.report.json import render
    from gyrecheck.report.style import Style
    from gyrecheck.rulebook.codes import load_codes, select_codes
    from gyrecheck.rulebook.project_config import load_project_config
    from gyrecheck.stream.open_log import refuse_unreadable
    from gyrecheck.verdict.severity import exit_code

    refuse_unreadable(targets)
    if runs_in(targets):
        return None
    project = load_project_config(None, Path.cwd())
    codes = load_codes(project.rules_folder)
    report = report_now(
        Look(
            targets,
            codes,
            chosen=select_codes(codes, project.select, project.ignore) if project.select or project.ignore else None,
            extra=project.rules_folder,
            topology=project.topology.value if project.topology is not None else "",
        )
    )
    code = 0 if "--exit-zero" in options else int(exit_code(report, project.fail_on or Severity.WARNING, undecided_ok=False))
    write_stdout(render(report, exit_code=code, style=Style(color=False)), last=True)
    if report.next and not options & {"-q", "--quiet"}:
        write_stderr(f"next: {report.next}")
    return code
