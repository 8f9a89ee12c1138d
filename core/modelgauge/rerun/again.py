"""Repeating a run: continue it, run a part of it, or measure its recorded answers."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from modelgauge.api import Runner, RunnerOptions
from modelgauge.config.options import instance_of
from modelgauge.config.secrets import SecretDescription
from modelgauge.data.records import TestRecord
from modelgauge.data.results import GIVEN
from modelgauge.datasets.dataset_files import FileForm
from modelgauge.datasets.file_tests import NamedGoldens, file_named
from modelgauge.engine.loop.blocking import blocking
from modelgauge.engine.planning import Plan
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.work import Work
from modelgauge.errors import RecordError, UsageError
from modelgauge.files.regular import real_path
from modelgauge.metrics.judges import JudgeLike, judging_by_default
from modelgauge.plugins.resolution import Resolver, SUTName, TestName
from modelgauge.rerun.original import Names, OriginalRun
from modelgauge.rerun.rated_answers import RATED, RatedAnswers
from modelgauge.rerun.trust import check_names
from modelgauge.runs.naming import RUN, data_folder, find_runs

_DATASET = instance_of((str, Path), "the path of a file, or the alias of a data set that was saved")
_SECRET = re.compile(r'"\$secret": "([\w.-]+)\.([\w-]+)"', re.ASCII)


class RerunOptions(RunnerOptions, total=False):
    """Keyword arguments of `resume` and `rescore`: those of a `Runner`, and plugins by file."""

    plugin_files: Sequence[str]


def resume(
    run: str | Path,
    data_dir: str | Path | None = None,
    *,
    test: TestName | None = None,
    sut: SUTName | None = None,
    judge: JudgeLike | None = None,
    dataset: str | Path | None = None,
    metrics: Sequence[str] = (),
    retry_failed: bool = False,
    **options: Unpack[RerunOptions],
) -> list[TestRecord]:
    """Continue stopped runs; items with a record, failed items included, are not asked again.

    With `retry_failed`, failed items are asked again, even those of complete runs. An unusable answer in the cache
    (`translate_response` refuses it, or the service blocked it) is replaced by a new one.

    Concurrency, rates, time-outs, retries and caps are those of the run, unless the call sets others, which apply from
    then on. Caps are about the whole command: what its runs spent before counts.

    Args:
        run: a run's id or folder, or an invocation's id: then each of its runs that is not complete.
        data_dir: where runs are looked up.
        test: the test, where it has no uid that can be found (an object of a notebook).
        sut: the SUT, where it has no uid that can be found.
        judge: the run's judge. For a run that is not known to be the user's own, it must be named, and so must `sut`,
            `plugin_files`, `dependencies`, `dataset` and `metrics`. The error lists what is missing.
        dataset: the run's file of goldens, or another with the same content; needed as `judge` is.
        metrics: the run's, where their names have options; needed as `judge` is.
        retry_failed: whether to ask failed items again. Scored items are kept.
        options: what `Runner` takes; what the results depend on is as it was.

    Returns:
        The records of the runs, those of complete runs too.

    Raises:
        RecordError: there is no such run, or its test, items, data, SUT or judges are not what they were. Nothing is
            asked then, and what the run has written stays as it is.
    """
    names = Names(test, sut, judge, dataset, metrics)
    records: list[TestRecord] = []
    for folder, original in _find_runs(run, data_dir, names, options, retry_failed=retry_failed):
        if original is None:
            records.append(folder.read_record())
        else:
            with _prepared_rest(original, names, options, data_dir, continues=folder) as prepared:
                records.append(_run(*prepared, retry_failed=retry_failed))
    return records


def plan_resume(
    run: str | Path,
    data_dir: str | Path | None = None,
    *,
    test: TestName | None = None,
    sut: SUTName | None = None,
    judge: JudgeLike | None = None,
    dataset: str | Path | None = None,
    metrics: Sequence[str] = (),
    retry_failed: bool = False,
    **options: Unpack[RerunOptions],
) -> list[Plan]:
    """Say what `resume` would take: a plan for each run that is not complete, of its items without a record.

    Nothing is sent, and nothing written. Arguments and errors are those of `resume`.
    """
    names = Names(test, sut, judge, dataset, metrics)
    plans: list[Plan] = []
    for folder, original in _find_runs(run, data_dir, names, options, retry_failed=retry_failed):
        if original is not None:
            with _prepared_rest(original, names, options, data_dir, continues=folder) as (runner, work, _):
                runner.options = replace(runner.options, retry_failed=retry_failed)
                plans += runner.plan_works([work])
    return plans


def rescore(
    run: str | Path,
    data_dir: str | Path | None = None,
    *,
    test: TestName | None = None,
    dataset: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    metrics: Sequence[str] = (),
    judge: JudgeLike | None = None,
    ratings: bool = False,
    **options: Unpack[RerunOptions],
) -> list[TestRecord]:
    """Measure the recorded answers of runs with the test's present annotators and `measure_quality`.

    Makes new runs. No SUT is made, and none is asked; annotators go through the cache.

    Args:
        run: a run's id or folder, or an invocation's id.
        data_dir: where runs are looked up. If a run is not known to be the user's own, its names must be given again:
            its `plugin_files`, `dependencies`, `judge`, and the others that the error lists.
        test: another test, or an object; by default the run's.
        dataset: goldens instead of a test: a file, or ALIAS or ALIAS@VERSION of a data set that was saved; by default
            the run's data set, if it has one.
        columns: the column of each field of goldens, by field. The run's own columns count for other fields, if the
            file has them.
        delimiter: between the cells of a CSV file; by default that of the run's file, a comma for another.
        encoding: of the file's text; by default that of the run's file, UTF-8 for another.
        metrics: uids of the metrics that judge them; by default the run's.
        judge: judges for the metrics that name none; by default the run's.
        ratings: measure only by the ratings that people gave on the pages of `modelgauge serve`.
        options: what `Runner` takes.

    Raises:
        RecordError: there is no such run, or its answers are not answers to the test's prompts.
        UsageError: there is a data set without metrics, or metrics without a data set, or a test or ratings with them.
        InputFileError: a run has no ratings.
    """
    _DATASET.check("dataset", dataset, or_none=True)
    form = FileForm(columns or {}, delimiter, encoding)
    if (test is not None) + ratings + (dataset is not None or bool(metrics) or any(form)) > 1:
        raise UsageError(
            "A run is measured by a test, by the metrics of a data set, or by ratings.",
            fix="Give one of them.",
        )
    originals = [OriginalRun(folder) for folder in _find(run, data_dir)]
    if dataset is not None:
        dataset = file_named(Path(dataset), data_folder(data_dir))
    names = Names(test, None, judge, dataset, metrics, form).with_options(options)
    named = [names._replace(test=RatedAnswers(RATED, run.folder)) if ratings else names for run in originals]
    for original, its_names in zip(originals, named, strict=True):
        check_names(original, its_names, "rescore")
    return [_rescore_one(*each, options, data_dir) for each in zip(originals, named, strict=True)]


def run_part(
    run: str | Path,
    places: tuple[int, int],
    data_dir: str | Path | None = None,
    **options: Unpack[RerunOptions],
) -> TestRecord:
    """Measure some items of a run in a new run, by what `run.json` says.

    Several processes can share a run in this way: the records of all ranges are together those of the whole run.

    Args:
        run: its id or folder; it need not have come to its end.
        places: of the first item of the part, and after its last, among the items of the run.
        data_dir: where runs are looked up.
        options: what `Runner` takes; what the results depend on is as it was.

    Raises:
        RecordError: there is no such run, it is not known to be the user's own, or its objects are not what they were.
    """
    original = OriginalRun(_find(run, data_dir)[0])
    check_names(original, Names().with_options(options), "resume")
    options_of_part = {**original.described.options, "item_range": places}
    original.described = original.described.replaced(options=options_of_part)
    with _prepared_rest(original, Names(), options, data_dir, continues=None) as prepared:
        return _run(*prepared)


def _find_runs(
    run: str | Path,
    data_dir: str | Path | None,
    names: Names,
    options: Mapping[str, Any],
    *,
    retry_failed: bool,
) -> list[tuple[RunFolder, OriginalRun | None]]:
    """Return the runs of a name, each with its original, if that may be repeated; None if nothing is left to do."""
    folders, names = _find(run, data_dir), names.with_options(options)
    runs = [(folder, OriginalRun(folder) if is_left(folder, retry_failed) else None) for folder in folders]
    for _, original in runs:
        if original is not None:
            check_names(original, names, "resume")
    return runs


def is_left(folder: RunFolder, retry_failed: bool) -> bool:
    """Return whether `resume` has anything to do for a run."""
    return not folder.is_complete() or (retry_failed and folder.read_record().counts.failed > 0)


def _find(run: str | Path, data_dir: str | Path | None) -> list[RunFolder]:
    RUN.check("run", run)
    return find_runs(data_folder(data_dir), str(run))


@contextmanager
def _prepared_rest(
    original: OriginalRun,
    names: Names,
    options: Mapping[str, Any],
    data_dir: str | Path | None,
    *,
    continues: RunFolder | None,
) -> Iterator[tuple[Runner, Work, Resolver]]:
    """Yield the items of a run without a record, ready to be processed. Metrics without a judge use the run's."""
    folder, described = original.folder, original.described
    rescores = folder.rescores()
    if rescores is not None:
        raise RecordError(
            f"Run {folder.run_id} measures the answers of run {rescores} again: no SUT is asked, and there is "
            "nothing to resume.",
            fix=f"Run it again: {RunFolder(folder.path.parent / rescores).command('rescore')}",
        )
    if described.sut_uid == GIVEN:
        raise original.of_given_outputs("there is nothing to resume")
    if names.test == described.test_uid:
        names = names._replace(test=None)
    goldens = None if names.test is not None else original.goldens(Names(), moved=names.dataset)
    run_options = {**described.chosen("calls", "limits", "workers"), **options}
    if "executor" in options:  # the number of another's workers says nothing
        run_options["workers"] = options.get("workers")
    runner = original.runner(run_options, data_dir, pinned=True, goldens=goldens)
    with judging_by_default(described.inputs.judge), judging_by_default(names.judge):
        test, resolver = _test(original, names, goldens, runner), runner.resolver()
        with original.explaining_objects("resume", known=names.test is not None and names.sut is not None):
            made = resolver.works([test], [names.sut or described.sut_uid])[0]
        original.check_unchanged(made, runner.options.redactor)
        answer_source = replace(made.answer_source, label=described.sut_label)
        work = replace(made, answer_source=answer_source, groups=described.groups, continues=continues)
        yield runner, work, resolver


