"""Names of the settings that a run folder keeps beside its trajectory files: they tell what the reader does with a field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gyrecheck.rulebook.contract import Contract
from gyrecheck.rulebook.field_names import leaf, normal

LARGEST = 1 << 20
DEPTH = 4


def run_settings(paths: Sequence[Path], contract: Contract) -> frozenset[str]:
    """Lower-case names of all settings in the settings files of the folders among `paths`, nested ones by their own name.

    A file that is no JSON object is passed over: it is not what was asked about.
    """
    found: set[str] = set()
    for folder in paths:
        if not folder.is_dir():
            continue
        for name in sorted(contract.words.get("settings_files", frozenset())):
            path = folder / name
            if not path.is_file() or path.stat().st_size > LARGEST:
                continue
            try:
                value = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError, RecursionError):
                continue
            found.update(normal(leaf(key)) for key in _names(value, 0))
    return frozenset(found)


def _names(value: Any, depth: int) -> Iterable[str]:  # noqa: ANN401 - decoded JSON
    if not isinstance(value, dict) or depth > DEPTH:
        return
    for key, item in value.items():
        if item is not None and item is not False:
            yield str(key)
        yield from _names(item, depth + 1)
