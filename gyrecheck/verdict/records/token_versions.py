"""Versions of the tokens or parts of a sample, against the one version that the sample as a whole is tagged with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.version_lists import version_list
from gyrecheck.verdict.records.view import View


class TokenVersions:
    """Reads the list beside the tag: parts of several versions, parts that go back, parts of another version."""

    def __init__(self) -> None:
        self.mixed = Ranges()
        self.backward = Ranges()
        self.opened = Ranges()
        self.other = Ranges()
        self.seen: dict[str, list[tuple[int, str]]] = {"mixed": [], "backward": [], "opened": [], "other": []}
        self.rows = 0

    def read(self, view: View) -> None:
        """Read one batch; negative entries (prompt tokens) do not count."""
        parts, tag = version_list(view, "token_versions"), view.integer("policy_version")
        if parts is None or tag is None or not len(parts.version):
            return
        kept, owner, low, high = parts.version, parts.row, parts.low, parts.high
        told = parts.told & tag[1]
        self.rows += int(told.sum())
        falls = np.zeros(view.rows, np.bool_)
        falls[owner[1:][(owner[1:] == owner[:-1]) & (kept[1:] < kept[:-1])]] = True
        end = view.integer("policy_version_end")
        newest = np.where(end[1], end[0], tag[0]) if end is not None else tag[0]
        spread = told & (high > low) & ~falls
        limit = view.number("max_lag")
        wide = (
            np.nan_to_num(high - low - limit, nan=0.0, posinf=0.0, neginf=0.0) > 0 if limit is not None else np.zeros(view.rows, np.bool_)
        )
        opened = spread & (tag[0] == low) & ~wide  # tagged with its oldest part, and every part says its own: nothing is hidden
        mixed = spread & ~opened
        other = told & ~spread & ~falls & (low != tag[0]) & (low != newest)
        for name, rows in (("backward", falls & told), ("mixed", mixed), ("opened", opened), ("other", other)):
            where: Ranges = getattr(self, name)
            where.add(view.path, view.records[rows])
            for at in np.flatnonzero(rows)[: 5 - len(self.seen[name])].tolist():
                own = ", ".join(show(v) for v in np.unique(kept[owner == at])[:6])
                self.seen[name].append((int(view.records[at]), f"tagged {tag[0][at]}, its parts {own}"))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Each of the three apart."""
        key, tag = case.roles.key("token_versions"), case.roles.key("policy_version")
        words = {
            "backward": f"version mixed inside a trajectory: `{key}` goes back within it",
            "mixed": f"version mixed inside a trajectory: `{key}` holds more than one version under one `{tag}`",
            "opened": f"version mixed inside a trajectory, and said so: `{key}` names each part's, `{tag}` the oldest",
            "other": f"`{tag}` is not the version of the tokens in `{key}`",
        }
        for name, text in words.items():
            where: Ranges = getattr(self, name)
            if where:
                seen = self.seen[name]
                yield case.finding(
                    "GYR341",
                    f"{text}, at {where.rows} of {self.rows} records: {seen[0][1]}",
                    where=where,
                    role="token_versions",
                    evidence=seen,
                    severity=Severity.NOTE if name == "opened" else Severity.WARNING,
                )
