"""Judges as instruments: labels of people beside theirs, how far both agree, and scores corrected for their errors."""
