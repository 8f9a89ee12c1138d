"""Observation of apps: spans, and the traces that they form."""
