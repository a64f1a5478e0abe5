"""rules/*.toml as typed tables: strict, loud, standard library only."""
