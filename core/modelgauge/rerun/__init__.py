"""Runs that build on an earlier one: `resume`, `rescore` and `run_part`."""
