"""One file a trajectory file type."""
