"""The cache of responses: `keys` says what they depend on, `store` keeps them, `leases` shares them."""
