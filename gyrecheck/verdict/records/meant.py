"""What keys must mean, given their words and their values, where no alias names them: a name alone cannot tell a value from a version.

A key without a role gets one when all its words belong to a family of `rules/fields/trajectory.toml` and its values have that family's
form. One letter is no name where no other key is known. Ids that every group of rows shares name the group, not the sample; whole numbers called `v` are versions, no values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from gyrecheck.model.fields import Column, Kind, RecordBatch
from gyrecheck.rulebook.contract import Contract, RoleMap
from gyrecheck.rulebook.field_names import Family, leaf

_SAMPLERS = ("rollout", "generator", "engine", "sampler", "behavior", "behaviour")
LEAST = 4
"""Rows from which the values of a batch say what their key means."""
NEAR = 64
"""Versions that a sample may lie behind its trainer where its step count is read as its version."""
_NUMBERS = frozenset((Kind.BOOL, Kind.INT, Kind.FLOAT))


def roles_meant(roles: RoleMap, batch: RecordBatch, contract: Contract, given: Mapping[str, str]) -> RoleMap:
    """`roles` with those that the batch's keys and values tell; roles and keys in `given` (role to key) stay as they are."""
    taken, of_key = dict(roles.keys), dict(roles.roles)
    fixed = set(given.values())
    for key, role in _moved(roles, batch, fixed, contract):
        del taken[of_key[key]]
        of_key.pop(key)
        if role:
            taken[role], of_key[key] = key, role
    parts = roles.parts
    sampler = leaf(taken.get("policy_version", ""))
    if sampler.startswith(_SAMPLERS) and "trainer_version" not in taken and "actor_version" not in fixed:
        trained = next((key for key in batch.columns if leaf(key) == "actor_version" and key not in of_key), None)
        if trained is not None:  # beside the rollout's, the actor is the network that is trained
            taken["trainer_version"], of_key[trained] = trained, "trainer_version"
    for family in contract.families:
        if family.role in taken or family.role not in contract.roles:
            continue
        for key, column in batch.columns.items():
            lane = family.role == "env_id" and _each_its_own(column)  # a buffer's slot, no environment
            if key not in of_key and key not in parts and family.says(key) and _fits(family, column) and not lane:
                taken[family.role], of_key[key] = key, family.role
                break
    counter = taken.get("sample_step", "")
    if counter and counter not in fixed and "policy_version" not in taken and _is_version(batch, counter, taken):
        del taken["sample_step"]
        taken["policy_version"], of_key[counter] = counter, "policy_version"
    if len(of_key) == 1 and not parts and (only := next(iter(of_key))) not in fixed and len(leaf(only)) == 1:
        return replace(roles, keys={}, roles={})  # one letter says nothing by itself
    if "group_id" not in taken and (shared := taken.get("prompt_tokens")) and _shared(batch.columns.get(shared)):
        taken["group_id"] = shared  # answers to one prompt are a group, whatever the prompt is called
    return replace(roles, keys=taken, roles=of_key) if taken != dict(roles.keys) else roles


def _moved(roles: RoleMap, batch: RecordBatch, fixed: set[str], contract: Contract) -> Iterator[tuple[str, str]]:
    """Keys whose values contradict the role that their name gave, with the role that they have (empty: none)."""
    value = roles.key("value")
    if value and value not in fixed and not roles.key("policy_version") and value.rpartition(".")[2].lower() == "v":
        column = batch.columns.get(value)
        if column is not None and column.kind is Kind.INT and _counts(column).max(initial=0) == 1:
            yield value, "policy_version"
    lane = roles.key("env_id")
    if lane and lane not in fixed and _each_its_own(batch.columns.get(lane)):
        yield lane, ""
    sample = roles.key("sample_id")
    loose = sample and sample not in fixed and not roles.key("group_id") and roles.key("reward")
    if (
        loose and _shared(batch.columns.get(sample)) and not _counts_within(batch.columns.get(sample), batch.columns.get(roles.key("step")))
    ) or (sample and sample not in fixed and not roles.key("group_id") and _alone(roles, batch, sample, contract)):
        yield sample, "group_id"


def _alone(roles: RoleMap, batch: RecordBatch, sample: str, contract: Contract) -> bool:
    """Whether each row has an id of its own, groups are declared, and advantages are those of groups of one: 0, or the reward itself under a prompt's id."""
    columns = [batch.columns.get(roles.key(role)) for role in ("group_size", "reward", "advantage")]
    size, reward, advantage = ([] if c is None or c.texts is not None or c.kind not in _NUMBERS else _numbers_of(c) for c in columns)
    names = _labels(column) if (column := batch.columns.get(sample)) is not None else []
    if not names or len(names) < LEAST or not len(names) == len(set(names)) == len(size) == len(reward) == len(advantage):
        return False
    return (
        min(size) > 1
        and len(set(reward)) > 1
        and (not any(advantage) or (advantage == reward and leaf(sample) in contract.words.get("of_prompts", ())))
    )


