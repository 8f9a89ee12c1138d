"""Runs that people start from a page: what they order, what it would take, and the processes that do it."""
