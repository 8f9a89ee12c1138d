"""Executor `ray`: the items of a run are worked on by actors of a Ray cluster."""
