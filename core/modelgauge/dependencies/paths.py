"""`DependencyPaths`: the paths of a test's data. Data declared `when_used` is fetched when its path is read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from modelgauge.dependencies.request import ResolvedDependency


class DependencyPaths(Mapping[str, Path]):
    """The paths of a test's data, by the test's keys.

    Iterating, `len` and `in` fetch nothing; `[key]`, `get`, `values` and `items` fetch what they return.

    Args:
        keys: in the order of the declaration.
        resolved: the data that was resolved before the test runs.
        resolve: called to find or fetch the data of another key.

    Attributes:
        there: the paths of data that was resolved before, or was read since.
        versions: the versions of that data.
    """

    def __init__(
        self,
        keys: Sequence[str],
        resolved: Mapping[str, ResolvedDependency],
        resolve: Callable[[str], ResolvedDependency],
    ) -> None:
        self._keys, self._resolved, self._resolve = tuple(keys), resolved, resolve
        self.there = {key: dependency.path for key, dependency in resolved.items()}
        self.versions = {key: dependency.version for key, dependency in resolved.items()}

    def for_a_run(self) -> "DependencyPaths":
        """Return these paths for a single run, so that its record has the versions that this run used."""
        return DependencyPaths(self._keys, self._resolved, self._resolve)

    def __getitem__(self, key: str) -> Path:
        if key not in self._keys:
            raise KeyError(key)
        if key not in self.there:
            resolved = self._resolve(key)
            self.there[key], self.versions[key] = resolved.path, resolved.version
        return self.there[key]

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        shown = {
            key: str(self.there[key]) if key in self.there else "fetched when used" for key in self._keys
        }
        return f"<DependencyPaths {shown}>"
