"""Comparisons, plans of comparisons and calibrated judges as text: for terminals, GitHub, JUnit XML and JSON."""
