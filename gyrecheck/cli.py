"""The command line: which commands exist, and the one place that turns an error into a line on stderr and an exit code."""

from __future__ import annotations

import errno
import importlib
import os
import sys

TYPE_CHECKING = False  # `typing` is half of what is loaded before `main` hears of Ctrl-C
if TYPE_CHECKING:
    from collections.abc import Callable

    import typer

    from gyrecheck.model.errors import GyreError

PANELS: dict[str, tuple[tuple[str, str, str], ...]] = {  # panel -> (name, module under gyrecheck.commands, what it does)
    "Code": (("lint", "lint", "Check the sampling/training boundary in source code"),),
    "Handoff": (("handoff", "handoff", "Compare the fields that the sampler writes and the trainer reads"),),
    "Run": (
        ("run", "run", "Run a program and count its sample and update calls"),
        ("watch", "watch", "Follow a live run on screen"),
    ),
    "After a run": (("ledger", "ledger", "Balance sampled, taken, dropped; say why nothing trains"),),
    "Knowledge": (
        ("demo", "demo", "See a healthy loop balanced, then a broken one named"),
        ("explain", "explain", "What a code means and how to fix it"),
        ("rules", "rules", "List all rules"),
        ("vocab", "vocab", "Look up a symbol's role"),
        ("check-rules", "check_rules", "Load every rule file and run its samples"),
        ("doctor", "doctor", "Which processes of a run are hooked, and which libraries are not"),
    ),
}
COMMANDS = {name: (module, panel) for panel, rows in PANELS.items() for name, module, _ in rows}
EXAMPLES = """\
Usage: gyrecheck [OPTIONS] COMMAND [ARGS]...

Find where sampling and training touch, and whether the data adds up.

  gyrecheck lint src/                     check code in CI
  gyrecheck run -- python train.py        count sample and update calls
  gyrecheck watch runs/latest             look on while it runs
  gyrecheck ledger runs/latest/*.log      after it ended
"""
EXITS = "Exit: 0 clean · 1 findings · 2 could not check · 3 undecided"


def build_app(only: str | None = None) -> typer.Typer:
    """The app with every command, or with just the one that will run: a command must not pay for its neighbours' imports."""
    import typer

    def root(version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True)) -> None:
        if version:
            from gyrecheck import __version__
            from gyrecheck.commands.streams import write_stdout

            write_stdout(f"gyrecheck {__version__}\n")
            raise typer.Exit

    app = typer.Typer(
        name="gyrecheck",
        help=EXAMPLES,
        epilog=EXITS,
        pretty_exceptions_enable=False,
        rich_markup_mode=None if only is not None else "rich",  # a command's own help must not pay for rich
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=only is None,
    )
    app.callback(invoke_without_command=True)(root)
    for name, (module, panel) in COMMANDS.items():
        if only is not None and name != only:
            continue
        loaded = importlib.import_module(f"gyrecheck.commands.{module}")
        if hasattr(loaded, "app"):
            app.add_typer(loaded.app, name=name, rich_help_panel=panel)
        else:
            settings = getattr(loaded, "CONTEXT_SETTINGS", None)
            app.command(name=name, rich_help_panel=panel, context_settings=settings)(loaded.command)
    return app


def overview(width: int = 80) -> str:
    """The help of the bare command: a box a task, drawn from the table of commands without importing any of them."""
    lines = [EXAMPLES]
    for panel, rows in PANELS.items():
        longest = max(len(name) for name, _, _ in rows)
        lines.append(f"╭─ {panel} ".ljust(width - 1, "─") + "╮")
        lines += [f"│ {name.ljust(longest)}   {what}".ljust(width - 1) + "│" for name, _, what in rows]
        lines.append("╰" + "─" * (width - 2) + "╯")
    lines.append("Options: --version, --install-completion, --show-completion; `gyrecheck COMMAND --help` for a command's own.")
    return "\n".join([*lines, EXITS, ""])


