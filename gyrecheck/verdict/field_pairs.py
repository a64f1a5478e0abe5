"""Pair the sampler's fields with the trainer's: same, renamed, to be converted; and merged, missing, extra (requirement H5).

Fields meet by the contract's role, then by the same key, then by equal values. A conversion says what changes and what it loses. Imports
numpy through `layout` only where arrays are compared.
"""

from __future__ import annotations

from collections.abc import Mapping

from gyrecheck.model.field_sides import DataSide, SideField, SidePair
from gyrecheck.model.fields import Kind, Level, Tier
from gyrecheck.rulebook.contract import Contract
from gyrecheck.rulebook.field_names import normal
from gyrecheck.verdict.pair_values import same_content

MERGES: Mapping[str, tuple[str, ...]] = {"done": ("terminated", "truncated")}
"""A role that holds several others, not told apart."""
WIDTH = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int8": 1, "int16": 2, "int32": 4, "int64": 8}
FAMILY = {"f": "float", "b": "bool", "i": "int", "u": "int"}


def pair_fields(sampler: DataSide, trainer: DataSide, contract: Contract) -> tuple[SidePair, ...]:
    """One pair a field, in the sampler's order, then what only the trainer has."""
    theirs = {field.key: field for field in _demanded(sampler, trainer)}
    by_role = {field.role: field for field in theirs.values() if field.role}
    met: dict[str, tuple[SideField, bool]] = {}
    used: set[str] = set()

    def meet(mine: SideField, other: SideField | None, *, content: bool = False) -> None:
        if other is not None and mine.key not in met and other.key not in used:
            met[mine.key] = (other, content)
            used.add(other.key)

    for mine in sampler.fields:
        meet(mine, by_role.get(mine.role) if mine.role else None)
    for mine in sampler.fields:
        same = theirs.get(mine.key)
        if same is not None and (not mine.role or not same.role or mine.role == same.role):
            meet(mine, same)
    names = {normal(key): field for key, field in theirs.items() if not field.role}
    for mine in sampler.fields:
        if not mine.role:
            meet(mine, names.get(normal(mine.key)))
    merged = _merged(sampler, theirs, used, met)
    for mine in sampler.fields:
        if mine.key not in met and mine.key not in merged:
            meet(mine, _by_content(sampler, trainer, mine, theirs, used), content=True)
    pairs: list[SidePair] = []
    for mine in sampler.fields:
        if mine.key in met:
            other, content = met[mine.key]
            pairs.append(_pair(sampler, trainer, mine, other, content=content))
        elif mine.key in merged:
            other, reason = merged[mine.key]
            pairs.append(SidePair(mine, other, Tier.MERGED, reason=reason))
        elif not trainer.source and _core(mine, contract) and not _told_otherwise(mine, trainer):
            pairs.append(SidePair(mine, None, Tier.MISSING))
        else:
            pairs.append(SidePair(mine, None, Tier.EXTRA, reason="not read"))
    taken = used | {other.key for other, _ in merged.values()}
    pairs += [_unmet(field, trainer, contract) for field in theirs.values() if field.key not in taken]
    return tuple(pairs)


def _demanded(sampler: DataSide, trainer: DataSide) -> tuple[SideField, ...]:
    """The trainer's fields; of several record types that its source decodes, those of the one that fits the sampler's keys best."""
    structs: dict[str, list[SideField]] = {}
    for field in trainer.fields:
        for owner in _owners(field):
            structs.setdefault(owner, []).append(field)
    if len(structs) < 2:
        return trainer.fields
    have = {field.key for field in sampler.fields}
    best = min(structs.values(), key=lambda fields: sum(field.key not in have for field in fields))
    chosen = {field.key for field in best}
    return tuple(field for field in trainer.fields if field.key in chosen or not _owners(field))


def _owners(field: SideField) -> tuple[str, ...]:
    read = field.read
    return tuple(read.function.split("|")) if read is not None and read.how == "struct" else ()


