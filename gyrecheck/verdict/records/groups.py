"""Groups of answers to one prompt: as large as declared, and with a spread of rewards to learn from (GYR338, GYR340).

Whether their advantages come from the own group is judged in `group_advantages`, over the same table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.contents import Sums, marks_of, together
from gyrecheck.verdict.records.contents import labels as labels_of
from gyrecheck.verdict.records.group_advantages import judge_advantages
from gyrecheck.verdict.records.group_lists import members_of, size_said
from gyrecheck.verdict.records.group_models import advantage_of, reward_of
from gyrecheck.verdict.records.group_table import GroupTable
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Bools, Floats, Ints, View

MAX_ROWS = 2_000_000
Part = tuple[Ints, Floats, Floats, Floats, Ints, Ints, Sums, Bools, Bools, Sums, Sums]
"""Of the rows of one batch: group, reward, advantage, size, record, file, marks of the tokens, uncounted, said to be filler, training batch,
prompt."""


class Groups(Question):
    """Reads group, size, reward and advantage of every record; groups may lie apart in the file."""

    about = "groups"
    needs = (("group_id", "reward"), ("group_id", "group_size"), ("group_size", "reward", "advantage"))

    def __init__(self) -> None:
        self.index: dict[Any, int] = {}
        self.names: list[Any] = []
        self.parts: list[Part] = []
        self.paths: list[str] = []
        self.rows = 0
        self.per_step = self.declared = False

    def feed(self, view: View) -> None:
        """Read one batch."""
        inside = members_of(view)
        labels = list(range(self.rows, self.rows + view.rows)) if inside and not view.has("group_id") else view.labels("group_id")
        if labels is None or self.rows > MAX_ROWS:
            return
        if view.has("step") and not view.has("tokens") and inside is None:
            self.per_step = True
        if view.path not in self.paths:
            self.paths.append(view.path)
        codes = np.empty(view.rows, np.int64)
        for at, label in enumerate(labels):
            code = self.index.get(label)
            if code is None:
                code = self.index[label] = len(self.names)
                self.names.append(label)
            codes[at] = code
        size = view.number("group_size")
        sizes = size if size is not None else np.full(view.rows, np.nan)
        file = np.full(view.rows, self.paths.index(view.path), np.int64)
        filler = view.flag("filler")
        said = filler & view.idle() if filler is not None else np.zeros(view.rows, np.bool_)
        kept = (view.records, file, marks_of(view, "tokens"), view.idle(), said, labels_of(view, "batch_id"), _prompts(view))
        part: Part = (codes, reward_of(view), advantage_of(view), sizes, *kept)
        if inside is not None:
            row, reward, advantage = inside
            self.declared |= size_said(view)
            none = np.zeros(len(row), np.uint64)
            rest = (view.idle()[row], said[row], kept[5][row], kept[6][row])
            part = (codes[row], reward, advantage, sizes[row], view.records[row], file[row], none, *rest)
        self.parts.append(part)
        self.rows += len(part[0])

    def answer(self, case: Case) -> Iterator[Finding]:
        """Incomplete groups, groups of one, advantages of other groups, no spread."""
        if not self.parts or self.per_step:
            return
        codes, reward, advantage, size, records, files, marks, idle, said, batch, prompt = (
            np.concatenate([p[i] for p in self.parts]) for i in range(11)
        )
        order = np.argsort(codes, kind="stable")
        order = order[~(said | _copies(codes, marks, idle))[order]]
        if not len(order):
            return
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        members = np.split(order, starts[1:])
        counts = np.array([len(m) for m in members])
        declared = np.array([np.nanmax(size[m]) if np.isfinite(size[m]).any() else np.nan for m in members])
        usual = int(Counter(counts.tolist()).most_common(1)[0][0])
        names = [self.names[code] for code in codes[order[starts]].tolist()]
        table = GroupTable(names, members, records, files, self.paths, batch, self.declared)
        yield from self._sizes(case, table, counts, declared, usual)
        if len(members) == len(order) and not np.isfinite(declared).any() and _named_apart(reward[order], advantage[order], prompt[order]):
            where = table.where(np.ones(len(members), np.bool_))
            sizes = Counter(Counter(prompt[order].tolist()).values()).most_common(1)[0][0]
            text = (
                f"groups of one: `{case.roles.key('group_id')}` is another at each of the {len(members)} records although {sizes} of them at a time "
                "answer one prompt, and the advantages are those of groups of one"
            )
            yield case.finding("GYR338", text, where=where, role="group_id", severity=Severity.WARNING)
        if np.isfinite(reward).any():
            yield from self._signal(case, table, reward, advantage)
        if np.isfinite(advantage).any() and np.isfinite(reward).any():
            yield from judge_advantages(case, table, reward, advantage, np.where(np.isfinite(declared), declared, usual))

    def _sizes(self, case: Case, table: GroupTable, counts: Ints, declared: Floats, usual: int) -> Iterator[Finding]:
        told = np.isfinite(declared).any()
        target = np.where(
            np.isfinite(declared), declared, usual if counts.max() > 1 and (counts == usual).sum() * 2 > len(counts) else counts
        )
        word = "declared" if told else "usual"
        short, long = counts < target, counts > target
        if short.any():
            where = table.where(short)
            names = [f"{table.names[i]} has {counts[i]} of {show(target[i])}" for i in np.flatnonzero(short)[:5].tolist()]
            last_only = bool(short[-1]) and int(short.sum()) == 1
            ones = bool((counts[short] == 1).all()) and bool((target[short] > 1).all()) and bool(short.all())
            text = (
                f"group incomplete: {int(short.sum())} of {len(counts)} groups have fewer members than the {word} "
                f"{show(np.nanmax(target[short]))}: {', '.join(names)}"
            )
            if ones:
                text = (
                    f"groups of one: each of the {len(counts)} groups has a single member, {word} {show(np.nanmax(target))}: "
                    "no baseline can be taken over one"
                )
            elif last_only:
                text += " (the last in the file: still being written?)"
            yield case.finding("GYR338", text, where=where, role="group_id", severity=Severity.WARNING if ones else Severity.NOTE)
        if long.any() and told:
            names = [f"{table.names[i]} has {counts[i]} of {show(target[i])}" for i in np.flatnonzero(long)[:5].tolist()]
            yield case.finding(
                "GYR338",
                f"group too large: {int(long.sum())} groups have more members than declared: {', '.join(names)}; the "
                "same name for two prompts, or members twice",
                where=table.where(long),
                role="group_id",
                severity=Severity.WARNING,
            )
        if not told and len(counts) > 1 and counts.max() == 1 and case.roles.key("advantage"):
            yield case.finding(
                "GYR338",
                f"groups of one: each of the {len(counts)} groups has a single member; a group-relative advantage over "
                "one member is always 0",
                role="group_id",
                severity=Severity.NOTE,
            )

    def _signal(self, case: Case, table: GroupTable, reward: Floats, advantage: Floats) -> Iterator[Finding]:
        many = [m for m in table.members if len(m) > 1 and np.isfinite(reward[m]).all()]
        flat = [m for m in many if np.ptp(reward[m]) == 0]
        if len(many) < 2 or not flat:
            return
        if sum(bool((np.abs(advantage[m]) > 1e-6).any()) for m in flat) * 2 > len(flat):
            return  # advantages that are not 0 where rewards are equal have another baseline than the group
        share = len(flat) / len(many)
        where = Ranges()
        table.add(where, np.concatenate(flat))
        if share == 1:
            values = sorted({float(reward[m[0]]) for m in flat})
            between = (
                f"; rewards differ between groups ({show(values[0])} to {show(values[-1])}), never within one"
                if len(values) > 1
                else f"; every reward is {show(values[0])}"
            )
            yield case.finding(
                "GYR340",
                f"no learning signal: in all {len(many)} groups the members have equal rewards, so every advantage is 0{between}",
                where=where,
                role="reward",
                severity=Severity.WARNING,
            )
        elif share >= 0.75 and len(many) >= 8:
            yield case.finding(
                "GYR340",
                f"little learning signal: {len(flat)} of {len(many)} groups have equal rewards",
                where=where,
                role="reward",
                severity=Severity.NOTE,
            )


def _prompts(view: View) -> Sums:
    """[rows] one mark for each row's prompt, text or tokens; 0 where it has none."""
    column = view.column("prompt_tokens")
    return labels_of(view, "prompt_tokens") if column is not None and column.texts is not None else marks_of(view, "prompt_tokens")


def _named_apart(reward: Floats, advantage: Floats, prompt: Sums) -> bool:
    """Whether rows fall into groups by their prompts, while each has the advantage of a group of one: its reward, or 0."""
    sizes = list(Counter(prompt.tolist()).values())
    if len(sizes) < 2 or min(sizes) < 2 or not (np.isfinite(reward).all() and np.isfinite(advantage).all()):
        return False
    return bool(np.ptp(reward) > 0 and ((advantage == reward).all() or not advantage.any()))


def _copies(codes: Ints, marks: Sums, idle: Bools) -> Bools:
    """[rows] uncounted rows that hold what a counted one of their group holds: they fill up the batch and are no member."""
    if not idle.any() or not marks.any():
        return np.zeros(len(codes), np.bool_)
    whole = together((codes.astype(np.uint64), marks))
    return np.asarray(idle & np.isin(whole, whole[~idle]))
