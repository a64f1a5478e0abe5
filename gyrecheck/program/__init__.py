"""Facts of all modules joined into names, classes, calls, effects and duties; pure."""
