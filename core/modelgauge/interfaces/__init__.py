"""Base classes for authors: tests, SUTs, annotators. Import the names from `modelgauge`."""
