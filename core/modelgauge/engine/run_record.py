"""The record of a run, from its identity, its items and its counts: however these came together."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from modelgauge.data.records import TestRecord
from modelgauge.data.results import Sample, TotalUsage, normalized_result, recorded_ranges
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.description import WorkDescription
from modelgauge.engine.run_files.folder import RunFolder, write_atomically
from modelgauge.engine.totals import Totals
from modelgauge.stats.aggregations import mean_of_each
from modelgauge.wording.phrases import counted

if TYPE_CHECKING:  # it needs numpy
    from modelgauge.config.run_options import RunOptions
    from modelgauge.engine.items.scored_items import JournalIndex


def run_record(
    description: WorkDescription,
    index: "JournalIndex",
    tally: Tally,
    used: TotalUsage,
    known: int | None,
    **facts: Any,
) -> TestRecord:
    """Make the record of a run.

    Args:
        description: the test, the answer_source and the options.
        index: of the run's journal, with all items.
        tally: the items of all sessions.
        used: by all sessions.
        known: the number of items, those that were not begun included; None if nobody knows.
        facts: the other fields. They replace those that follow from the description.
    """
    options = description.run_options()
    fields: dict[str, Any] = {
        **description.identity(),
        "ranges": recorded_ranges(index.columns.ranges()),
        "sut_options": description.options["sut_options"],
        "cluster": options.cluster,
        "repeats": options.repeats,
        "reduction": options.reduction,
        "hyperparameters": dict(options.hyperparameters),
        "identifier": options.identifier,
        "prompts": len(index.prompts) if index.is_asked else None,
        "distinct_prompts": index.distinct_prompts(),
        "counts": tally.counts(used, None if known is None else max(0, known - tally.items)),
        "seconds": round(used.seconds, 3),
        "spent": used.spent,
    }
    return TestRecord(**fields | facts)


def mean_record(
    description: WorkDescription,
    index: "JournalIndex",
    tally: Tally,
    known: int | None,
    *,
    sample: Sample | None = None,
    notes: Iterable[str] = (),
    **facts: Any,
) -> TestRecord:
    """Make the record of a run whose results are the means of its measurements, unless `facts` contain a result.

    Args:
        description: as in `run_record`.
        index: as in `run_record`.
        tally: as in `run_record`.
        known: as in `run_record`.
        sample: the choice of items; None if all were chosen.
        notes: for the reader. Notes that follow from the items are added.
        facts: as in `run_record`.
    """
    options = description.run_options()
    population = get_population(options, known, sample)
    if "result" not in facts:
        means = mean_of_each(index.items(known, population, description.directions))
        facts["result"] = normalized_result(means, options.reduction)
    all_notes = tuple(dict.fromkeys([*notes, *notes_on_items(index, population)]))
    used = tally.used()
    return run_record(description, index, tally, used, known, sample=sample, notes=all_notes, **facts)


def write_end(folder: RunFolder, record: TestRecord, totals: Totals, redact: Callable[[str], str]) -> None:
    """Write the totals and, last of all files, the record of a run that has ended."""
    write_atomically(folder.totals, totals.model_dump_json() + "\n")
    folder.write_record(record, redact)


def get_population(options: "RunOptions", known: int | None, sample: Sample | None) -> int | None:
    """Return the number of items that intervals are about; None if they are about all items like these."""
    if not options.finite:
        return None
    return known if sample is None else sample.total


def notes_on_items(index: "JournalIndex", population: int | None) -> Iterator[str]:
    """Yield the notes on clusters and populations that do not follow from the options alone."""
    if lacking := index.unclustered:
        have = counted(lacking, "item has", "items have")
        yield f"{have} no '{index.options.cluster}': each is a cluster of its own."
    if index.options.finite and population is None:
        yield "How many items the test has is not known, so the intervals are about all items like these."


def part_note(item_range: tuple[int, int]) -> str:
    """Return the note on a run with an item range."""
    first, end = item_range
    return f"The items of the places {first:,} to {end - 1:,} are measured here: this is a part of a run."
