"""Comparing systems over the same items: differences and their tests, many at once, and how many items they need."""
