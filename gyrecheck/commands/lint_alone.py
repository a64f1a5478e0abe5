"""A verdict on files that were named one by one: what the rest of their project knows is asked before anything is held against them.

Only what was found is asked about, so that a clean file costs nothing more. Findings in other files are not shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gyrecheck.model.finding import Finding, Severity

if TYPE_CHECKING:
    from gyrecheck.commands.lint_check import Judged, Rules
    from gyrecheck.source.cache import Cache
    from gyrecheck.source.texts import Text

_LIGHT = frozenset({Severity.NOTE, Severity.OFF})


def with_neighbours(
    judged: Judged,
    texts: tuple[Text, ...],
    given: tuple[Path, ...],
    rules: Rules,
    cache: Cache,
    judge: Callable[[tuple[Text, ...]], Judged],
) -> Judged:
    """The same, with the findings that stay when the modules around the named files are read, too.

    Where part of the project is not there, what rests on other modules is at most a warning.
    """
    if any(path.is_dir() for path in given) or all(f.severity in _LIGHT for f in judged.findings):
        return judged
    from gyrecheck.source.companions import companions, missing_first_party

    named = {t.file.shown for t in texts}
    more = companions(texts, cache)
    findings = judged.findings
    if more:
        wide = judge((*texts, *more))
        findings = tuple(f for f in wide.findings if f.path in named)
        judged = msgspec.structs.replace(judged, topology=wide.topology, reason=wide.reason)
    rests = rules.words["rests_on_other_modules"]
    apart = {t.file.shown for t in texts if missing_first_party(t, cache)} if any(f.code in rests for f in findings) else set()
    return msgspec.structs.replace(judged, findings=tuple(_lowered(f) if f.path in apart and f.code in rests else f for f in findings))


def _lowered(finding: Finding) -> Finding:
    if finding.severity is not Severity.ERROR:
        return finding
    return replace(finding, severity=Severity.WARNING, hint=f"{finding.hint}; part of the project that this file imports was not found")