def _merged(
    sampler: DataSide, theirs: Mapping[str, SideField], used: set[str], met: Mapping[str, tuple[SideField, bool]]
) -> dict[str, tuple[SideField, str]]:
    """The sampler's keys that arrive together under one key of the trainer, with the words for it."""
    mine = {field.role: field for field in sampler.fields if field.role and field.key not in met}
    merged: dict[str, tuple[SideField, str]] = {}
    for whole, parts in MERGES.items():
        other = next((field for field in theirs.values() if field.role == whole and field.key not in used), None)
        present = [mine[part] for part in parts if part in mine]
        if other is not None and len(present) == len(parts):
            for part in present:
                rest = " and ".join(field.key for field in present if field is not part)
                merged[part.key] = (other, f"with {rest}")
    prompt = mine.get("prompt_tokens")
    tokens = next((field for field, _ in met.values() if field.role == "tokens"), None)
    if prompt is not None and tokens is not None and tokens.key in {"input_ids", "sequences", "query_responses", "input_tokens"}:
        merged[prompt.key] = (tokens, "before the answer's tokens")
    return merged


def _by_content(sampler: DataSide, trainer: DataSide, mine: SideField, theirs: Mapping[str, SideField], used: set[str]) -> SideField | None:
    array = sampler.arrays.get(mine.key)
    if array is None:
        return None
    for field in theirs.values():
        other = trainer.arrays.get(field.key)
        roles_clash = bool(field.role and mine.role and field.role != mine.role)
        if field.key not in used and not roles_clash and other is not None and same_content(array, other):
            return field
    return None


def _pair(sampler: DataSide, trainer: DataSide, mine: SideField, other: SideField, *, content: bool) -> SidePair:
    """The grade of two fields that meet, with every difference in words."""
    renamed = mine.key != other.key
    reasons = [reason for reason in (_layout_change(sampler, trainer, mine, other), _dtype_change(mine, other)) if reason]
    loses = _losses(sampler, trainer, mine, other)
    tier = Tier.CONVERT if reasons else Tier.RENAMED if renamed else Tier.SAME
    more = _last_axis(sampler, trainer, mine, other)
    return SidePair(mine, other, tier, renamed=renamed, reason=", ".join(reasons), loses=loses, by_content=content, last_axis=more)


def _layout_change(sampler: DataSide, trainer: DataSide, mine: SideField, other: SideField) -> str:
    a, b = sampler.layout.order, trainer.layout.order
    if mine.shape is None:
        return ""
    if other.shape is None:
        moved = bool(a and b and a != b and len(other.axes) >= 2)
        return f"{_axes(a, mine.shape[_lead(sampler, mine) :], _lead(sampler, mine))} -> [{','.join(other.axes)}]" if moved else ""
    lead_a, lead_b = _lead(sampler, mine), _lead(trainer, other)
    tail_a, tail_b = mine.shape[lead_a:], other.shape[lead_b:]
    moved = lead_a == lead_b == 2 and {a, b} == {"BT", "TB"}
    if (
        not moved
        and lead_a == lead_b
        and len(tail_a) == len(tail_b)
        and all(-1 in (x, y) or x == y for x, y in zip(tail_a, tail_b, strict=True))
    ):
        return ""
    return f"{_told_axes(a, mine, lead_a)} -> {_told_axes(b, other, lead_b)}"


def _told_axes(order: str, field: SideField, lead: int) -> str:
    """The axes by name; by their lengths where nothing tells time from batch."""
    shape = field.shape or ()
    if not order and len(shape) > 1:
        return "[" + ",".join(str(n) if n >= 0 else "?" for n in shape) + "]"
    return _axes(order if lead == 2 else "N", shape[lead:], lead)


def _last_axis(sampler: DataSide, trainer: DataSide, mine: SideField, other: SideField) -> int:
    if mine.shape is None or other.shape is None or "" in {sampler.layout.order, trainer.layout.order}:
        return 0
    tails = mine.shape[_lead(sampler, mine) :], other.shape[_lead(trainer, other) :]
    return {((), (1,)): 1, ((1,), ()): -1}.get(tails, 0)


def _lead(side: DataSide, field: SideField) -> int:
    """Batch axes of a field: two for per-step fields of batched data, one for one value a record."""
    length = len(field.shape or ())
    order = side.layout.order
    if order == "N" or length < 2:
        return min(1, length)
    if order:
        return 2
    return 1


