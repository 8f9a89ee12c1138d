"""Runs that build on an earlier run: `resume`, `rescore` and `run_part`."""
