"""The asyncio engine: concurrency, retries, limits, caching, resuming and writing, all in one code path."""
