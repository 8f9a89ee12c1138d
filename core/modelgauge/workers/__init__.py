"""The worker's side of executors: objects made by names, items worked on, records sent back."""