def _axes(order: str, tail: tuple[int, ...], lead: int) -> str:
    names = {"N": ["N"], "BT": ["B", "T"], "TB": ["T", "B"]}.get(order, ["?"] * lead)[:lead]
    rest = ["D"] if len(tail) == 1 else [str(n) if n >= 0 else "?" for n in tail]
    if len(tail) == 1 and tail[0] == 1:
        rest = ["1"]
    return "[" + ",".join([*names, *rest]) + "]"


def _dtype_change(mine: SideField, other: SideField) -> str:
    if not mine.dtype or not other.dtype or mine.dtype == other.dtype:
        return ""
    a, b = _family(mine), _family(other)
    widthless = mine.dtype not in WIDTH or other.dtype not in WIDTH  # text formats give the kind only
    return "" if a == b and widthless else f"{mine.dtype} -> {other.dtype}"


def _family(field: SideField) -> str:
    if field.kind in {Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.TEXT}:
        return str(field.kind.value)
    return FAMILY.get(field.dtype[:1], field.dtype.rstrip("0123456789"))


def _losses(sampler: DataSide, trainer: DataSide, mine: SideField, other: SideField) -> str:
    """What the conversion loses, or what is left undone: empty when all of the value survives."""
    a, b = _family(mine), _family(other)
    if a == "float" and b in {"int", "bool"} and mine.fractional:
        return f"{other.dtype} cuts the fractions of {mine.dtype}"
    if a == "int" and other.dtype == "float32" and mine.largest > 2**24:
        return f"float32 holds whole numbers up to 16,777,216 exactly, the largest here is {mine.largest:.0f}"
    if a == "float" and WIDTH.get(other.dtype) == 2 and WIDTH.get(mine.dtype, 4) > 2 and mine.role in {"logprob", "return", "wall_clock"}:
        return f"{other.dtype} keeps two or three digits: ratios of log-probs are then off by up to 1 %"
    lead_a, lead_b = _lead(sampler, mine), _lead(trainer, other)
    tail_a = (mine.shape or ())[lead_a:]
    if mine.shape is not None and other.shape is not None and lead_a == lead_b:
        tail_b = other.shape[lead_b:]
        if len(tail_a) == len(tail_b) and any(x != y and -1 not in (x, y) for x, y in zip(tail_a, tail_b, strict=True)):
            return f"{list(tail_a)} numbers a step at the sampler, {list(tail_b)} at the trainer"
    wanted = trainer.layout.order
    if trainer.source and wanted in {"BT", "TB"} and {wanted, sampler.layout.order} == {"BT", "TB"} and lead_a == 2:
        read = other.read
        if read is not None and not read.swaps:
            return f"no exchange of the first two axes is seen where the trainer reads it as {list(other.axes) or wanted}"
    return ""


def _core(field: SideField, contract: Contract) -> bool:
    spec = contract.roles.get(field.role)
    return spec is not None and (spec.required or field.role in {"policy_version", "reward", "action", "obs", "tokens"})


def _told_otherwise(field: SideField, trainer: DataSide) -> bool:
    """Rewards are gone where the trainer's batch holds what is computed from them; observations where it holds tokens."""
    roles = {other.role for other in trainer.fields}
    stand_ins = {"reward": {"advantage", "return"}, "obs": {"tokens"}, "action": {"tokens"}}
    return bool(roles & stand_ins.get(field.role, set()))


def _unmet(field: SideField, trainer: DataSide, contract: Contract) -> SidePair:
    """A field that only the trainer has: its own product, or missing at the sampler."""
    spec = contract.roles.get(field.role)
    own = spec is not None and (spec.side == "training" or field.role in {"return", "value", "advantage", "bootstrap_value"})
    if own and (field.read is None or field.read.stage == "train"):
        return SidePair(None, field, Tier.EXTRA, reason="computed by the trainer")
    if not trainer.source and not field.role:
        return SidePair(None, field, Tier.EXTRA, reason="made on the trainer's side")
    if field.read is not None and not field.role and field.read.how in {"attribute", "get", "test"}:
        words = (
            "read as an attribute, may be the object's own" if field.read.how == "attribute" else "optional: the trainer goes on without it"
        )
        return SidePair(None, field, Tier.EXTRA, reason=words)
    if spec is not None and spec.level is Level.RECORD and not trainer.source and field.role in {"length", "attention_mask"}:
        return SidePair(None, field, Tier.EXTRA, reason="made on the trainer's side")
    return SidePair(None, field, Tier.MISSING)
