"""Processing of items in other processes: executors, workers, and their messages."""
