"""Which saved versions a run judged, and which runs judged a version: the digest of the goldens tells."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from modelgauge.datasets.versions import Version, VersionsFolder
from modelgauge_workbench.index.queries import DIGEST
from modelgauge_workbench.runs.listing import shown_run
from modelgauge_workbench.workbench import Workbench

_MOST_RUNS = 500  # of a data set


def versions_of_run(workbench: Workbench, row: sqlite3.Row) -> list[dict[str, Any]]:
    """Return name and number of the saved versions that a run judged.

    That is the version that it names. If it judged a file, or its data set has another name by now, it is the first
    version with the same goldens: copies are younger.

    Args:
        workbench: has the run.
        row: of the run in the index.
    """
    store, found = VersionsFolder(workbench.data_dir), list[dict[str, Any]]()
    for reference in json.loads(row["datasets"]):
        name, number = reference.get("name"), reference.get("version")
        same = store.same(str(reference.get("digest")))
        same.sort(key=lambda pair: (pair[0] != name, pair[1].number != number, pair[1].time))
        found += [{"name": alias, "version": version.number} for alias, version in same[:1]]
    return found


def runs_of_versions(
    workbench: Workbench, alias: str, versions: Sequence[Version]
) -> dict[int, list[dict[str, Any]]]:
    """Return the runs of each version of a data set, the latest first, by its number.

    Args:
        workbench: has the runs.
        alias: of the data set.
        versions: of it.
    """
    digests = {version.content_hash for version in versions}
    query = f"""
        SELECT runs.* FROM runs WHERE number IN
            (SELECT run FROM labels WHERE name = '{DIGEST}' AND value IN ({", ".join("?" * len(digests))}))
        ORDER BY began DESC LIMIT {_MOST_RUNS}
    """  # noqa: S608  marks only
    with workbench.index.reading() as db:
        runs = db.execute(query, [*digests]).fetchall()
    found: dict[int, list[dict[str, Any]]] = {}
    for run in runs:
        numbers = {_number_of(reference, alias, versions) for reference in json.loads(run["datasets"])}
        for number in numbers - {None}:
            found.setdefault(number, []).append(shown_run(run))
    return found


def _number_of(reference: Mapping[str, Any], alias: str, versions: Sequence[Version]) -> Any:
    """Return the version that a run names, or the latest that has the same goldens; None if none has."""
    same = [version.number for version in versions if version.content_hash == reference.get("digest")]
    named = reference.get("version") if reference.get("name") == alias else None
    return named if named in same else same[-1] if same else None
