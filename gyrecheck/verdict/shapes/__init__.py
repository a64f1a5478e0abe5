"""One question each, asked of the program by rules that are data."""
