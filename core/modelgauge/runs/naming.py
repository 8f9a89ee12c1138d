"""Resolution of run names: ids of runs or invocations, prefixes of ids, `latest`, folders, and files."""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from modelgauge.config.options import FOLDER, instance_of
from modelgauge.config.settings import load_settings
from modelgauge.engine.run_files.folder import MANIFEST, RUN_FILES, RUNS, RunFolder, by_invocation
from modelgauge.engine.run_files.ids import why_no_run_id
from modelgauge.errors import RecordError
from modelgauge.files.regular import exists, is_file, real_path
from modelgauge.runs.record_files import records_in
from modelgauge.runs.recorded_run import RecordedRun, recorded_run
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.phrases import counted, first_few

log = logging.getLogger(__name__)

PINNED = "pinned"
"""The name, in a comparison, of the pinned baseline of the runs that are compared with it."""
_LATEST = re.compile(r"latest(?:~([0-9]{1,9}))?")
_MOST_LISTED = 5

RUN = instance_of((str, Path), "the id or the folder of a run, or 'latest'")
"""Type of run names in Python."""


def data_folder(given: str | Path | None) -> Path:
    """Return the given data folder, or that of the settings.

    Raises:
        InvalidOptionError: it is no path.
    """
    FOLDER.check("data_dir", given, or_none=True)
    return Path(given) if given is not None else load_settings().data_dir


def find_runs(data_dir: Path, name: str) -> list[RunFolder]:
    """Return the runs with this name, oldest first.

    Args:
        data_dir: where runs are looked up by their ids.
        name: a run's id or folder, or a file in it; the id of an invocation, for all runs of one command; the unique
            beginning of one of these ids; `latest` for the newest invocation, `latest~1` for the one before it.

    Raises:
        RecordError: there is no run, or the beginning is that of several.
    """
    runs, path = data_dir / RUNS, Path(name)
    if folder := _folder_named(data_dir, name):
        return [folder]
    invocations, damaged = by_invocation(runs)
    unread = f" {len(damaged)} of the runs there cannot be read." if damaged else ""
    found = invocations.get(name)
    if found is None and (before := invocations_before_latest(data_dir, name)) is not None:
        found = _newest(invocations, before, f"{runs}.{unread}")
    if found := found or _beginning_with(name, invocations):
        for error in damaged:
            log.warning("A run that may be of the same command cannot be read. %s", error)
        return found
    if is_file(path):
        raise RecordError(
            f"There is no run '{name}' in {runs}.{unread} It is a file.",
            fix=f"Give the id or the folder of a run. If it is a bundle, unpack it: modelgauge unbundle {name}",
        )
    if name == PINNED:
        raise RecordError(
            "'pinned' is the baseline of a comparison, and names no run elsewhere.",
            fix="Compare a run with it: modelgauge compare pinned RUN. Its id: modelgauge baselines.",
        )
    ids = [run.run_id for found in invocations.values() for run in found]
    newest = f"The latest runs are: {', '.join(sorted(ids)[-3:])}." if ids else "Give its --data-dir."
    raise RecordError(
        f"There is no run '{name}' in {runs}.{unread}",
        fix=did_you_mean(name, ["latest", *reversed(ids), *invocations]) + newest,
    )


def invocations_before_latest(data_dir: Path, name: str) -> int | None:
    """Return 0 for `latest` and N for `latest~N`; None for other names, and if the folder of a run has this name."""
    latest = _LATEST.fullmatch(name)
    return int(latest[1] or 0) if latest and not _folder_named(data_dir, name) else None


def _folder_named(data_dir: Path, name: str) -> RunFolder | None:
    """Return the run that has this folder, file or id; None if there is none."""
    path = Path(name)
    in_a_run = path.name in RUN_FILES and is_file(path)
    folders = [path.parent if in_a_run else path]
    folders += [data_dir / RUNS / name] if why_no_run_id(name) is None else []
    return next((RunFolder(folder) for folder in folders if is_file(folder / MANIFEST)), None)


def get_id(runs: Sequence[RunFolder]) -> str:
    """Return the id that finds these runs again."""
    return runs[0].run_id if len(runs) == 1 else str(runs[0].read_manifest().get("invocation_id"))


def lasting_name(name: str, runs: Sequence[RunFolder]) -> str:
    """Return a name that keeps meaning the same runs, unlike `latest`: their id, or their location.

    Args:
        name: what a user wrote.
        runs: that it means.
    """
    return str(real_path(name)) if exists(Path(name)) else get_id(runs)


def find_each(data_dir: Path, names: Iterable[str]) -> list[RunFolder]:
    """Return the runs with these names, without duplicates; see `find_runs`."""
    found = (run for name in names for run in find_runs(data_dir, name))
    return list({real_path(run.path): run for run in found}.values())


def _newest(invocations: Mapping[str, list[RunFolder]], before: int, where: str) -> list[RunFolder]:
    """Return the runs of the newest invocation, or of an earlier one, counted back from it."""
    if before >= len(invocations):
        number = len(invocations)
        wanted = f"latest~{before}" if before else "latest"
        raise RecordError(
            f"There is no '{wanted}': {counted(number, 'invocation is', 'invocations are')} in {where}",
            fix=f"The oldest is {f'latest~{number - 1}' if number > 1 else 'latest'}: `modelgauge runs` lists them."
            if number
            else "Run a test first, or give its --data-dir.",
        )
    return list(invocations.values())[-1 - before]


def _beginning_with(prefix: str, invocations: Mapping[str, list[RunFolder]]) -> list[RunFolder]:
    """Return the only run, or the runs of the only invocation, whose id has this prefix; none if there is none.

    If an invocation and only its own runs have this prefix, all its runs are meant.

    Raises:
        RecordError: several do.
    """
    named = {own: runs for own, runs in invocations.items() if prefix and own.startswith(prefix)}
    of_id = [
        folder
        for runs in invocations.values()
        for folder in runs
        if prefix and folder.run_id.startswith(prefix)
    ]
    rest = [run for run in of_id if not any(run in runs for runs in named.values())]
    if len(named) + len(rest) <= 1:
        return next(iter(named.values()), rest)
    meanings = [
        *(f"{own} ({len(runs)} runs)" if len(runs) > 1 else runs[0].run_id for own, runs in named.items()),
        *(run.run_id for run in rest),
    ]
    listed = first_few(sorted(meanings, reverse=True), _MOST_LISTED)
    raise RecordError(
        f"'{prefix}' is the beginning of {len(meanings):,} ids: {listed}.",
        fix="Give more of the one that you mean: `modelgauge runs` lists them.",
    )


def is_file_of_records(path: Path) -> bool:
    """Return whether a path is a file with whole records, not a file in the folder of a run."""
    return is_file(path) and not (path.name in RUN_FILES and is_file(path.parent / MANIFEST))


def recorded_runs(data_dir: Path, name: str) -> tuple[Sequence[RecordedRun], Sequence[RecordError]]:
    """Return the runs with this name, and the errors of those that cannot be read.

    Args:
        data_dir: where runs are looked up by their ids.
        name: see `find_runs`, or a file of `--output-file`.

    Raises:
        RecordError: there is no run, or none can be read.
    """
    if is_file_of_records(Path(name)):
        return [RecordedRun(record) for record in records_in(Path(name))], ()
    found: list[RecordedRun] = []
    damaged: list[RecordError] = []
    for folder in find_runs(data_dir, name):
        try:
            found.append(recorded_run(folder))
        except RecordError as error:
            damaged.append(error)
    if not found:
        raise damaged[0]
    return found, damaged
