"""One panel each."""
