"""Versions of the tokens or parts of a sample, against the one version that the sample as a whole is tagged with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.model.finding import Finding, Severity
from gyrecheck.verdict.records.question import Case, show
from gyrecheck.verdict.records.ranges import Ranges
from gyrecheck.verdict.records.view import View


class TokenVersions:
    """Reads the list beside the tag: parts of several versions, parts that go back, parts of another version than the tag."""

    def __init__(self) -> None:
        self.mixed = Ranges()
        self.backward = Ranges()
        self.other = Ranges()
        self.seen: dict[str, list[tuple[int, str]]] = {"mixed": [], "backward": [], "other": []}
        self.rows = 0

    def read(self, view: View) -> None:
        """Read one batch; negative entries (prompt tokens) do not count."""
        column, tag = view.column("token_versions"), view.integer("policy_version")
        if column is None or tag is None or column.kind not in {Kind.INT, Kind.FLOAT} or column.texts is not None:
            return
        flat, counts = np.nan_to_num(np.asarray(column.flat).astype(np.float64), nan=-1.0), np.asarray(column.counts)
        row = np.repeat(np.arange(view.rows), counts)
        real = flat >= 0
        kept, owner = flat[real], row[real]
        if not len(kept):
            return
        low, high = np.full(view.rows, np.inf), np.full(view.rows, -np.inf)
        np.minimum.at(low, owner, kept)
        np.maximum.at(high, owner, kept)
        told = np.isfinite(low) & tag[1]
        self.rows += int(told.sum())
        falls = np.zeros(view.rows, np.bool_)
        falls[owner[1:][(owner[1:] == owner[:-1]) & (kept[1:] < kept[:-1])]] = True
        end = view.integer("policy_version_end")
        newest = np.where(end[1], end[0], tag[0]) if end is not None else tag[0]
        mixed = told & (high > low)
        other = told & ~mixed & (low != tag[0]) & (low != newest)
        for name, rows in (("backward", falls & told), ("mixed", mixed & ~falls), ("other", other)):
            where: Ranges = getattr(self, name)
            where.add(view.path, view.records[rows])
            for at in np.flatnonzero(rows)[: 5 - len(self.seen[name])].tolist():
                parts = ", ".join(show(v) for v in np.unique(kept[owner == at])[:6])
                self.seen[name].append((int(view.records[at]), f"tagged {tag[0][at]}, its parts {parts}"))

    def answer(self, case: Case) -> Iterator[Finding]:
        """Each of the three apart."""
        key, tag = case.roles.key("token_versions"), case.roles.key("policy_version")
        words = {
            "backward": f"version mixed inside a trajectory: `{key}` goes back within it",
            "mixed": f"version mixed inside a trajectory: `{key}` holds more than one version under one `{tag}`",
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
                    severity=Severity.WARNING,
                )
