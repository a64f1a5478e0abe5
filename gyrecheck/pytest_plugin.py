"""Fixtures for a project's own tests: `gyre_contract` and `gyre_ledger`."""
