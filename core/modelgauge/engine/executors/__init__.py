"""Working on items outside of the process that makes them: executors, their workers, and the messages between them."""
