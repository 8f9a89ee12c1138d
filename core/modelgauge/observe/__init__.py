"""What an observed app does: spans, and the traces that they form."""
