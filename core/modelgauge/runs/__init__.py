"""Runs as they were recorded: their records and items; nothing that they name is imported."""
