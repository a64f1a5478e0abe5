"""What ends a command early, and the numbers a command may end with.

Every error a person can cause is one sentence (what, where, what was expected) and one hint; only `cli` prints it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class ExitCode(IntEnum):
    """What the process returns; `gyrecheck explain exit-codes` prints this table."""

    OK = 0
    """Checked; nothing at or above the fail level, every verdict holds."""
    FOUND = 1
    """Findings at or above the fail level, or a verdict is broken."""
    COULD_NOT_CHECK = 2
    """Usage, configuration, input, a rule file that does not load, or standard output closed or full."""
    UNDECIDED = 3
    """Inputs were fine but too little or too strange to judge."""
    INTERNAL = 4
    """A defect of gyrecheck itself."""
    INTERRUPTED = 130
    """Ctrl-C; a report printed then is marked partial."""


class GyreError(Exception):
    """A check that could not be made. Ends the command with `exit_code` after one line and one hint."""

    def __init__(self, message: str, *, hint: str = "", exit_code: ExitCode = ExitCode.COULD_NOT_CHECK) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[object, ...]:
        """Survive the trip back from a worker process with hint and code."""
        return (_rebuild, (type(self), self.message, self.hint, self.exit_code))


class RuleError(GyreError):
    """A file under `rules/` that does not load, or whose own samples fail."""


def _rebuild(kind: type[GyreError], message: str, hint: str, exit_code: ExitCode) -> GyreError:
    return kind(message, hint=hint, exit_code=exit_code)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint naming the nearest known word, or the empty string when nothing is near."""
    import difflib  # only a mistake pays for it

    candidates = list(known)
    cutoff = 0.83 if any(sign.isdigit() for sign in word) else 0.6  # of a number only one digit may be wrong: GYR999 is near to nothing
    near = difflib.get_close_matches(word, candidates, n=1, cutoff=cutoff)
    if not near:  # a look-alike in another case or with O for 0
        folded = {c.casefold().replace("0", "o"): c for c in candidates}
        near = difflib.get_close_matches(word.casefold().replace("0", "o"), folded, n=1, cutoff=cutoff)
        near = [folded[n] for n in near]
    return f"did you mean `{near[0]}`?" if near else ""