def main() -> None:
    """Run the command line; leaves with a number of `ExitCode`. Everything is imported within, so that Ctrl-C is heard from the start."""
    try:
        code = _leave(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    if code == 130 and sys.argv[1:2] != ["run"]:  # a program that was run may say 130 of itself
        from gyrecheck.commands.streams import write_stderr

        write_stderr("interrupted")
    sys.exit(code)


def _leave(words: list[str]) -> int:
    """Run one command and turn what ends it into an exit code and a line on standard error."""
    from gyrecheck.commands.streams import stand_in_for_closed
    from gyrecheck.model.errors import ExitCode, GyreError

    stand_in_for_closed()
    try:
        code = _run(words)
    except GyreError as error:
        code = _complain(error)
    except BrokenPipeError:  # whoever read has left before the end; nothing was judged, and nobody is there to be told
        code = int(ExitCode.COULD_NOT_CHECK)
    except Exception as error:  # noqa: BLE001 - the last line of defence: a defect of ours is said in one line
        code = _misused(error) if hasattr(error, "format_message") else _confess(error)
    return code


def _run(words: list[str]) -> int:
    from gyrecheck.commands.streams import write_stdout

    if not words or words[0] in {"-h", "--help"}:
        write_stdout(overview(), last=True)
        return 0
    named = words[0] if words[0] in COMMANDS and "_GYRECHECK_COMPLETE" not in os.environ else None
    if named in {"ledger", "watch", "handoff"}:  # the others read few rule files, or are there to check them
        from gyrecheck.rulebook.table_cache import CACHE, cache_folder

        CACHE.folder = cache_folder()
    code = _glance(words)
    if code is None:
        code = build_app(named)(standalone_mode=False)
    return code if isinstance(code, int) else 0


def _glance(words: list[str]) -> int | None:
    """`watch --once --json` without the option parser, which would cost more than the look itself; None for everything else."""
    if words[0] != "watch" or "--once" not in words:
        return None
    from gyrecheck.commands.watch_glance import glance

    return glance(words[1:])


def _complain(error: GyreError) -> int:
    from gyrecheck.commands.streams import flush_stdout, write_stderr
    from gyrecheck.model.visible import visible

    flush_stdout()
    write_stderr(f"error: {visible(error.message)}")
    if error.hint:
        write_stderr(f" hint: {visible(error.hint)}")
    return int(error.exit_code)


def _misused(error: Exception) -> int:
    """A usage error of the option parser, in its words."""
    import io

    from gyrecheck.commands.streams import flush_stdout, write_stderr

    said = io.StringIO()
    show: Callable[..., None] = getattr(error, "show")  # noqa: B009 - the option parser's class is private to it
    show(file=said)
    flush_stdout()
    write_stderr(said.getvalue().rstrip("\n"))
    return 2


def _confess(error: Exception) -> int:
    from gyrecheck.commands.streams import flush_stdout, write_stderr
    from gyrecheck.model.errors import ExitCode
    from gyrecheck.model.visible import visible

    flush_stdout()
    if isinstance(error, OSError) and error.filename is None and error.errno == errno.ENOSPC:  # help, which the parser prints itself
        write_stderr(f"error: the output cannot be written ({error.strerror})")
        return int(ExitCode.COULD_NOT_CHECK)
    write_stderr(f"internal error: {type(error).__name__}: {visible(str(error))}")
    if place := os.environ.get("GYRECHECK_TRACEBACK"):
        import traceback

        with open(place, "w", encoding="utf-8") as file:  # noqa: PTH123 - the shortest path when things are broken
            traceback.print_exception(error, file=file)
        write_stderr(f" hint: the traceback is in {place}; please report it")
    else:
        write_stderr(" hint: set GYRECHECK_TRACEBACK=FILE to keep the traceback, and report it")
    return int(ExitCode.INTERNAL)