def _numbers_of(column: Column) -> list[float]:
    """[rows] the number of each row, also where all its tokens share it; empty where a row has none or several."""
    counts, flat = _counts(column), np.asarray(column.flat).astype(np.float64)
    if not len(counts) or int(counts.min()) < 1 or not np.isfinite(flat).all():
        return []
    starts = np.cumsum(counts) - counts
    low, high = np.minimum.reduceat(flat, starts), np.maximum.reduceat(flat, starts)
    return [float(x) for x in low] if (low == high).all() else []


def _is_version(batch: RecordBatch, counter: str, taken: Mapping[str, str]) -> bool:
    """Whether the step count beside answers is compared with the trainer's version: never above it, or a copy of the rows' own counter."""
    trainer, column = batch.columns.get(taken.get("trainer_version", "")), batch.columns.get(counter)
    if trainer is None or column is None or "tokens" not in taken:
        return False
    numbers = _whole_numbers(column)
    used = _whole_numbers(trainer)
    if numbers is None or used is None or len(numbers) != len(used):
        return False
    behind = used - numbers
    if (behind >= 0).all() and behind.max() <= NEAR:
        return True
    names = (key for key in batch.columns if key != counter and key not in taken.values())
    others = (_whole_numbers(batch.columns[key]) for key in names)
    varied = len(numbers) >= LEAST and len(np.unique(numbers)) * 2 > len(numbers)
    return varied and any(other is not None and np.array_equal(other, numbers) for other in others)


def _whole_numbers(column: Column) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """[rows] whole numbers of a column that has one in every row; None for another."""
    flat = np.asarray(column.flat)
    return flat.astype(np.int64) if column.kind is Kind.INT and column.rows == len(flat) and (_counts(column) == 1).all() else None


def _counts(column: Column) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.asarray(column.counts)


def _labels(column: Column) -> list[object]:
    """One label a row of a scalar column; empty where it is none."""
    if column.kind not in {Kind.TEXT, Kind.INT} or _counts(column).max(initial=0) > 1:
        return []
    return list(column.texts) if column.texts is not None else list(np.asarray(column.flat).tolist())


def _shared(column: Column | None) -> bool:
    """Whether the rows fall into at least two groups of one size, each with one label."""
    labels = _labels(column) if column is not None else []
    sizes = list(Counter(label for label in labels if label is not None).values())
    if len(labels) < LEAST or len(sizes) < 2:
        return False
    usual, often = Counter(sizes).most_common(1)[0]
    return usual >= 2 and often * 2 >= len(sizes) and min(sizes) >= 2


def _each_its_own(column: Column | None) -> bool:
    """Whether no label comes twice in several rows."""
    labels = _labels(column) if column is not None else []
    return len(labels) >= 2 * LEAST and len(set(labels)) == len(labels)


def _counts_within(shared: Column | None, step: Column | None) -> bool:
    """Whether a step counts on within the rows of one label: then they are steps of one trajectory, no group of answers."""
    if shared is None or step is None:
        return False
    names, steps = _labels(shared), _labels(step)
    if len(steps) != len(names):
        return True
    return len(set(zip(names, steps, strict=True))) > len(set(names))


def _fits(family: Family, column: Column) -> bool:
    """Whether the values have the family's form."""
    kinds = {kind for kind in column.kinds if kind is not Kind.NONE}
    if not kinds or (family.kinds and not kinds <= {*family.kinds}):
        return False
    counts = _counts(column)
    longest = int(counts.max(initial=0))
    form = family.form
    if form == "on":
        return kinds <= _NUMBERS and _is_flag(column) and bool(np.asarray(column.flat).any())
    if form in {"flag", "flags"}:
        return kinds <= _NUMBERS and _is_flag(column) and (form == "flag" or longest > 1)
    if form == "list":
        return longest > 1 and Kind.OBJECT not in kinds and Kind.TEXT not in kinds
    if form == "whole":
        return (kinds <= {Kind.INT, Kind.FLOAT} and _is_whole(column)) or (kinds == {Kind.TEXT} and _is_numbered(column))
    if form == "text":
        return kinds == {Kind.TEXT} and longest == 1
    if form == "shared":
        return _shared(column)
    if form in {"name", "scalar", "unique"}:
        return longest == 1 and Kind.OBJECT not in kinds and (form == "scalar" or Kind.FLOAT not in kinds)
    return Kind.OBJECT not in kinds and Kind.TEXT not in kinds


def _is_flag(column: Column) -> bool:
    flat = np.asarray(column.flat)
    return flat.dtype.kind == "b" or bool(np.isin(flat[np.isfinite(flat)], (0, 1)).all())


def _is_numbered(column: Column) -> bool:
    """Whether texts are one word and a number, as in `step-7`."""
    found = [re.fullmatch(r"([A-Za-z][A-Za-z_\-. ]*)(\d{1,15})", text) for text in column.texts or () if text is not None]
    return bool(found) and all(found) and len({match.group(1) for match in found if match}) == 1


def _is_whole(column: Column) -> bool:
    flat = np.asarray(column.flat).astype(np.float64)
    known = flat[np.isfinite(flat)]
    return len(known) > 0 and bool((known == np.round(known)).all() and known.min() >= -1)
