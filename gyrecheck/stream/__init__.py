"""Reads runs: logs, JSON lines and counter shards become events."""
