"""Reads trajectory files as streams of records, never executing code; and the door for tests and training code.

    from gyrecheck.handoff import assert_contract
    assert_contract(batch)          # raises ContractError with the field, the rows and the side that must mend it

`check` and `assert_contract` take dicts of arrays or tensors, TensorDicts, dataclasses and lists of records. What judges stands on a
higher floor, so it is fetched by name when called; importing this package loads nothing else.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast

from gyrecheck.model.finding import Report, Severity, Topology

__all__ = ["ContractError", "assert_contract", "check"]


class ContractError(AssertionError):
    """A batch breaks the field contract. `report` holds every finding."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


def check(
    batch: object,
    *,
    fields: Mapping[str, str] | None = None,
    schema: str | Path | None = None,
    topology: Topology | Literal["decoupled", "colocated", "synchronous"] | None = None,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    rows: int = 4096,
    start: int = 0,
    ordered: bool = False,
    time_major: bool = False,
) -> Report:
    """The field contract on a batch in memory; the first axis of each field is the row.

    `fields` maps roles to keys (`{"logprob": "lp"}`), `schema` is a contract file (TOML). At most `rows` consecutive rows from row
    `start` on are read, and about a million numbers; a moving `start` covers a long run at constant cost. `ordered` says that rows
    follow one another as sampled, so that step order, end flags and successors are judged too; `time_major` that time is the first
    axis, [T, B, ...].

    Raises:
        GyreError: the value is no batch, or an option names what does not exist.
    """
    judge = importlib.import_module("gyrecheck.commands.handoff_batch")
    report = judge.check_batch(
        batch,
        fields=fields,
        schema=schema,
        topology=topology,
        select=select,
        ignore=ignore,
        rows=rows,
        start=start,
        ordered=ordered,
        time_major=time_major,
    )
    return cast("Report", report)


def assert_contract(
    batch: object,
    *,
    fail_on: Literal["error", "warning", "note"] = "warning",
    fields: Mapping[str, str] | None = None,
    schema: str | Path | None = None,
    topology: Topology | Literal["decoupled", "colocated", "synchronous"] | None = None,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    rows: int = 4096,
    start: int = 0,
    ordered: bool = False,
    time_major: bool = False,
) -> None:
    """As `check`, and silent when nothing at or above `fail_on` is found.

    Raises:
        ContractError: something is; the message names each field, its rows, and which side must mend it.
        GyreError: as for `check`.
    """
    report = check(
        batch,
        fields=fields,
        schema=schema,
        topology=topology,
        select=select,
        ignore=ignore,
        rows=rows,
        start=start,
        ordered=ordered,
        time_major=time_major,
    )
    judge = importlib.import_module("gyrecheck.commands.handoff_batch")
    message = cast("str", judge.complaint(report, Severity(fail_on)))
    if message:
        raise ContractError(message, report)