def _rescore_one(
    original: OriginalRun, names: Names, options: Mapping[str, Any], data_dir: str | Path | None
) -> TestRecord:
    described = original.described
    names = _of_own(names, original)
    goldens = None if names.test is not None else original.goldens(names)
    if described.sut_uid == GIVEN and names.test is None and goldens is None:
        raise original.of_given_outputs("its test cannot be made again")
    pinned = names.test is None and names.dataset is None
    runner = original.runner(options, data_dir, pinned=pinned, goldens=goldens)
    for scope, key in _SECRET.findall(json.dumps(described.sut_initialization)):
        runner.secrets.find(SecretDescription(scope, key, ""))  # no SUT is made, and items may hold its key
    with judging_by_default(described.inputs.judge), judging_by_default(names.judge):
        test, resolver = _test(original, names, goldens, runner), runner.resolver()
        with original.explaining_objects("rescore", known=names.test is not None):
            work = resolver.answered(test, original.recorded_answers(original.folder))
        if pinned:
            original.check_dataset(work.test.dataset)
        if not names.test:
            work = replace(work, groups=described.groups)
        return _run(runner, work, resolver)


def _of_own(names: Names, original: OriginalRun) -> Names:
    """Return the names, with the format of the run's own goldens if none is given with a file.

    A test or a file that somebody else's run names must be what it was, also where the caller names it too.
    """
    file, dataset = original.file, names.dataset
    if not original.is_own and names.test == original.described.test_uid:
        names = names._replace(test=None)
    if file is None:
        return names
    if dataset is None and any(names.form):
        return names._replace(dataset=file, form=names.form.over(original.form))
    if dataset is not None and not original.is_own and real_path(dataset) == real_path(file):
        return names._replace(dataset=None)
    return names


def _test(original: OriginalRun, names: Names, goldens: NamedGoldens | None, runner: Runner) -> TestName:
    """Return the test that measures: the caller's, or that of the goldens, or the run's."""
    own = original.described.test_uid if goldens is None else goldens.test(runner.plugins(), runner.secrets)
    return names.test or own


def _run(runner: Runner, work: Work, resolver: Resolver, *, retry_failed: bool = False) -> TestRecord:
    runner.options = replace(runner.options, retry_failed=retry_failed)
    return blocking(lambda: runner.do([work], resolver))[0]
