"""The cache of responses in Redis, shared by several machines."""
