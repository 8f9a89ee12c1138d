"""The index of runs and items: SQLite with full-text search, made of the files and made again at any time."""
