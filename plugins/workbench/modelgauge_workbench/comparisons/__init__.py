"""Runs beside each other: comparisons of two or more, and a result over time."""
