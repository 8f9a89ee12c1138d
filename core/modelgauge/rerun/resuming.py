"""`resume`: a run goes on where it stopped."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, Unpack

from modelgauge.config.redaction import Redactor
from modelgauge.data.records import TestRecord
from modelgauge.data.results import GIVEN
from modelgauge.engine.calls.callee import learn_secrets
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.work import Work
from modelgauge.errors import RecordError
from modelgauge.interfaces.identity import Identified
from modelgauge.metrics.judges import JudgeLike, judging_by_default
from modelgauge.plugins.resolution import SUTName, TestName
from modelgauge.rerun.earlier import NEW_RUN, Manifest, Names, RerunOptions, check_names, manifest_of
from modelgauge.rerun.finding import (
    Caller,
    check_dataset,
    done,
    find,
    goldens_of,
    of_given_outputs,
    runner_for,
    telling_of_objects,
)

Value = TypeVar("Value")


def resume(
    run: str | Path,
    data_dir: str | Path | None = None,
    *,
    test: TestName | None = None,
    sut: SUTName | None = None,
    judge: JudgeLike | None = None,
    dataset: str | Path | None = None,
    metrics: Sequence[str] = (),
    **options: Unpack[RerunOptions],
) -> list[TestRecord]:
    """Continue runs that were stopped: items that have a record are not done again, failed ones included.

    Concurrency, rates, time-outs, retries and caps are those of the run, unless others are given, which hold from
    then on. Caps are those of the command: what its runs spent before counts.

    Args:
        run: a run's id or folder, or an invocation's id: then each of its runs that is not complete.
        data_dir: where runs are looked up.
        test: the test, where it has no uid that can be found (an object of a notebook).
        sut: likewise.
        judge: the run's judge; needed for a run that is not known to be the user's own, whose names are not used
            unasked; so are `sut`, `plugin_files`, `dependencies`, and what follows. The error lists what is lacking.
        dataset: the run's file of goldens, or another with the same content; likewise.
        metrics: the run's, where their names have options; likewise.
        options: what `Runner` takes; what the results depend on is as it was.

    Returns:
        The records of the runs, complete ones too.

    Raises:
        RecordError: there is no such run, or its test, items, data, SUT or judges are not what they were. Nothing is
            asked then, and what the run has written stays as it is.
    """
    folders = find(run, data_dir)
    names = Names(test, sut, judge, dataset, metrics).with_options(options)
    unfinished = [one.run_id for one in folders if not one.is_complete()]
    for one in folders:
        if one.run_id in unfinished:
            check_names(one, names, "resume")
    return [
        _resume_one(one, names, options, data_dir) if one.run_id in unfinished else one.read_record()
        for one in folders
    ]


def _resume_one(
    folder: RunFolder, names: Names, options: Mapping[str, Any], data_dir: str | Path | None
) -> TestRecord:
    manifest = manifest_of(folder)
    rescores = folder.rescores()
    if rescores is not None:
        raise RecordError(
            f"Run {folder.run_id} measures the answers of run {rescores} anew: no SUT is asked, and there is "
            "nothing to resume.",
            fix=f"Run it again: {RunFolder(folder.path.parent / rescores).command('rescore')}",
        )
    if manifest.sut_uid == GIVEN:
        raise of_given_outputs(folder, "there is nothing to resume")
    test = None if names.test == manifest.test_uid else names.test
    goldens = None if test is not None else goldens_of(folder, manifest, moved=names.dataset)
    given = {**manifest.chosen("calls", "limits"), **options}
    runner = runner_for(folder, manifest, given, caller=Caller("resume", data_dir))
    with judging_by_default(manifest.inputs.judge if names.judge is None else names.judge):
        chosen = test or (
            manifest.test_uid if goldens is None else goldens.test(runner.plugins(), runner.secrets)
        )
        resolver = runner.resolver()
        with telling_of_objects(folder, "resume", known=test is not None and names.sut is not None):
            work = resolver.works([chosen], [names.sut or manifest.sut_uid])[0]
        for owner in (work.test, *(one.owner for one in work.called())):
            learn_secrets(owner, runner.options.redactor)
        _check_work(work, manifest, folder, runner.options.redactor)
        return done(runner, replace(work, continues=folder), resolver)


def _check_work(work: Work, manifest: Manifest, folder: RunFolder, redactor: Redactor) -> None:
    """Refuse to mix answers, or judgements, of two different objects in one run."""
    _check_same(work.test, manifest.test_initialization, folder, redactor)
    check_dataset(work.test.dataset, manifest, folder)
    if work.respondent.sut is not None:
        _check_same(work.respondent.sut, manifest.sut_initialization, folder, redactor)
    recorded, now = dict(manifest.annotators), dict[str, Identified](work.annotators)
    if manifest.judges is not None:
        recorded |= _by_path(manifest.judges)
        now |= _by_path(work.judge_suts)
    if now.keys() != recorded.keys():
        changed = ", ".join(sorted(now.keys() ^ recorded.keys()))
        raise RecordError(
            f"The annotators of '{work.test.uid}' are not what they were in run {folder.run_id}: {changed}.",
            fix=NEW_RUN,
        )
    for name, one in now.items():
        _check_same(one, recorded[name], folder, redactor)


def _by_path(judges: Mapping[str, Mapping[str, Value]]) -> dict[str, Value]:
    return {f"{name} / {key}": one for name, own in judges.items() for key, one in own.items()}


def _check_same(
    owner: Identified, recorded: Mapping[str, Any], folder: RunFolder, redactor: Redactor
) -> None:
    now = redactor.redact_json(owner.initialization.model_dump(mode="json"))  # as it was written
    if now != recorded:
        changed = [name for name in now if now[name] != recorded.get(name)]
        raise RecordError(
            f"'{owner.uid}' is not what it was in run {folder.run_id}: {', '.join(changed)} changed.",
            fix=NEW_RUN,
        )
