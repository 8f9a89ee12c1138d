"""Wording of messages: articles, suggestions for misspelt names, truncation of long texts."""
