"""Data sets of goldens and test cases: read, written, compared, and run as a Test."""
