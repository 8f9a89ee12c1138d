"""Sheets on which people label answers: drawing a random sample of judged answers, and reading the labels back.

Labels are read of the workbench's files of ratings, too.
"""

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from modelgauge.comparison.named_runs import Given, named_runs
from modelgauge.config.options import is_number
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.prompts import prompt_text
from modelgauge.errors import InputFileError, InvalidOptionError
from modelgauge.files.formulas import with_escapes
from modelgauge.files.regular import bytes_of_file
from modelgauge.files.tables import Table, csv_text, read_table, table_of_rows
from modelgauge.runs.ratings import RatingsFile, first_answer
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.wording.phrases import counted

COLUMNS = ("item_id", "sut", "prompt", "answer", "rater", "label")
"""The columns of a sheet; people fill in the last two."""

_MOST_PROBLEMS = 10


class SheetRow(NamedTuple):
    """A row of a sheet.

    Args:
        place: file and line, for messages.
        item_id: the item.
        sut: the SUT; None if the sheet does not say it.
        rater: who labelled it.
        label: as it was written; None if there is no label.
        rated_run: the id of the run whose answers were rated from 1 to 5; None if a sheet was filled in.
    """

    place: str
    item_id: str
    sut: str | None
    rater: str
    label: Any
    rated_run: str | None = None


# --- drawing ----------------------------------------------------------------------------------------------


def sample_answers(
    runs: Given | Sequence[Given], n: int, *, seed: int = 0, data_dir: str | Path | None = None
) -> list[dict[str, str | None]]:
    """Draw judged answers at random, for people to label.

    Each run gives the same number, or all that it has. Of an item that was asked several times it is the first answer
    that was measured. A larger sample with the same seed contains the smaller sample, so that more can be labelled
    later.

    Args:
        runs: each of another SUT: records, ids, folders, or `latest`.
        n: how many answers in all, 1 or more; all answers if there are fewer.
        seed: another seed draws another sample.
        data_dir: where runs are looked up by id.

    Returns:
        Rows in random order, with the keys `item_id`, `sut`, `prompt`, `answer`, and `rater` and `label`, which are
        None.

    Raises:
        InvalidOptionError: `n` is below 1, no answer was judged, or two runs are of one SUT.
        RecordError: a run cannot be found or read.
    """
    return draw(resolve_runs(runs, data_dir), n, seed)


def draw(runs: Sequence[RecordedRun], n: int, seed: int) -> list[dict[str, str | None]]:
    """Draw judged answers of these runs; see `sample_answers`."""
    if not is_number(n, int) or n < 1:
        raise InvalidOptionError(f"The number of answers is {n!r}.", fix="Draw 1 or more.")
    drawn = []
    for run in runs:
        sut = run.record.sut_uid
        items = run.items()
        judged = (record for record in items.records(~items.failed) if record.measurements)
        ranked = ((_rank(seed, sut, record), record) for record in judged)
        drawn.append(
            [(rank, _row(sut, record)) for rank, record in heapq.nsmallest(n, ranked, key=itemgetter(0))]
        )
    turns = [row for turn in zip_longest(*drawn) for row in turn if row is not None]
    rows = [row for _, row in sorted(turns[:n], key=itemgetter(0))]
    if not rows:
        raise InvalidOptionError("No answer of these runs was judged.", fix="Give runs with scored items.")
    return rows


def write_sheet(path: Path, rows: Iterable[Mapping[str, str | None]]) -> None:
    """Write a sheet as CSV, into a file that is new.

    Args:
        path: of the file.
        rows: see `sample_answers`.

    Raises:
        InputFileError: there is such a file already, or it cannot be written.
    """
    text = csv_text(with_escapes([COLUMNS, *([row[name] for name in COLUMNS] for row in rows)]))
    try:
        with path.open("xb") as file:
            file.write(text.encode())
    except FileExistsError:
        raise InputFileError(
            f"{path} already exists, and may contain labels.", fix="Give the name of a new file."
        ) from None
    except OSError as error:
        raise InputFileError(
            f"{path} cannot be written: {error.strerror}.", fix="Give a file in a folder of your own."
        ) from error


