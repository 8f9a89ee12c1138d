"""The files of a run, and the one thread that writes them."""
