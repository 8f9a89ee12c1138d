"""The folder that one archive is unpacked into: every name is checked before it is made, every byte counted.

Only new plain files and folders are ever made here, by exclusive creation: no links, no modes, no
overwriting.
"""

from collections.abc import Iterable
from pathlib import Path

from modelgauge.dependencies.limits import Guard
from modelgauge.dependencies.names import fold, member_parts


class Destination:
    """Writes members under `folder`, which must be new and empty.

    Args:
        folder: where members go; nothing is written outside.
        guard: counts and refuses.
    """

    def __init__(self, folder: Path, guard: Guard) -> None:
        self.folder = folder
        self.guard = guard
        # By the folded path: the path, and whether it is a folder.
        self._known: dict[tuple[str, ...], tuple[tuple[str, ...], bool]] = {}

    def add_folder(self, name: str) -> None:
        """Makes a folder; one that is there already under the same spelling stays.

        Raises:
            UnsafeArchiveError: the name is unsafe or taken, or there are too many members.
        """
        parts = self._parts(name)
        if not self._claim_folders(parts, name):
            self.guard.count_member(name)  # so that one folder repeated without end meets the limit too
        self.folder.joinpath(*parts).mkdir(parents=True, exist_ok=True)

    def add_file(self, name: str, pieces: Iterable[bytes]) -> None:
        """Writes a file from pieces that are counted as they come.

        Raises:
            UnsafeArchiveError: the name is unsafe or taken, or the content exceeds a limit.
            OSError: the disk fails.
        """
        parts = self._parts(name)
        if not parts:
            raise self.guard.refusal("is a file without a name", member=name)
        self._claim_folders(parts[:-1], name)
        self._claim(parts, name, is_folder=False)
        path = self.folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        written = 0
        with path.open("xb") as file:
            for piece in pieces:
                written += len(piece)
                self.guard.check_member_bytes(written, name)
                file.write(piece)

    def _parts(self, name: str) -> tuple[str, ...]:
        try:
            return member_parts(name)
        except ValueError as error:
            raise self.guard.refusal(str(error), member=name) from None

    def _claim_folders(self, parts: tuple[str, ...], name: str) -> bool:
        """Claims a folder and those above it; whether any of them is new."""
        fresh = [self._claim(parts[:depth], name, is_folder=True) for depth in range(1, len(parts) + 1)]
        return any(fresh)

    def _claim(self, parts: tuple[str, ...], name: str, *, is_folder: bool) -> bool:
        key = tuple(map(fold, parts))
        if key not in self._known:
            self.guard.count_member(name)  # folders that only a longer name implies count too
            self._known[key] = (parts, is_folder)
            return True
        if is_folder and self._known[key] == (parts, True):
            return False
        other = "/".join(self._known[key][0])
        reason = f"takes the place of {other!r} (on systems where case or the form of accents does not count)"
        raise self.guard.refusal(reason, member=name)
