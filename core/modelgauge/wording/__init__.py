"""How messages put things: articles, suggestions for misspelt names, long texts cut between words."""
