"""One module per command: parse options, call readers and verdicts, hand a `Report` to a writer."""
