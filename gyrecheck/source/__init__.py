"""Reads code: files, facts of each, exact spans, edits, configurations."""
