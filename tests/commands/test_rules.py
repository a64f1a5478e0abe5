"""`gyrecheck rules`: the list of codes and its filters."""

from __future__ import annotations

import pytest

from gyrecheck.commands.rules import listing
from gyrecheck.model.errors import GyreError
from gyrecheck.rulebook.codes import load_codes


def test_all_codes_are_listed_once_in_order() -> None:
    """Without a filter each code has one row, in the order of the numbers."""
    rows = listing(load_codes(), (), ()).tables["rules"].rows
    assert [row[0] for row in rows] == sorted(load_codes())


def test_family_and_engine_narrow_the_list() -> None:
    """Both filters hold at once."""
    rows = listing(load_codes(), ("GYR2",), ("hook",)).tables["rules"].rows
    assert rows
    assert all(str(row[0]).startswith("GYR2") and "hook" in str(row[2]) for row in rows)


def test_severities_stand_per_topology() -> None:
    """GYR201 is an error where the sides are apart, a warning in one program, and off in one loop."""
    row = next(r for r in listing(load_codes(), ("GYR201",), ()).tables["rules"].rows)
    assert row[3:6] == ("error", "warning", "off")


def test_a_family_that_fits_nothing_is_an_error_that_names_the_option() -> None:
    """A wrong family is never an empty list with exit 0."""
    with pytest.raises(GyreError, match="--family"):
        listing(load_codes(), ("GYR2x",), ())
