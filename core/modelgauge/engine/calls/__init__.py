"""One call to a SUT or an annotator: cache, single flight, limits, attempts."""
