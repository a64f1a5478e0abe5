"""The bundled loop's run folder, read for its own sake: each term of the balance from files alone, after any kind of death.

`sampled` from the producers' journals, fates from the settle ledgers (and the lines still owed by the trainer's checkpoint), `left`
and `in_flight` from names in `ready/` and `taken/`. A last line without a line end is torn and does not count.
"""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from pathlib import Path
from typing import Any

from gyrecheck.model.folder import FolderBalance

_SEGMENT = re.compile(r"^\.?(?P<producer>.+)-(?P<seq>\d+)-v(?P<version>\d+)-n(?P<count>\d+)\.(?:jsonl|arrow)(?P<tmp>\.tmp)?$")


def is_run_folder(path: Path) -> bool:
    """Whether the folder holds a run of the bundled loop."""
    return (path / "run.json").is_file() and ((path / "journal").is_dir() or (path / "ledger").is_dir())


def read_run_folder(path: Path) -> FolderBalance:
    """Recompute the balance of a run folder."""
    settings = _json(path / "run.json")
    produced: dict[str, int] = {}
    for journal in sorted((path / "journal").glob("*.jsonl")):
        for line in _lines(journal):
            if line.get("kind") == "segment":
                produced[str(line["segment"])] = int(line["trajectories"])
    settled = [line for ledger in sorted((path / "ledger").glob("*.jsonl")) for line in _lines(ledger) if line.get("kind") == "settled"]
    known = {str(line["segment"]) for line in settled}
    settled += [line for line in _owed(path / "state" / "trainer.safetensors") if str(line.get("segment")) not in known]
    taken, stale, other, ages, over = Counter[str](), Counter[str](), Counter[str](), Counter[int](), 0
    limit = _number(settings.get("max_age")) if settings.get("max_age_unit", "versions") in {"versions", "version"} else None
    for line in settled:
        ids = [str(i) for i in line.get("taken", ())]
        taken.update(ids)
        stale.update(str(i) for i in line.get("dropped_stale", ()))
        for members in dict(line.get("dropped_other") or {}).values():
            other.update(str(i) for i in members)
        age = int(line.get("trainer_version", 0)) - int(line.get("policy_version", 0))
        if ids:
            ages[age] += len(ids)
            over += len(ids) if limit is not None and age > limit else 0
    named = {str(line["segment"]) for line in settled}
    left, flying, lying = 0, 0, set()
    for file in [*(path / "ready").glob("*"), *(path / "taken").glob("*/*"), *(path / "ready").glob(".*.tmp")]:
        parts = _SEGMENT.match(file.name)
        if parts is None:
            continue
        name = file.name.removeprefix(".").removesuffix(".tmp") if parts["tmp"] else file.name
        if name in named or name in lying or (parts["tmp"] and name not in produced):
            continue
        lying.add(name)
        if parts["tmp"]:
            flying += int(parts["count"])
        else:
            left += int(parts["count"])
    every = taken + stale + other
    segments = {name.rsplit("-v", 1)[0] for name in produced}
    unknown = tuple(sorted(i for i in every if i.rsplit("-", 1)[0] not in segments)[:20]) if produced else ()
    missing = tuple(sorted(name for name in produced if name not in named and name not in lying))
    return FolderBalance(
        path=str(path),
        run_id=str(settings.get("run_id", "")),
        sampled=sum(produced.values()),
        taken=sum(taken.values()),
        dropped_stale=sum(stale.values()),
        dropped_other=sum(other.values()),
        left=left,
        in_flight=flying,
        twice=tuple(sorted(i for i, n in every.items() if n > 1)),
        unknown=unknown,
        missing=missing,
        over_age=over,
        max_age=limit,
        ages=dict(sorted(ages.items())),
    )


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        data = path.read_bytes()
    except OSError:
        return []
    out = []
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            out.append(value)
    return out


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _owed(path: Path) -> list[dict[str, Any]]:
    """Ledger lines that the trainer's checkpoint holds and had not yet written."""
    try:
        with path.open("rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            header = json.loads(file.read(min(size, 1 << 24)))
        state = json.loads(header.get("__metadata__", {}).get("trainer", "{}"))
    except (OSError, ValueError, struct.error):
        return []
    owed = state.get("owed", []) if isinstance(state, dict) else []
    out = []
    for item in owed:
        value = json.loads(item) if isinstance(item, str) else item
        if isinstance(value, dict):
            out.append(value)
    return out


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
