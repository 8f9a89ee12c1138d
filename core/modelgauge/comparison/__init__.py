"""Comparison of runs: pairing of items, differences between systems, and the conclusions that they allow."""
