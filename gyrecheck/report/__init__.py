"""One output format each over one `Report`; the only floor that writes text besides `screen` and `cli`."""
