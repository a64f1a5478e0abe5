"""Groups of answers to one prompt: complete, with spread, and advantages that come from the own group.

Group-relative advantages are A = a (r - b): b the group's mean, or the mean of the others (leave-one-out), a = 1 or 1 / standard
deviation (with n or n - 1). Which of these the file uses is found from its complete groups; the others are held against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.group_models import MODELS, advantage_of, affine, close, reward_of, same
from gyrecheck.verdict.records.question import Case, Question, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import Floats, Ints, View

MAX_ROWS = 2_000_000


class Groups(Question):
    """Reads group, size, reward and advantage of every record; groups may lie apart in the file."""

    about = "groups"
    needs = (("group_id", "reward"), ("group_id", "group_size"))

    def __init__(self) -> None:
        self.index: dict[Any, int] = {}
        self.names: list[Any] = []
        self.parts: list[tuple[Ints, Floats, Floats, Floats, Ints, Ints]] = []
        self.paths: list[str] = []
        self.rows = 0
        self.file_of: Ints = np.zeros(0, np.int64)
        self.per_step = False

    def feed(self, view: View) -> None:
        """Read one batch."""
        labels = view.labels("group_id")
        if labels is None or self.rows > MAX_ROWS:
            return
        if view.has("step") and not view.has("tokens"):
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
        nothing = np.full(view.rows, np.nan)
        reward = reward_of(view)
        size = view.number("group_size")
        rewards, sizes = reward, size if size is not None else nothing
        file = np.full(view.rows, self.paths.index(view.path), np.int64)
        self.parts.append((codes, rewards, advantage_of(view), sizes, view.records, file))
        self.rows += view.rows

    def answer(self, case: Case) -> Iterator[Finding]:
        """Incomplete groups, groups of one, advantages of other groups, no spread."""
        if not self.parts or self.per_step:
            return
        codes, reward, advantage, size, records, files = (np.concatenate([part[i] for part in self.parts]) for i in range(6))
        self.file_of = files
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        members = np.split(order, starts[1:])
        counts = np.array([len(m) for m in members])
        declared = np.array([np.nanmax(size[m]) if np.isfinite(size[m]).any() else np.nan for m in members])
        usual = int(Counter(counts.tolist()).most_common(1)[0][0])
        yield from self._sizes(case, members, counts, declared, usual, records)
        if np.isfinite(reward).any():
            yield from self._signal(case, members, reward, records)
        if np.isfinite(advantage).any() and np.isfinite(reward).any():
            yield from self._advantages(case, members, reward, advantage, np.where(np.isfinite(declared), declared, usual), records)

    def _sizes(self, case: Case, members: list[Ints], counts: Ints, declared: Floats, usual: int, records: Ints) -> Iterator[Finding]:
        told = np.isfinite(declared).any()
        target = np.where(
            np.isfinite(declared), declared, usual if counts.max() > 1 and (counts == usual).sum() * 2 > len(counts) else counts
        )
        word = "declared" if told else "usual"
        short, long = counts < target, counts > target
        if short.any():
            where = self._where(members, short, records)
            names = [f"{self.names[i]} has {counts[i]} of {show(target[i])}" for i in np.flatnonzero(short)[:5].tolist()]
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
            names = [f"{self.names[i]} has {counts[i]} of {show(target[i])}" for i in np.flatnonzero(long)[:5].tolist()]
            yield case.finding(
                "GYR338",
                f"group too large: {int(long.sum())} groups have more members than declared: {', '.join(names)}; the "
                "same name for two prompts, or members twice",
                where=self._where(members, long, records),
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

    def _signal(self, case: Case, members: list[Ints], reward: Floats, records: Ints) -> Iterator[Finding]:
        many = [m for m in members if len(m) > 1 and np.isfinite(reward[m]).all()]
        flat = [m for m in many if np.ptp(reward[m]) == 0]
        if len(many) < 2 or not flat:
            return
        share = len(flat) / len(many)
        where = Ranges()
        self._add(where, np.concatenate(flat), records)
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

    def _advantages(
        self, case: Case, members: list[Ints], reward: Floats, advantage: Floats, target: Floats, records: Ints
    ) -> Iterator[Finding]:
        whole = [i for i, m in enumerate(members) if np.isfinite(reward[m]).all() and np.isfinite(advantage[m]).all()]
        scale = max(float(np.nanmax(np.abs(advantage))), 1e-6)
        complete = [i for i in whole if len(members[i]) == target[i] and len(members[i]) > 1]
        telling = [i for i in complete if np.ptp(reward[members[i]]) > 0]
        if self._no_baseline([members[i] for i in whole], reward, advantage, scale):
            where = Ranges()
            self._add(where, np.concatenate([members[i] for i in whole]), records)
            text = f"`{case.roles.key('advantage')}` equals `{case.roles.key('reward')}` in all {len(whole)} groups: no baseline was subtracted"
            yield case.finding("GYR339", text, where=where, role="advantage", side="training", severity=Severity.WARNING)
            return
        fits = {
            name: [i for i in telling if close(advantage[members[i]], model(reward[members[i]]), scale)] for name, model in MODELS.items()
        }
        name = max(fits, key=lambda n: len(fits[n]))
        n = int(np.median(target)) if len(target) else 0
        blocks = self._block_model(reward, advantage, n, scale)
        good = len(fits[name])
        if good * 2 <= len(telling) and blocks is None:
            yield from self._displaced(case, [members[i] for i in complete], reward, advantage, records, scale)
            if good == 0:
                return
        model = MODELS[name]
        exact_scale = "divided" not in name
        wrong: list[int] = []
        for i in whole:
            m = members[i]
            if len(m) < 2:
                continue
            if len(m) == target[i]:
                ok = close(advantage[m], model(reward[m]), scale)
            elif name == "leave-one-out":
                ok = same(advantage[m] - reward[m] * target[i] / (target[i] - 1), scale)
            elif exact_scale:
                ok = same(reward[m] - advantage[m], scale)
            else:
                ok = affine(reward[m], advantage[m], scale)
            if not ok:
                wrong.append(i)
        if not wrong or (good == 0 and blocks is None):
            return
        by_block = blocks is not None and self._explained(blocks, [members[i] for i in wrong], advantage, scale)
        if not by_block and good < 2 * max(1, len([i for i in wrong if i in telling])) and good < 2:
            return
        flags = np.zeros(len(members), np.bool_)
        flags[wrong] = True
        where = self._where(members, flags, records)
        worst = wrong[0]
        baselines = sorted({round(float(b), 4) for b in (reward[members[worst]] - advantage[members[worst]])})
        told = (
            f"in group {self.names[worst]} reward minus advantage is {', '.join(show(b) for b in baselines[:4])}"
            if len(baselines) > 1
            else f"group {self.names[worst]} has the baseline {show(baselines[0])}, its own mean is {show(reward[members[worst]].mean())}"
        )
        why = f"; the values are those of blocks of {n} in file order, which no longer are the groups" if by_block else ""
        text = (
            f"advantage not of own group: the implied baseline does not fit the group in {len(wrong)} of {len(members)} groups: {told}{why}"
        )
        evidence = [
            (int(records[k]), f"reward {show(reward[k])}, advantage {show(advantage[k])}, baseline {show(reward[k] - advantage[k])}")
            for k in members[worst][:5].tolist()
        ]
        yield case.finding(
            "GYR339",
            text,
            where=where,
            role="advantage",
            evidence=evidence,
            side="training",
            severity=None if by_block else Severity.WARNING,
        )

    @staticmethod
    def _no_baseline(members: list[Ints], reward: Floats, advantage: Floats, scale: float) -> bool:
        """Whether advantages are the rewards themselves, in groups whose mean reward is not 0."""
        many = [m for m in members if len(m) > 1]
        lifted = [m for m in many if abs(float(reward[m].mean())) > 10 * (load_record_limits().group_rounding * scale + 1e-4)]
        spread = [m for m in lifted if np.ptp(reward[m]) > 0]
        return len(spread) >= 2 and all(close(advantage[m], reward[m], scale) for m in many)

    @staticmethod
    def _block_model(reward: Floats, advantage: Floats, n: int, scale: float) -> Floats | None:
        """[rows] the advantages that blocks of n rows in file order give, when that explains at least 90 % of all; None otherwise."""
        if n < 2 or len(reward) < 2 * n:
            return None
        best: Floats | None = None
        best_share = 0.9
        for model in MODELS.values():
            made = np.concatenate([model(reward[at : at + n]) for at in range(0, len(reward), n)])
            share = float((np.abs(made - advantage) <= load_record_limits().group_rounding * scale + 1e-4).mean())
            if share >= best_share:
                best, best_share = made, share
        return best

    @staticmethod
    def _explained(blocks: Floats, wrong: list[Ints], advantage: Floats, scale: float) -> bool:
        rows = np.concatenate(wrong)
        return float((np.abs(blocks[rows] - advantage[rows]) <= load_record_limits().group_rounding * scale + 1e-4).mean()) >= 0.8

    def _displaced(
        self, case: Case, members: list[Ints], reward: Floats, advantage: Floats, records: Ints, scale: float
    ) -> Iterator[Finding]:
        """The right values at other rows; or values of the whole batch; or none that a group can give."""
        if len(members) < 2:
            return
        rows = np.sort(np.concatenate(members))
        have = advantage[rows]
        for name, model in MODELS.items():
            made = np.full(len(reward), np.nan)
            for m in members:
                made[m] = model(reward[m])
            right = made[rows]
            if not close(np.sort(have), np.sort(right), scale) or np.ptp(right) == 0:
                continue
            off = np.abs(have - right) > load_record_limits().group_rounding * scale + 1e-4
            if not off.any():
                return
            where = Ranges()
            self._add(where, rows[off], records)
            shift = next((k for k in (1, -1, 2, -2, 3, -3) if close(np.roll(right, k), have, scale)), 0)
            how = f"shifted by {abs(shift)} row{'s' if abs(shift) > 1 else ''}" if shift else "in another order"
            text = (
                f"advantage not of own group: the values are those of the groups ({name}), {how}: at {int(off.sum())} of "
                f"{len(rows)} records the advantage belongs to another record"
            )
            at = int(rows[off][0])
            yield case.finding(
                "GYR339",
                text,
                where=where,
                role="advantage",
                evidence=((int(records[at]), f"advantage {show(advantage[at])}, own group gives {show(made[at])}"),),
                side="training",
            )
            return
        whole = reward[rows]
        for label, ddof in (("standard deviation (n)", 0), ("standard deviation (n - 1)", 1), ("", -1)):
            spread = float(whole.std(ddof=ddof)) if ddof >= 0 else 1.0
            if spread > 0 and close((whole - whole.mean()) / spread, have, scale) and np.ptp(have) > 0:
                where = Ranges()
                self._add(where, rows, records)
                divided = f", divided by its {label}" if label else ""
                text = (
                    f"advantage not of own group: the baseline is the mean of all {len(rows)} records{divided}, not that of "
                    "each group: easy prompts are rewarded, hard ones punished"
                )
                yield case.finding("GYR339", text, where=where, role="advantage", side="training", severity=Severity.WARNING)
                return
        yield from self._impossible(case, members, reward, advantage, records, scale)

    def _impossible(
        self, case: Case, members: list[Ints], reward: Floats, advantage: Floats, records: Ints, scale: float
    ) -> Iterator[Finding]:
        """Where no known model fits: members of one group with equal rewards and unequal advantages, or the order turned round."""
        limit = load_record_limits().group_rounding
        turned = [
            m
            for m in members
            if len(m) > 1 and np.ptp(reward[m]) > 0 and affine(-reward[m], advantage[m], scale) and np.ptp(advantage[m]) > limit
        ]
        rising = [
            m
            for m in members
            if len(m) > 1 and np.ptp(reward[m]) > 0 and affine(reward[m], advantage[m], scale) and np.ptp(advantage[m]) > limit
        ]
        level = [m for m in rising if abs(float(advantage[m].mean())) <= limit * scale + 1e-4]
        lifted = [m for m in rising if abs(float(advantage[m].mean())) > 10 * (limit * scale + 1e-4)]
        if len(level) >= 3 and 0 < len(lifted) <= 0.3 * len(rising):
            where = Ranges()
            self._add(where, np.concatenate(lifted), records)
            mean = float(advantage[lifted[0]].mean())
            text = (
                f"advantage not of own group: the advantages of {len(lifted)} of {len(rising)} groups do not add up to 0 "
                f"(their mean is {show(mean)}), those of the others do: another group's baseline"
            )
            yield case.finding("GYR339", text, where=where, role="advantage", side="training", severity=Severity.WARNING)
        if len(turned) >= 2 and not rising:
            where = Ranges()
            self._add(where, np.concatenate(turned), records)
            yield case.finding(
                "GYR339",
                f"advantage falls as the reward rises in all {len(turned)} groups with spread: the sign is turned",
                where=where,
                role="advantage",
                side="training",
            )

    def _add(self, where: Ranges, rows: Ints, records: Ints) -> None:
        """Put rows' records into `where`, each under its own file."""
        rows = np.sort(rows)
        for at in np.unique(self.file_of[rows]).tolist():
            where.add(self.paths[at], records[rows[self.file_of[rows] == at]])

    def _where(self, members: list[Ints], chosen: Any, records: Ints) -> Ranges:  # noqa: ANN401 - a mask over groups
        where = Ranges()
        rows = np.concatenate([members[i] for i in np.flatnonzero(chosen).tolist()])
        self._add(where, rows, records)
        return where
