"""Working on items outside of the process that makes them: who starts workers, and what is said to them."""
