"""Pages of runs: the list, a run, an item, and what people note."""
