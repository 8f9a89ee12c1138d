"""The threads and deadlines in which authors' code runs, and the loops in which callers wait."""
