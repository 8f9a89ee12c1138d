"""What people read after a run. `plain` lays out the tables of all commands."""
