"""Configuration: settings, secrets and their redaction, options of runs, and installed plugins."""
