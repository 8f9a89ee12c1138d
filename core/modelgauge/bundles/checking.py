"""Checking runs and bundles by the names that a user gives."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from modelgauge.bundles.manifest import changed, problems, read_manifest
from modelgauge.bundles.run_checks import RunCheck, check_run
from modelgauge.bundles.signing import who_signed
from modelgauge.bundles.unbundling import check_is_bundle, make_cache, unpacked
from modelgauge.engine.run_files.folder import BUNDLE, RUN_FILES, RUNS, RunFolder, runs_in
from modelgauge.errors import BundleError, ModelGaugeError
from modelgauge.files.regular import is_file
from modelgauge.runs.naming import find_runs

Scores = Callable[[RunCheck, str], None]
"""Measures the answers of a run again, and adds what is found. The second argument is the name that the user gave."""


@dataclass(slots=True)
class BundleCheck:
    """Findings of checking a bundle, or the runs with a name.

    Args:
        name: as the user gave it.
        findings: about the bundle.
        signed_by: a sentence; None if it is not a bundle.
        runs: the checks of the runs.
    """

    name: str
    findings: list[str] = field(default_factory=list)
    signed_by: str | None = None
    runs: list[RunCheck] = field(default_factory=list)


def check(name: str, data_dir: Path, allowed_signers: Path | None, scores: Scores | None) -> BundleCheck:
    """Check a bundle, the folder of an unpacked bundle, or runs.

    Args:
        name: a path, or what stands for runs.
        data_dir: where runs are looked up.
        allowed_signers: who must have signed a bundle; None for anybody or nobody.
        scores: also measures again; None for no.

    Raises:
        RecordError: there is nothing of this name, or it is something else.
    """
    made, path = BundleCheck(name), Path(name)
    if is_file(path) and path.name not in RUN_FILES:
        check_is_bundle(path)
        with TemporaryDirectory(prefix="modelgauge-check-") as scratch:
            try:
                with unpacked(path, Path(scratch)) as folder:
                    made.findings += problems(folder, read_manifest(folder))
                    _note_signature(made, folder, allowed_signers)
                    make_cache(folder)
                    _check_runs(made, runs_in(folder / RUNS), scores)
            except BundleError as error:
                made.findings.append(error.problem.rstrip("."))
    elif is_file(path / BUNDLE):
        _note_signature(made, path, allowed_signers)
        _check_runs(made, runs_in(path / RUNS), scores)
    else:
        _check_runs(made, find_runs(data_dir, name), scores)
    return made


def _note_signature(made: BundleCheck, folder: Path, allowed_signers: Path | None) -> None:
    try:
        made.signed_by = who_signed(folder, allowed_signers)
    except BundleError as error:
        made.findings.append(error.problem.rstrip("."))


def _check_runs(made: BundleCheck, runs: list[RunFolder], scores: Scores | None) -> None:
    for run in runs:
        try:
            found = check_run(run)
        except ModelGaugeError as error:
            found = RunCheck(run)
            found.add(error.problem)
        else:
            for problem in _changed_since_unpacking(run):
                found.add(problem)
            if scores is not None:
                scores(found, made.name)
        made.runs.append(found)


def _changed_since_unpacking(run: RunFolder) -> Iterator[str]:
    """List the files of a run that changed since it was unpacked from a bundle, if it was."""
    if run.is_bundled():
        folder = run.path.parent.parent
        manifest = read_manifest(folder)
        if run.run_id in manifest.runs:
            yield from changed(folder, manifest, run.run_id)
