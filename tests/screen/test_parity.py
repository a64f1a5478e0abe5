"""One promise, on every log that the project has: what is watched and what is read afterwards are judged alike."""

from pathlib import Path

import pytest

from gyrecheck.commands.ledger_run import Request, judge_paths
from gyrecheck.model.errors import GyreError
from gyrecheck.rulebook.codes import load_codes
from gyrecheck.screen.feed import RunFeed
from gyrecheck.stream.open_log import is_live_log

ROOT = Path(__file__).parents[2] / "fixtures" / "logs"
LOGS = sorted(path for path in ROOT.rglob("*") if path.is_file() and is_live_log(path.name))


def said(verdicts):
    return [(v.code, v.name, v.severity, v.state, v.quantity, v.value, v.message, v.first, v.evidence) for v in verdicts]


def test_every_fixture_log_is_covered():
    """The list is made by looking, so that a new log is in it: every file below fixtures/logs whose name is a log's."""
    assert set(LOGS) >= set(ROOT.rglob("*.log"))
    assert len(LOGS) > 200


@pytest.mark.parametrize("log", LOGS, ids=lambda path: str(path.relative_to(ROOT)))
def test_ledger_and_watch_give_the_same_verdicts(log):
    """Codes, states, quantities, values, messages and first lines are equal; where the ledger finds nothing to judge, watch judges nothing."""
    feed = RunFeed((str(log),), load_codes())
    feed.poll()
    feed.close()
    try:
        whole, _, _ = judge_paths(Request((str(log),)), load_codes())
    except GyreError:
        assert not feed.snapshot.series
        return
    assert said(feed.judged.verdicts) == said(whole.verdicts)
