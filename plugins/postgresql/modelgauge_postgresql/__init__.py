"""The cache of responses in PostgreSQL, shared by several machines."""
