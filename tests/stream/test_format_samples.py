"""Every log format proves itself: its samples are recognised, and give exactly the events it says."""

from __future__ import annotations

import pytest

from gyrecheck.rulebook.log_formats import load_formats
from gyrecheck.stream.logs import format_failures

FORMATS = load_formats()


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_format_proves_itself(name: str) -> None:
    """Each sample is taken for its format (silent ones are not) and gives the listed events, no more and no less."""
    assert format_failures(FORMATS[name], FORMATS) == ()
