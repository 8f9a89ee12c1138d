"""Runs as tables: their columns, and conversion of records to rows and data frames. Nothing here writes files."""
