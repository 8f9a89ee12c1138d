"""`rescore`: the recorded answers of a run are measured anew."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from modelgauge.config.secrets import SecretDescription
from modelgauge.data.records import TestRecord
from modelgauge.data.results import GIVEN
from modelgauge.datasets.dataset_files import FileForm
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.work import Respondent
from modelgauge.errors import UsageError
from modelgauge.files.regular import real_path
from modelgauge.interfaces.identity import Initialization
from modelgauge.metrics.judges import JudgeLike, judging_by_default
from modelgauge.plugins.resolution import TestName
from modelgauge.rerun.earlier import Manifest, Names, RerunOptions, check_names, is_own, manifest_of
from modelgauge.rerun.finding import (
    Caller,
    Chosen,
    check_dataset,
    done,
    find,
    form_of,
    goldens_of,
    of_given_outputs,
    runner_for,
    says,
    telling_of_objects,
)

_SECRET = re.compile(r'"\$secret": "([\w.-]+)\.([\w-]+)"', re.ASCII)


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
    **options: Unpack[RerunOptions],
) -> list[TestRecord]:
    """Measure the recorded answers of runs with the test's present annotators and `measure_quality`.

    Makes new runs. No SUT is made, and none is asked; annotators go through the cache.

    Args:
        run: a run's id or folder, or an invocation's id.
        data_dir: where runs are looked up. Of a run that is not known to be the user's own no name is used unasked:
            give its `plugin_files`, `dependencies`, `judge`, and the others that the error lists.
        test: another test, or an object; by default the run's.
        dataset: a file of goldens instead of a test; by default the run's, where it is of one.
        columns: what the file calls the fields of goldens, by field; they are laid over the run's own, of which
            another file needs to have only what it is to be read by.
        delimiter: between the cells of a CSV file; by default that of the run's file, a comma for another.
        encoding: of the file's text; by default that of the run's file, UTF-8 for another.
        metrics: uids of those that judge them; by default the run's.
        judge: judges for the metrics that name none; by default the run's.
        options: what `Runner` takes.

    Raises:
        RecordError: there is no such run, or its answers are not answers to the test's prompts.
        UsageError: there is a data set without metrics, or the other way round, or a test beside them.
    """
    form = FileForm(columns or {}, delimiter, encoding)
    if test is not None and (dataset is not None or metrics or says(form)):
        raise UsageError(
            "A run is measured by a test, or by the metrics of a data set.", fix="Give one or the other."
        )
    chosen = Chosen(None if dataset is None else Path(dataset), tuple(metrics), form)
    caller, folders = Caller("rescore", data_dir), find(run, data_dir)
    names = Names(test, None, judge, dataset, metrics).with_options(options)
    for one in folders:
        check_names(one, names, caller.verb)
    return [_rescore_one(one, test, chosen, judge, options, caller=caller) for one in folders]


def _rescore_one(
    folder: RunFolder,
    test: TestName | None,
    chosen: Chosen,
    judge: JudgeLike | None,
    options: Mapping[str, Any],
    *,
    caller: Caller,
) -> TestRecord:
    manifest = manifest_of(folder)
    test = None if test == manifest.test_uid and not is_own(folder) else test
    chosen = _of_own_file(chosen, manifest, folder)
    goldens = None if test is not None else goldens_of(folder, manifest, chosen)
    if manifest.sut_uid == GIVEN and test is None and goldens is None:
        raise of_given_outputs(folder, "its test cannot be made again")
    pinned = test is None and chosen.file is None
    runner = runner_for(folder, manifest, options, caller=caller, pinned=pinned, goldens=goldens)
    for scope, key in _SECRET.findall(json.dumps(manifest.sut_initialization)):
        runner.secrets.find(SecretDescription(scope, key, ""))  # no SUT is made, and items may hold its key
    made = Initialization.load(manifest.sut_initialization)
    respondent = Respondent(uid=manifest.sut_uid, initialization=made, journal=folder)
    with judging_by_default(judge if judge is not None else manifest.inputs.judge):
        measuring = test or (
            manifest.test_uid if goldens is None else goldens.test(runner.plugins(), runner.secrets)
        )
        resolver = runner.resolver()
        with telling_of_objects(folder, "rescore", known=test is not None):
            work = resolver.answered(measuring, respondent)
        if pinned:
            check_dataset(work.test.dataset, manifest, folder)
        return done(runner, work, resolver)


def _of_own_file(chosen: Chosen, manifest: Manifest, folder: RunFolder) -> Chosen:
    """A form without a file is that of the run's own: read in another way, it holds other goldens.

    Where somebody else's run names a file, that must hold what it held then, also where the caller names it too.
    """
    held = manifest.inputs.datasets.get(manifest.test_uid)
    named = None if held is None or chosen.file is None else real_path(chosen.file) == real_path(held)
    if named and not is_own(folder):
        chosen = chosen._replace(file=None)
    if held is None or chosen.file is not None or not says(chosen.form):
        return chosen
    return chosen._replace(file=Path(held), form=chosen.form.over(form_of(manifest)))
