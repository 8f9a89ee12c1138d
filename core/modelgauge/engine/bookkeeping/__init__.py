"""Counts of a run, and descriptions of failures."""
