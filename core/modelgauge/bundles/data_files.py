"""The external data of runs in a bundle: files that may be passed on, in the form of a store of dependencies."""

import re
import shutil
from pathlib import Path

from modelgauge.dependencies.layout import StoredVersion, read_versions
from modelgauge.dependencies.safety import folder_name
from modelgauge.engine.run_files.folder import RUNS, RunFolder

FOLDER = "dependencies"
_FILE = re.compile(rf"{FOLDER}(/[a-z0-9_~.-]+){{3}}/(manifest\.json|data/[^/]+)")


def is_data_file(name: str) -> bool:
    """Return whether a path in a bundle is that of external data."""
    return _FILE.fullmatch(name) is not None


class DataFiles:
    """Copies the external data of runs into a bundle.

    Args:
        folder: gets the files of the bundle.
        data_dir: of the user, for runs that lie in no data folder.

    Attributes:
        left_out: why data is not in the bundle, by its owner and key.
    """

    def __init__(self, folder: Path, data_dir: Path) -> None:
        self._folder, self._data_dir = folder, data_dir
        self.left_out: dict[str, str] = {}

    def add(self, run: RunFolder, owner: str, versions: dict[str, str]) -> None:
        """Add the data of a run.

        Args:
            run: the run.
            owner: the name of its test, without options.
            versions: the version of each file of data, by key.
        """
        data_dir = run.path.parent.parent if run.path.parent.name == RUNS else self._data_dir
        for key, version in versions.items():
            stored = read_versions(data_dir / FOLDER / folder_name(owner) / folder_name(key))
            found = next((each for each in stored if each.manifest.version == version), None)
            if (why := _why_left_out(found)) is not None or found is None:
                self.left_out[f"{owner}:{key}"] = why or ""
                continue
            target = self._folder / found.folder.relative_to(data_dir)
            if not target.exists():
                shutil.copytree(found.folder, target)


def _why_left_out(found: StoredVersion | None) -> str | None:
    if found is None:
        return "it is not in the data folder of the run"
    if found.manifest.license is None:
        return "no license was declared when it was stored; if one is now, `modelgauge dependencies add` notes it"
    if found.manifest.steps:
        return "it is unpacked, so that nobody could compare it with its version"
    return None
