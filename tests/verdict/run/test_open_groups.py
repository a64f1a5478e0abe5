"""Members that wait in open groups: stock while the groups' number stays level, lost where it only grows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gyrecheck.commands.ledger_run import judge_text
from gyrecheck.model.finding import Severity, State, Verdict
from gyrecheck.rulebook.codes import load_codes


def _broken(
    open_groups: Callable[[int], int], names: tuple[str, str], size: str = "group_size=8", held: int = 5, gone: str = "cancelled_in_flight"
) -> list[Verdict]:
    """Thirty lines: 100 more finished a line, `held` members in each open group, the others used, three more `gone` a line."""
    done, used = names
    lines = [f"{size} max_staleness=2"]
    lines += [
        f"policy {n}: {done}={100 * n} {used}={100 * n - held * open_groups(n)} open_groups={open_groups(n)} {gone}={3 * n}"
        for n in range(1, 31)
    ]
    return [v for v in judge_text("\n".join(lines), load_codes()).verdicts if v.code == "GYR507" and v.state is State.BROKEN]


@pytest.mark.parametrize("names", [("completions", "scored"), ("finished", "trained"), ("samples", "consumed")])
def test_groups_that_never_fill_hold_what_is_missing(names: tuple[str, str]) -> None:
    """From 9 to 67 open groups of 5 members each: 335 are held at the end."""
    found = _broken(lambda n: 7 + 2 * n, names)
    assert [(v.quantity, v.value, v.severity) for v in found if v.severity is Severity.WARNING] == [("unaccounted", 335, Severity.WARNING)]


def test_a_level_number_of_open_groups_is_stock() -> None:
    """Nine open groups, give or take two, hold their members for a while; so does a number that doubles and stays."""
    assert _broken(lambda n: 9 + n % 3, ("completions", "scored")) == []
    assert _broken(lambda n: 9 if n < 15 else 18, ("completions", "scored")) == []


def test_more_than_the_groups_can_hold_is_not_theirs() -> None:
    """Twelve members missing for each open group of four lie somewhere else; this check says nothing about them."""
    assert not [v for v in _broken(lambda n: 7 + 2 * n, ("completions", "scored"), "group_size=4", held=12) if "never fill" in v.message]


def test_without_members_that_never_come_longer_answers_keep_more_groups_open() -> None:
    """From 9 to 67 open groups, and nothing on the lines is cancelled or fails: it may be answers that grow, or a start."""
    assert not [v for v in _broken(lambda n: 7 + 2 * n, ("completions", "scored"), gone="tool_calls") if "never fill" in v.message]
