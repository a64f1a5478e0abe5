"""Counts the two sides inside a live process. Never raises into it, never locks, starts no thread."""
