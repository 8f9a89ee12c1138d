"""Runs to bundle, made by `bundled_runs`."""

from bundled_runs import bundled, data_dir, make_run, run

__all__ = ["bundled", "data_dir", "make_run", "run"]
