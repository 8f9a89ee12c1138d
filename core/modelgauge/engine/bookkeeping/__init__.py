"""What a run counts, and how it describes a failure."""
