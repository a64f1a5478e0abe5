"""What a shape hands back: a code at a place in a function, with what made it true; severity is the code's unless said here."""

from __future__ import annotations

from dataclasses import dataclass

from gyrecheck.model.facts import Bind, Call
from gyrecheck.model.finding import Confidence, Evidence, Severity
from gyrecheck.program.program import Program


@dataclass(frozen=True, slots=True)
class Suspect:
    """A finding before codes, topology and paths are applied. Columns are 0-based bytes, as in the facts."""

    code: str
    function: int
    line: int
    column: int
    message: str
    end_line: int = 0
    end_column: int = 0
    evidence: tuple[Evidence, ...] = ()
    hint: str = ""
    confidence: Confidence = Confidence.BOUND
    key: str = ""
    """What identifies it besides the function: a symbol, never a line."""
    at_most: Severity = Severity.ERROR
    side: str = ""
    pure: bool = False
    """Inside a side that must be pure: the rule holds in every topology."""


def in_tests(program: Program, number: int) -> bool:
    """A test, or a piece of one: what it makes up trains nobody."""
    return is_test(program.path(number)) or program.tree.functions[number].fact.name.startswith("test")


def is_test(path: str) -> bool:
    """Whether a file belongs to a test suite by its place or name."""
    *folders, name = path.replace("\\", "/").split("/")
    return name.startswith(("test_", "conftest")) or name.endswith("_test.py") or any(f in {"test", "tests", "testing"} for f in folders)


def is_evaluation(path: str) -> bool:
    """Whether a file or folder is named after measuring: what it reads back is counted and shown, and trains nothing."""
    words = {word for part in path.replace("\\", "/").lower().removesuffix(".py").split("/") for word in part.replace("-", "_").split("_")}
    return bool(words & {"eval", "evals", "evaluation", "evaluate", "benchmark", "benchmarks"})


def at_call(program: Program, number: int, at: int, code: str, message: str, **more: object) -> Suspect:
    """A suspect at one call."""
    call: Call = program.call(number, at)
    return Suspect(
        code, number, call.line, call.column, message, call.end_line, call.end_column, key=str(more.pop("key", call.name)), **more  # type: ignore[arg-type]
    )  # fmt: skip


def at_bind(number: int, bind: Bind, code: str, message: str, **more: object) -> Suspect:
    """A suspect at one binding's target."""
    end = bind.column + len(bind.target.encode())
    return Suspect(code, number, bind.line, bind.column, message, bind.line, end, key=str(more.pop("key", bind.target)), **more)  # type: ignore[arg-type]
