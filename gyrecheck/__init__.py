"""gyrecheck: find where sampling and training touch, and whether the data adds up."""

__version__ = "0.1.0"
