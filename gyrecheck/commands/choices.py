"""The closed lists that options choose from. Loads no option parser."""

from __future__ import annotations

from enum import Enum


class ColorWhen(str, Enum):
    """When to colour."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class FailOn(str, Enum):
    """The lowest severity that makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    NEVER = "never"


class UndecidedAs(str, Enum):
    """What an undecided verdict does to the exit code."""

    OK = "ok"
    FAIL = "fail"
