"""Bundles: runs in one file for other people, with the cache rows that they used; and checks of runs and bundles."""
