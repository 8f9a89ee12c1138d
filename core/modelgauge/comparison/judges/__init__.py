"""Judges as instruments: their labels and those of people, the agreement of both, and corrected scores."""
