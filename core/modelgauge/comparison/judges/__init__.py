"""Judges as instruments: their labels and those of people, how far both agree, and scores corrected for errors."""
