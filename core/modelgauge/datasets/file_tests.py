"""Tests of data set files and metrics that are named: what the command line makes, and what a manifest keeps.

So a run of theirs can be continued and measured again. What such a test does is in `dataset_test.py`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from modelgauge.config.secrets import SecretStore
from modelgauge.data.records import DatasetReference
from modelgauge.datasets.dataset import EvaluationDataset, reference_to
from modelgauge.datasets.dataset_files import FILE_TYPES, FileForm, without_goldens
from modelgauge.datasets.dataset_test import DatasetTest
from modelgauge.datasets.fields import list_names
from modelgauge.datasets.versions import VersionsFolder, version_of_file
from modelgauge.files.regular import exists, real_path
from modelgauge.metrics.base import Metric
from modelgauge.plugins.discovery import Plugins


def made_metrics(uids: Iterable[str], plugins: Plugins, secrets: SecretStore) -> list[Metric]:
    """Create metrics from their uids, without duplicates.

    Raises:
        UnknownNameError: no metric has that name.
    """
    return [plugins.metrics.make(uid, secrets=secrets) for uid in dict.fromkeys(uids)]


def file_tests(
    files: Sequence[Path], metrics: Sequence[Metric], *, form: FileForm, taken: Collection[str]
) -> dict[Path, DatasetTest]:
    """Create a test for each file, named after the file's stem, or after its path if stems collide.

    Args:
        files: goldens as CSV, JSON or JSONL.
        metrics: judge them all.
        form: how the files are written.
        taken: names of other tests.

    Raises:
        InputFileError: a file cannot be read.
        InvalidDataError: a data set is empty.
    """
    datasets = {file: read_goldens(file, form) for file in dict.fromkeys(files)}
    names = {file: dataset.name or file.name for file, dataset in datasets.items()}
    times = Counter([*taken, *names.values()])
    return {
        file: DatasetTest(name if times[name] == 1 else str(file), datasets[file], metrics)
        for file, name in names.items()
    }


def read_goldens(file: Path, form: FileForm) -> EvaluationDataset:
    """Read the goldens of a file.

    Raises:
        InputFileError: it cannot be read, or holds none.
    """
    saved = version_of_file(file)
    if saved is not None:
        alias, number = saved
        dataset: EvaluationDataset = EvaluationDataset.pull(alias, number, data_dir=file.parents[2])
    else:
        dataset = EvaluationDataset.from_file(file, **form.arguments(file))
    if not dataset.goldens:
        raise without_goldens(file)
    return dataset


def file_named(name: Path, data_dir: Path) -> Path:
    """Return the file that a user names: by a path, or by ALIAS or ALIAS@VERSION of a saved data set.

    Args:
        name: what the user wrote.
        data_dir: the folder that has the versions.

    Raises:
        UnknownNameError: it can only be an alias, and no data set is saved under it.
    """
    if name.suffix.lower().lstrip(".") in FILE_TYPES or len(name.parts) > 1 or exists(name):
        return name
    alias, at, number = str(name).rpartition("@")
    if not (at and number.isascii() and number.isdigit()):
        alias, number = str(name), ""
    store = VersionsFolder(data_dir)
    return store.path(alias, store.version(alias, int(number) if number else None).number)


def inherited(
    file: Path, form: FileForm, columns: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Split the columns of an earlier run's file into those that another file has, and those that it lacks.

    Where it lacks one and has a column of the field's own name, that one holds the field, and nothing is lacking.

    Args:
        file: the other file.
        form: how it is written.
        columns: of the earlier run, by field.

    Raises:
        InputFileError: the file cannot be read.
    """
    if not columns:
        return {}, {}
    table, _ = form.read(file)
    there = set(table.columns)
    kept = {field: column for field, column in columns.items() if column in there}
    rest = {field: column for field, column in columns.items() if column not in there}
    return kept, {field: column for field, column in rest.items() if there.isdisjoint(list_names(field))}


def describe_inputs(files: Mapping[str, Path], metrics: Sequence[str], form: FileForm) -> dict[str, Any]:
    """Return the facts about such tests for a manifest.

    Args:
        files: by the uids of the tests.
        metrics: uids.
        form: how the files are written.
    """
    return {
        "columns": dict(form.columns),
        "delimiter": form.delimiter,
        "encoding": form.encoding,
        "datasets": {uid: str(real_path(file)) for uid, file in files.items()},
        "metrics": list(dict.fromkeys(metrics)),
    }


class NamedGoldens:
    """A data set file and metrics by name, of which a test is made again.

    Args:
        uid: of the test.
        file: the data set.
        metrics: uids.
        form: how the file is written.

    Raises:
        InputFileError: the file cannot be read, or holds no goldens.
    """

    def __init__(self, uid: str | None, file: Path, metrics: Sequence[str], form: FileForm) -> None:
        self.file, self.metrics, self.form = file, metrics, form
        self._dataset = read_goldens(file, form)
        self.uid = uid or self._dataset.name or file.name

    def inputs(self) -> dict[str, Any]:
        """Return the facts about the test for the manifest of a run."""
        return describe_inputs({self.uid: self.file}, self.metrics, self.form)

    @property
    def reference(self) -> DatasetReference:
        """The reference to the data set for a record."""
        return reference_to(self._dataset)

    def test(self, plugins: Plugins, secrets: SecretStore) -> DatasetTest:
        """Create the test with metrics of these plugins."""
        return DatasetTest(self.uid, self._dataset, made_metrics(self.metrics, plugins, secrets))
