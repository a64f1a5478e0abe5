"""Whether the flags tell a true end from a time limit, and agree with each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from gyrecheck.model.finding import Finding, Severity
from gyrecheck.rulebook.record_limits import load_record_limits
from gyrecheck.verdict.records.question import Case
from gyrecheck.verdict.records.ranges import Ranges

if TYPE_CHECKING:
    from gyrecheck.verdict.records.episodes import Episodes


def time_limit(seen: Episodes, case: Case) -> Iterator[Finding]:
    """Several episodes end at exactly the same longest length, as terminations, and nothing is ever truncated."""
    if seen.limit_hit:
        text = (
            f"done confusion: at {seen.limit_hit.rows} ends `{case.roles.key('limit_reached')}` says that the time limit was reached, and "
            f"`{case.roles.key('terminated')}` is true as for a true end"
        )
        yield case.finding("GYR329", text, where=seen.limit_hit, role="terminated", severity=Severity.WARNING)
        return
    both = seen.both.rows
    if both >= 2 and both == seen.any_true["truncated"] < seen.any_true["terminated"]:
        text = (
            f"done confusion: `{case.roles.key('terminated')}` is true too at all {both} ends that `{case.roles.key('truncated')}` marks, "
            "so a reader that looks at terminated bootstraps nothing there"
        )
        yield case.finding("GYR329", text, where=seen.both, role="terminated", severity=Severity.WARNING)
        return
    if seen.any_true["truncated"]:
        return
    ended = [e for e in seen.episodes.values() if e.terminated or e.done]
    if len(ended) < 2:
        return
    lengths = Counter(e.length for e in ended)
    longest = max(lengths)
    hits = [e for e in ended if e.length == longest]
    unended = Counter(e.length for e in seen.episodes.values() if not (e.terminated or e.done))
    if unended[longest] >= len(hits):  # as many stop there without any flag: the rollout ends there, not the episode
        return
    if any(length > longest for length in unended) or len(hits) <= lengths[longest - 1]:  # no limit, or no pile at one
        return
    pile = max((count for length, count in lengths.items() if length != longest and 2 * length >= longest), default=0)
    declared = bool(np.isfinite(seen.limit)) and longest == seen.limit
    varied = len(lengths) >= 2
    if longest < (3 if declared else load_record_limits().short_episode) or not (
        (declared and hits) or (varied and len(hits) >= 3 and len(hits) > 2 * pile) or (varied and len(hits) == 2 and longest % 10 == 0)
    ):
        return
    where = Ranges()
    for e in sorted(hits, key=lambda e: e.record):
        where.add(e.path, np.array([e.record]))
    limit = f", which is the declared limit `{case.roles.key('max_steps')}`" if declared else ""
    if "terminated" in seen.flags_seen:
        flag = case.roles.key("terminated")
        missing = (
            f"`{case.roles.key('truncated')}` is never true in the file"
            if "truncated" in seen.flags_seen
            else "there is no `truncated` field"
        )
        text = (
            f"done confusion: {len(hits)} episodes end at exactly the same longest length ({longest} steps{limit}) with "
            f"{flag}=true; {missing}: very likely a time limit reported as termination"
        )
        yield case.finding("GYR329", text, where=where, role="terminated", severity=Severity.WARNING)
    else:
        text = (
            f"merged done: {len(hits)} episodes end at exactly the same longest length ({longest} steps{limit}) and "
            f"`{case.roles.key('done')}` does not say whether by a time limit"
        )
        yield case.finding("GYR309", text, where=where, role="done", severity=Severity.WARNING)


def told_apart(seen: Episodes, case: Case) -> Iterator[Finding]:
    """Flags that say too little, or contradict each other."""
    if seen.flags_seen == {"done"} and seen.any_true["done"]:
        setting, value = case.says("bootstrap_settings"), case.roles.key("bootstrap_value")
        why = f", and `{value}` is there to be" if value else f", and the run's setting `{setting}` says that it is" if setting else ""
        yield case.finding(
            "GYR309",
            f"`{case.roles.key('done')}` does not tell terminated from truncated: a value cannot be bootstrapped at cut-offs alone{why}",
            role="done",
            severity=Severity.WARNING if why else Severity.NOTE,
        )
    both = seen.both.rows
    if both >= 2 and both == seen.any_true["terminated"] == seen.any_true["truncated"]:
        text = f"terminated and truncated are both true at all {both} ends: one is a copy of the other, so they are not told apart"
        yield case.finding("GYR309", text, where=seen.both, role="truncated", severity=Severity.WARNING)
    if seen.contradict:
        if seen.done_is_terminated:
            return
        text = f"`{case.roles.key('done')}` is not terminated or truncated at {seen.contradict.rows} steps: {seen.contradict_seen[0][1]}"
        yield case.finding("GYR330", text, where=seen.contradict, role="done", evidence=seen.contradict_seen)
