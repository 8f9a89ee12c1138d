"""Planning comparisons: how many items they need, and which differences they can find."""
