"""Records that hold a whole group: one list of rewards, one of advantages, an entry for each answer. Each entry is a member.

A list of rewards may as well be that of tokens, turns or steps. It is a group's where the record declares a group of just that size; or where
the lists of at least four records have one length, each record its own group, and nothing in it speaks of steps, episodes or single tokens.
"""

from __future__ import annotations

import numpy as np

from gyrecheck.model.fields import Kind
from gyrecheck.rulebook.field_names import leaf, normal
from gyrecheck.verdict.records.view import Floats, Ints, View, lead, rank

LEAST = 4
"""Records of one list length that say that the lists are groups."""
STEPPED = ("step", "episode_id", "obs", "terminated", "truncated", "done", "first", "return")


def members_of(view: View) -> tuple[Ints, Floats, Floats] | None:
    """([members] row, [members] reward, [members] advantage or NaN) of records that each hold a group; None where they do not."""
    reward, labels = view.column("reward"), view.labels("group_id")
    if (
        reward is None
        or (labels is None and not view.has("group_size"))
        or rank(reward) != 1
        or reward.kind not in {Kind.INT, Kind.FLOAT, Kind.BOOL}
    ):
        return None
    counts = np.asarray(reward.counts)
    if (
        not len(counts)
        or int(counts.min()) < 1
        or (labels is not None and len(set(labels)) != len(labels))
        or not _are_groups(view, counts)
    ):
        return None
    row = np.repeat(np.arange(view.rows), counts)
    column = view.column("advantage")
    advantage = np.full(len(row), np.nan)
    if column is not None and column.kind in {Kind.INT, Kind.FLOAT} and np.array_equal(np.asarray(column.counts), counts):
        advantage = np.asarray(column.flat).astype(np.float64)
    return row, np.asarray(reward.flat).astype(np.float64), advantage


def size_said(view: View) -> bool:
    """Whether a number beside the rewards says how many of them each record holds, under a declared size's name or one letter's."""
    reward = view.column("reward")
    if reward is None:
        return False
    counts = np.asarray(reward.counts)
    names = {
        view.roles.key("group_size"),
        *(key for key in view.batch.columns if leaf(key).lower() in view.contract.words.get("size_alone", ())),
    }
    said = [
        c for name in names if (c := view.batch.columns.get(name)) is not None and c.kind is Kind.INT and c.rows == len(np.asarray(c.flat))
    ]
    return any(rank(column) == 0 and np.array_equal(np.asarray(column.flat), counts) for column in said)


def _are_groups(view: View, counts: Ints) -> bool:
    tokens = view.column("tokens")
    if tokens is not None and rank(tokens) == 1 and np.array_equal(np.asarray(tokens.counts), counts):
        return False
    size = view.number("group_size")
    if size is not None:
        fits = size == counts
        return (
            bool(fits.any() and fits.sum() * 2 >= len(counts) and ((counts <= size) | ~np.isfinite(size)).all()) and int(counts.max()) > 1
        )
    parts = view.contract.words.get("parts", frozenset())
    stepped = any(view.has(role) for role in STEPPED) or any(
        not parts.isdisjoint(normal(leaf(key)).split("_")) for key in view.batch.columns
    )
    inside = tokens is None or (rank(tokens) == 2 and np.array_equal(lead(tokens), counts))
    return len(counts) >= LEAST and int(counts.min()) > 1 and int(counts.min()) == int(counts.max()) and inside and not stepped
