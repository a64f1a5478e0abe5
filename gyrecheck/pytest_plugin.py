"""Fixtures for a project's own tests: `gyre_contract` and `gyre_ledger`.

The entry point is loaded in every pytest run of an environment, so this module imports pytest alone; the rest comes when a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from gyrecheck.model.finding import Report


@pytest.fixture
def gyre_contract() -> Callable[..., None]:
    """`gyre_contract(batch, **options)`: the test fails when the batch breaks the contract; see `gyrecheck.handoff.assert_contract`."""
    from gyrecheck.handoff import ContractError, assert_contract

    def keeps_contract(batch: object, **options: Any) -> None:  # noqa: ANN401 - passed on to one function
        broken = ""
        try:
            assert_contract(batch, **options)
        except ContractError as error:
            broken = str(error)
        if broken:  # outside the handler, so that it is said once
            pytest.fail(broken, pytrace=False)

    return keeps_contract


@pytest.fixture
def gyre_ledger() -> Callable[..., Report]:
    """`gyre_ledger(log, ..., **options)`: the test fails when the logs of a run do not balance; returns the report.

    Paths are log files or run folders. Options are those of the ledger's request: `max_age`, `age_unit`, `unit`, `left`, `topology`.
    An undecided ledger, or one with nothing to judge, fails too, unless `undecided_ok=True`: a test that judged nothing has not passed.
    """

    def assert_balanced(*paths: str | Path, undecided_ok: bool = False, **options: Any) -> Report:  # noqa: ANN401 - passed on to one dataclass
        from gyrecheck.commands.ledger_run import Request, ledger_of
        from gyrecheck.model.finding import Severity, State
        from gyrecheck.rulebook.codes import load_codes

        report = ledger_of(Request(paths=tuple(str(path) for path in paths), **options), load_codes())
        wrong = [v for v in report.verdicts if v.state is State.BROKEN and v.severity.rank >= Severity.WARNING.rank]
        open_ = [v for v in report.verdicts if v.state is State.UNDECIDED and v.severity.rank > Severity.NOTE.rank and not undecided_ok]
        findings = [f for f in report.shown if f.severity.rank >= Severity.WARNING.rank]
        lines = [f"{v.state.value}[{v.code}] {v.name}: {v.message}" for v in (*wrong, *open_)]
        lines += [f"{f.severity.value}[{f.code}] {f.name}: {f.message} ({f.path}:{f.line})" for f in findings]
        if not lines and not undecided_ok and not any(v.state is State.HOLDS for v in report.verdicts):
            lines.append(f"nothing was judged: {report.summary}")
        if lines:
            pytest.fail("the ledger does not hold:\n" + "\n".join(lines), pytrace=False)
        return report

    return assert_balanced
