"""The pages that people ask for: of runs, which are compared where they share a test, and of a comparison."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from modelgauge.comparison.compare import compare_runs
from modelgauge.comparison.named_runs import Given, named_runs
from modelgauge.comparison.result import Comparison
from modelgauge.errors import ModelGaugeError
from modelgauge.reports.pages.comparison_view import compared_runs, comparison_blocks
from modelgauge.reports.pages.run_page import write_runs, writing
from modelgauge.runs.recorded_run import RecordedRun


def write_page(
    runs: Given | Sequence[Given | RecordedRun],
    to: str | Path | Callable[[str], object],
    *,
    data_dir: str | Path | None = None,
    redact: Callable[[str], str] = str,
    without_texts: bool = False,
) -> None:
    """Write the page of one or more runs. Runs of one test are compared: the first run is the baseline.

    Args:
        runs: records, or ids, folders or files of runs.
        to: the file; or what takes the page piece by piece, since it may be larger than memory.
        data_dir: where runs are looked up by id; by default what the settings say.
        redact: takes secrets out of a text.
        without_texts: leave out prompts, answers and contexts.

    Raises:
        RecordError: there is no such run, or it cannot be read.
        OSError: the file cannot be written; what was there stays.
    """
    named = {(run.record.run_id, run.record.run_timestamp): run for run in named_runs(runs, data_dir)}
    recorded = [*named.values()]
    comparison, why = None, ""
    try:
        comparison = compare_runs(recorded)
    except ModelGaugeError as error:
        why = f"{error.problem} {error.fix}"
    _write(recorded, comparison, to, why, redact=redact, without_texts=without_texts)


def write_comparison(
    comparison: Comparison,
    to: str | Path | Callable[[str], object],
    *,
    redact: Callable[[str], str] = str,
    without_texts: bool = False,
) -> None:
    """Write the page of a comparison: differences drawn, the answers to each item side by side, and each run.

    Args:
        comparison: as `modelgauge.compare` returns it. Of one that was read from JSON the page has no items.
        to: the file; or what takes the page piece by piece, since it may be larger than memory.
        redact: takes secrets out of a text.
        without_texts: leave out prompts, answers and contexts.

    Raises:
        RecordError: an item cannot be read.
        OSError: the file cannot be written; what was there stays.
    """
    _write(compared_runs(comparison), comparison, to, "", redact=redact, without_texts=without_texts)


def _write(
    runs: Sequence[RecordedRun],
    comparison: Comparison | None,
    to: str | Path | Callable[[str], object],
    not_compared: str,
    *,
    redact: Callable[[str], str],
    without_texts: bool,
) -> None:
    with nullcontext(to) if callable(to) else writing(Path(to)) as write:
        write_runs(
            runs,
            write,
            comparison=comparison,
            pairs=() if comparison is None else comparison_blocks(comparison, runs),
            not_compared=not_compared,
            redact=redact,
            without_texts=without_texts,
        )
