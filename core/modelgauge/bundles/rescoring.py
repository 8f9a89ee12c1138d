"""Measuring the recorded answers of a run again, to see whether its scores come out as they are recorded.

That runs the code of the test, and asks nobody: what judges answered comes from the cache.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from modelgauge.bundles.item_checks import differences
from modelgauge.bundles.run_checks import RunCheck, equal
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.records import TestRecord
from modelgauge.data.results import GIVEN
from modelgauge.engine.items.item_frame import ItemRecords, read_lines
from modelgauge.engine.run_files.folder import RECORD
from modelgauge.errors import NotCachedError, RecordError, RedactedAnswerError
from modelgauge.rerun.again import rescore
from modelgauge.rerun.original import Names, OriginalRun
from modelgauge.rerun.trust import check_names
from modelgauge.runs.recorded_run import recorded_run
from modelgauge.wording.phrases import counted

_NOW = "by the test now"
_NOT_CACHED = "they need answers of annotators or judges that are not in the cache, and nothing is paid here."


def check_scores(made: RunCheck, data_dir: Path, names: Names, command: str, **options: Any) -> None:
    """Measure the answers of a run again, and compare measurements and results.

    Args:
        made: the check of the run; it gets what is found.
        data_dir: of the user.
        names: what the caller names again, for a run that may be somebody else's.
        command: that is given again with names that lack.
        options: what `rescore` takes beside them.

    Raises:
        RecordError: a name is used that the caller must give again.
        UsageError: the test cannot be made.
    """
    run = made.run
    try:
        original = OriginalRun(run)
    except RecordError as error:
        made.unchecked.append(f"The scores: {error.problem}")
        return
    if original.described.sut_uid == GIVEN and names.test is None and names.dataset is None:
        made.unchecked.append(
            "The scores: its answers were given to evaluate, and only its caller has the test."
        )
        return
    check_names(original, names.with_options(options), "rescore", command)
    given = {"test": names.test, "dataset": names.dataset, "metrics": names.metrics, "judge": names.judge}
    with TemporaryDirectory(prefix="modelgauge-check-") as scratch:
        try:
            [again] = rescore(run.path, data_dir, **given, runs_dir=scratch, only_cached=True, **options)
        except RecordError as error:
            made.add(f"its answers cannot be measured again: {error.problem.rstrip('.')}")
            return
        lacking = _compare_items(made, ItemRecords(read_lines(again)))
    if lacking:
        made.unchecked.append(f"The scores of {counted(lacking, 'item')}: {_NOT_CACHED}")
    if again.failure is not None:
        left = made.items - again.counts.scored - again.counts.failed
        made.unchecked.append(f"The scores of {counted(left, 'item')}: {again.failure.message}")
    elif not lacking and (run.path / RECORD).exists() and not made.redacted:
        record = run.read_record()
        recovered = record.counts.failed - again.counts.failed
        if recovered > 0:  # a judge has answered since what it did not answer then
            failed = counted(recovered, "item")
            made.unchecked.append(f"The results: {failed} failed in the run, and can be scored now.")
            return
        for problem in _of_results(record, again):
            made.add(problem)


def _compare_items(made: RunCheck, again: ItemRecords) -> int:
    """Compare the items of two journals, both in the order of the test.

    Returns:
        How many were scored in the run, and lack answers now.
    """
    new, lacking = again.records(), 0
    other = next(new, None)
    for record in recorded_run(made.run).items().records():
        while other is not None and other.index < record.index:
            other = next(new, None)
        if other is None or other.index != record.index or not record.is_scored:
            continue
        if _lacks_answers(other):
            lacking += 1
        else:
            for problem in _differences(record, other):
                made.add(problem, made.lines.get(record.index), str(record.test_item.id))
    return lacking


def _lacks_answers(item: ItemRecord) -> bool:
    return any(failure.error_type == NotCachedError.__name__ for failure in item.failures)


def _differences(record: ItemRecord, again: ItemRecord) -> Iterator[str]:
    if again.failure is None:
        yield from differences(record.measurements, again.measurements, _NOW)
    elif again.failure.error_type != RedactedAnswerError.__name__:
        yield f"it was scored, and fails now: {again.failure.reason}"


def _of_results(record: TestRecord, again: TestRecord) -> Iterator[str]:
    for name in {**record.result, **again.result}:
        if not equal(record.result.get(name), again.result.get(name)):
            yield f"the result {name} is another when the answers are measured again"
