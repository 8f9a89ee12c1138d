"""Pairing of runs: the systems to compare, whether their numbers are comparable, and the matching of items."""
