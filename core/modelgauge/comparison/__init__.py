"""Comparing runs: which items pair up, how the systems differ on them, and what that allows to say."""
