"""From an installed plugin to an object: hooks, discovery, registries, names, construction."""
