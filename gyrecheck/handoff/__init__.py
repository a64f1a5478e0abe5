"""Reads trajectory files as streams of records, never executing code."""
