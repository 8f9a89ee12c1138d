"""Records and runs, made by `run_fixtures`."""

from run_fixtures import failure, folder, record, scored

__all__ = ["failure", "folder", "record", "scored"]
