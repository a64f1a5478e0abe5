"""A log read by several processes gives the report of one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from gyrecheck.commands import ledger_parts
from gyrecheck.commands.ledger_run import Request, judge_paths
from gyrecheck.rulebook.codes import load_codes


def _lines(steps: int, *, dated: bool) -> str:
    """A balanced run but for one trajectory that is lost at step 70."""
    out, sampled = [], 0
    for step in range(steps):
        front = f"2026-01-10T10:{step // 60:02}:{step % 60:02}Z" if dated else f"{(23 + step // 60) % 24:02}:{step % 60:02}:00"
        sampled += 5
        out.append(f"{front} pid=7 side=sampling sampled n=5 sampled_total={sampled} policy_version={step} act_calls=1")
        taken = 4 - (step == 70)
        out.append(f"{front} pid=8 side=training take dropped_stale=1 taken={taken} buffer_left=0 dropped_other=0 reason=none")
        out.append("progress 3%\r progress 4%\0")
        if step == 90:
            out.append("Resuming from checkpoint 12")
    return "\n".join(out) + "\n"


@pytest.mark.parametrize("dated", [True, False])
def test_parts_give_the_same_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dated: bool) -> None:
    """One process and three give the same verdicts, places and figures, also where times of day pass midnight."""
    log = tmp_path / "train.log"
    log.write_text(_lines(150, dated=dated), encoding="utf-8")
    request = Request((str(log),))
    monkeypatch.setattr(ledger_parts, "LARGE", 1 << 30)
    judged, snapshot, _ = judge_paths(request, load_codes())
    monkeypatch.setattr(ledger_parts, "LARGE", 1000)
    monkeypatch.setattr(ledger_parts.os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    again, joined, _ = judge_paths(request, load_codes())
    assert joined.files == snapshot.files
    assert joined == snapshot
    assert again == judged
    assert snapshot.readings > 300