def resolve_runs(runs: Given | Sequence[Given], data_dir: str | Path | None) -> list[RecordedRun]:
    """Return the runs that a caller names, each of a different SUT.

    Args:
        runs: one, or several.
        data_dir: where they are looked up by id.

    Raises:
        InvalidOptionError: there is no run, or two runs are of one SUT.
        RecordError: a run cannot be found or read.
    """
    of_sut: dict[str, RecordedRun] = {}
    for run in named_runs(runs, data_dir):
        other = of_sut.setdefault(run.record.sut_uid, run)
        if other is not run:
            raise InvalidOptionError(
                f"Runs {other.record.run_id} and {run.record.run_id} are both of {run.record.sut_uid}, and a sheet of "
                "labels tells SUTs apart, not runs.",
                fix="Give one of them only.",
            )
    if not of_sut:
        raise InvalidOptionError("No run is named.", fix="Name one: `modelgauge runs` lists them.")
    return [*of_sut.values()]


def _row(sut: str, item: ItemRecord) -> dict[str, str | None]:
    prompts = [prompt_text(prompt.prompt) for prompt in item.test_item.prompts]
    answers = [completion.text for completion in first_answer(item)]
    texts = {"prompt": _joined_texts(prompts), "answer": _joined_texts(answers)}
    return {"item_id": item.test_item.id, "sut": sut, **texts, "rater": None, "label": None}


def _joined_texts(texts: Sequence[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(texts, start=1))


def _rank(seed: int, sut: str, item: ItemRecord) -> bytes:
    text = f"{seed}\n{sut}\n{item.test_item.id}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


# --- reading ----------------------------------------------------------------------------------------------


def read_ratings(labels: Any, encoding_type: str = "utf-8") -> list[SheetRow]:
    """Read the rows of filled-in sheets.

    Args:
        labels: the path of a CSV file, or a list of paths, one a rater; or rows in memory: a list of dicts, or
            a dataset of Hugging Face. Without a named rater, the rater is the name of the file. A path that ends with
            `.jsonl` is that of ratings of a run.
        encoding_type: of the CSV files.

    Raises:
        InputFileError: a file cannot be read, has not the columns `item_id` and `label`, or holds rows that are
            broken; the message names file and line.
        RecordError: a file of ratings is damaged.
    """
    several = isinstance(labels, list | tuple) and labels and isinstance(labels[0], str | Path)
    return [
        rating
        for source in (labels if several else [labels])
        for rating in (
            _rows_of_ratings(Path(source)) if _is_rated(source) else _ratings(_table(source, encoding_type))
        )
    ]


def _is_rated(labels: Any) -> bool:
    return isinstance(labels, str | Path) and Path(labels).suffix.lower() == ".jsonl"


def _rows_of_ratings(path: Path) -> Iterator[SheetRow]:
    """Read ratings from a file of the workbench, which is named after its run."""
    bytes_of_file(path)  # that it is there
    for rating in RatingsFile(path).in_force():
        yield SheetRow(str(path), rating.item_id, None, rating.rater, rating.score, path.stem)


def _table(labels: Any, encoding: str) -> Table:
    if not isinstance(labels, str | Path):
        return table_of_rows(labels, "the labels")
    table = read_table(labels, "csv", encoding=encoding)
    delimiter = table.likely_delimiter()  # some spreadsheets write `;`
    if delimiter in (None, ","):
        return table
    return read_table(labels, "csv", encoding=encoding, delimiter=delimiter)


def _ratings(table: Table) -> Iterator[SheetRow]:
    missing = [name for name in ("item_id", "label") if name not in table.columns]
    if missing:
        raise InputFileError(
            f"{table.heading}: there is no column '{missing[0]}'. {table.columns_are()}",
            fix="Fill in the sheet that `modelgauge sample` writes.",
        )
    refuse([str(row.problem) for row in table.rows if row.problem is not None])
    for row in table.rows:
        sut, rater, label = (row.values.get(name) for name in ("sut", "rater", "label"))
        label = label.strip() or None if isinstance(label, str) else label
        rater = str(rater or "").strip() or table.name or "people"
        yield SheetRow(row.place, str(row.values.get("item_id")), sut and str(sut), rater, label)


def refuse(problems: Sequence[str]) -> None:
    """Refuse labels for all that is wrong with their rows, at once.

    Args:
        problems: each with file and line; nothing is refused if there are none.

    Raises:
        InputFileError: there are problems.
    """
    if not problems:
        return
    more = len(problems) - _MOST_PROBLEMS
    listed = [
        *problems[:_MOST_PROBLEMS],
        *([f"And {counted(more, 'more row')} like these."] if more > 0 else []),
    ]
    raise InputFileError("The labels cannot be used:\n  " + "\n  ".join(listed), fix="Correct these rows.")
