"""`gyrecheck watch --serve`: each browser gets a screen of its own, started with the very options that were given here."""

from __future__ import annotations

import shlex
import sys

from gyrecheck.commands.streams import write_stderr
from gyrecheck.commands.watch_look import Look
from gyrecheck.model.errors import GyreError

OURS = ("--serve", "--host")
"""Options of the server itself, each with a value."""


def serve_screen(look: Look, port: int, given: list[str]) -> None:
    """The same screen in a browser; `given` are the words after `watch`.

    Raises:
        GyreError: the extra is not installed, or an option cannot be shared by several screens.
    """
    if look.prometheus is not None:
        raise GyreError("--serve and --prometheus cannot go together: every browser has a screen of its own", hint="start two")
    if "-" in look.targets:
        raise GyreError("--serve cannot read standard input: every browser has a screen of its own", hint="name a file or a folder")
    try:
        from gyrecheck.screen.serve import GuardedServer, new_token
    except ModuleNotFoundError as error:
        raise GyreError(f"--serve needs {error.name}, which is not installed", hint="pip install 'gyrecheck[serve]'") from error
    token = new_token()
    write_stderr(f"open http://{look.host}:{port}/?token={token}")
    if look.host not in {"127.0.0.1", "localhost", "::1"}:
        write_stderr(f"note: {look.host} may be reached from other machines; the token is all that guards it")
    words = [sys.executable, "-m", "gyrecheck", "watch", *passed_on(given, look.targets)]
    GuardedServer(shlex.join(words), look.host, port, token).serve()


def passed_on(given: list[str], targets: tuple[str, ...]) -> list[str]:
    """The words without the server's own options; where no path was given, the one that was chosen."""
    kept: list[str] = []
    words = iter(given)
    for word in words:
        if word in OURS:
            next(words, None)
        elif not word.startswith(tuple(f"{name}=" for name in OURS)):
            kept.append(word)
    return kept if any(target in kept for target in targets) else [*kept, *targets]
