"""Questions to trajectory records: each reads batches once, in constant memory, and answers with findings."""
