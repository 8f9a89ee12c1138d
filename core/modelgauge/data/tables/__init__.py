"""Runs as tables: what columns they have, how records become rows, and rows data frames. Nothing here writes files."""
