"""Groups whose members answer one prompt: a group that holds members of two prompts has a baseline of neither."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.contents import sums
from gyrecheck.verdict.records.question import Case, Question
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import View

KEPT = 200_000


class GroupPrompts(Question):
    """Compares the prompts of each group's members; files whose groups usually have several prompts are not judged."""

    about = "prompts of a group"
    needs = (("group_id", "prompt_tokens"),)

    def __init__(self) -> None:
        self.prompts: dict[Any, dict[Any, int]] = {}
        self.records: dict[Any, Ranges] = {}
        self.turns = False

    def feed(self, view: View) -> None:
        """Read one batch."""
        labels, column = view.labels("group_id"), view.column("prompt_tokens")
        if labels is None or column is None or len(self.prompts) > KEPT:
            return
        self.turns |= view.has("step") or view.has("trajectory_id")
        said: list[Any] | None = None
        if column.texts is not None:
            said = view.labels("prompt_tokens")
        elif column.kind is Kind.INT:
            values = sums(column, view.rows).tolist()
            said = [value if count else None for value, count in zip(values, np.asarray(column.counts).tolist(), strict=True)]
        if said is None:
            return
        for at, (label, prompt) in enumerate(zip(labels, said, strict=True)):
            if label is None or prompt is None:
                continue
            table = self.prompts.setdefault(label, {})
            table[prompt] = table.get(prompt, 0) + 1
            self.records.setdefault(label, Ranges()).add(view.path, view.records[at : at + 1])

    def answer(self, case: Case) -> Iterator[Finding]:
        """Groups of several prompts among groups of one."""
        many = {name: table for name, table in self.prompts.items() if sum(table.values()) > 1}
        mixed = [name for name, table in many.items() if len(table) > 1]
        if self.turns or not mixed or len(mixed) > load_record_limits().mixed_groups * len(many):
            return
        where = Ranges()
        for name in mixed:
            where.add_all(self.records[name])
        text = (
            f"{len(mixed)} of {len(many)} groups hold answers to more than one prompt (group {mixed[0]}: {len(many[mixed[0]])} prompts): "
            "the baseline of such a group belongs to neither"
        )
        yield case.finding("GYR346", text, where=where, role="group_id", severity=Severity.WARNING)
