"""The files of a run: journal, manifest, and the one thread that writes them."""
