"""Runs that build on an earlier one: `resume` and `rescore`."""
