"""A hooked process of its own for each test."""

from __future__ import annotations

import pytest

from gyrecheck.hook import runtime as runtimes
from gyrecheck.stream.shards import read_run


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A runtime of its own in `tmp_path`; calling the fixture reads what it has written."""
    monkeypatch.setattr(runtimes, "_CURRENT", [])
    monkeypatch.setattr(runtimes.os, "register_at_fork", lambda **_: None)
    runtimes.open_in(str(tmp_path), "r1")

    def read():
        found = read_run(tmp_path)
        assert found is not None
        return found

    return read
