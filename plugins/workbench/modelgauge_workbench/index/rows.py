"""The rows of the index, made of files: what a run is, and what its journal holds."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import to_json

from modelgauge.data.records import TestRecord
from modelgauge.data.results import GIVEN
from modelgauge.engine.run_files.folder import JOURNAL, MANIFEST, RECORD, RunFolder
from modelgauge.engine.run_files.lines import JournalLine, JournalLines
from modelgauge.engine.totals import read_totals
from modelgauge.errors import ModelGaugeError, RecordError
from modelgauge.reports.failures import failure_key
from modelgauge.reports.item_texts import setting_text
from modelgauge.reports.pages.item_rows import SNIPPET, Row, answer_end
from modelgauge.reports.runs_report import headline
from modelgauge.runs.notes import NOTES, Notes
from modelgauge.runs.passing import share_that_passed
from modelgauge.runs.recorded_run import read_state
from modelgauge.wording.phrases import beginning
from modelgauge_workbench.index.queries import OF_CASES

_FILES = (MANIFEST, RECORD, NOTES, JOURNAL, "totals.json")  # the first is in every run
_ABOUT = {"run_timestamp", "test_uid", "test_initialization", "sut_uid", "sut_label", "dataset"}
_LONGEST_SETTING = 80  # characters that lists show, and by which runs are found
_RELOAD = "Reload the page."
_MOST_SEARCHED = 20_000  # characters of each text of an item
GOING_ON, _DAMAGED = "running", "damaged"
RECORDED = "recorded answers"
"""What stands for the SUT of runs in which nobody was asked: of `evaluate`, and of sessions of pytest."""


class ItemRow(NamedTuple):
    """An item as the index has it; see `schema.py`."""

    place: int
    replaces: Sequence[int]
    start: int
    length: int
    row: Row
    failure: str


def stamp_of(run: Path) -> str:
    """Sizes and times of the files of a run: where these are the same, so is the run. Empty if it is no run.

    Args:
        run: its folder.
    """
    found = []
    for name in _FILES:
        try:
            stat = os.stat(f"{run}/{name}")  # noqa: PTH116  of hundred thousands
        except OSError:
            found.append("-")
        else:
            found.append(f"{stat.st_size}.{stat.st_mtime_ns}")
    return "" if found[0] == "-" else " ".join(found)


def run_columns(run: Path) -> dict[str, Any]:
    """What the index has of a run besides its place and its items; of a damaged one what can be known.

    Args:
        run: its folder.
    """
    folder, notes, state = RunFolder(run), Notes(), ""
    about: dict[str, Any] = {}
    record: TestRecord | None = None
    outcome = dict.fromkeys(("scored", "failed", "items", "passed", "judged", "cost", "seconds"))
    try:
        state, record = read_state(folder)
    except ModelGaugeError:
        state = _DAMAGED
    try:
        if record is None or record.sut_uid == GIVEN:  # the record of a session names no data sets
            about = folder.read_manifest()
        else:
            about = record.model_dump(include=_ABOUT)
        outcome |= _so_far(folder) if record is None else _outcome(record)
    except ModelGaugeError:
        state = _DAMAGED
    with suppress(ModelGaugeError):
        notes = Notes.of(run)
    return {
        "state": state,
        **_identity(folder, about),
        "headline": "" if record is None else headline(record),
        **outcome,
        "settings": json.dumps(_settings(record, about), ensure_ascii=False),
        "favourite": notes.favourite,
        "tags": json.dumps(notes.tags, ensure_ascii=False),
        "note": notes.note,
    }


def _identity(folder: RunFolder, about: dict[str, Any]) -> dict[str, str]:
    """Which run it is, by its record or else its manifest: they say it alike."""
    pulled = about.get("data_sets")  # of a session of pytest
    datasets = [about.get("dataset"), *(pulled if isinstance(pulled, list) else ())]
    sut = str(about.get("sut_label") or about.get("sut_uid") or "?")
    return {
        "began": _began(about.get("run_timestamp"), folder.path).isoformat(timespec="microseconds"),
        "test": str(about.get("test_uid") or "?"),
        "subject": _subject(about),
        "sut": RECORDED if sut == GIVEN else sut,
        "datasets": json.dumps(
            [dataset for dataset in datasets if isinstance(dataset, dict) and dataset.get("name")]
        ),
    }


def _settings(record: TestRecord | None, about: dict[str, Any]) -> dict[str, str]:
    """Return the hyperparameters of a run as texts, of long ones the beginning with a digest."""
    options = about.get("options")
    said = (options if isinstance(options, dict) else {}).get("hyperparameters")
    logged = said if record is None else record.hyperparameters
    known = logged.items() if isinstance(logged, dict) else ()
    texts = {name: setting_text(value) for name, value in known if value is not None}
    return {name: text if len(text) <= _LONGEST_SETTING else _shortened(text) for name, text in texts.items()}


def _shortened(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{beginning(' '.join(text.split()), _LONGEST_SETTING)} {digest[:6]}"


def differing_settings(settings: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the names of the settings in which runs differ.

    Args:
        settings: of each run, as texts.
    """
    names = dict.fromkeys(name for texts in settings for name in texts)
    return [name for name in names if len({texts.get(name) for texts in settings}) > 1]


def _subject(about: dict[str, Any]) -> str:
    """Return the subject of a run: a data set or a test. An identifier is a label, not another test."""
    dataset, made = about.get("dataset"), about.get("test_initialization")
    if isinstance(dataset, dict):
        return f"data set {dataset.get('name')}"
    if about.get("sut_uid") == GIVEN and isinstance(made, dict):
        return f"{OF_CASES}{made.get('class_name')}"
    return f"test {about.get('test_uid')}"


def _began(said: Any, run: Path) -> datetime:
    """When a run began; when its folder was changed, for a run that does not say that."""
    try:
        began = datetime.fromisoformat(str(said))
    except ValueError:
        return datetime.fromtimestamp(run.stat().st_mtime, UTC)
    return began.astimezone(UTC) if began.tzinfo else began.replace(tzinfo=UTC)


def _outcome(record: TestRecord) -> dict[str, Any]:
    counts, share = record.counts, share_that_passed(record)
    return {
        "scored": counts.scored,
        "failed": counts.failed,
        "items": counts.items + (counts.not_begun or 0),
        "passed": None if share is None else round(share.value * share.n, 6),
        "judged": None if share is None else share.n,
        "cost": record.spent.cost_usd if record.spent else None,
        "seconds": record.seconds,
    }


def _so_far(folder: RunFolder) -> dict[str, Any]:
    totals = read_totals(folder)
    return {} if totals is None else {"cost": totals.used.cost_usd, "seconds": totals.used.seconds}


def new_items(journal: Path, start: int, known: dict[tuple[str, ...], None]) -> Iterator[ItemRow]:
    """The items behind an offset of a journal, up to its last whole line; what is no item is left out.

    Args:
        journal: of a run; it may be missing.
        start: the offset.
        known: the kinds of failures of the run so far; new ones are added.
    """
    for line in JournalLines(journal).after(start):
        try:
            _, (place, row) = line.read_json(lambda record: (int(record["index"]), Row.of(record)))
        except RecordError:  # `modelgauge check` says what is wrong
            continue
        yield ItemRow(place, line.replaces, line.offset, len(line.line), row, _failure(row, known))


def item_line(journal: Path, start: int, place: int) -> JournalLine:
    """Return the line of an item of the index.

    Args:
        journal: of the run.
        start: of the line, as the index has it.
        place: of the item in the test.

    Raises:
        RecordError: the journal is not what it was when it was indexed.
    """
    try:
        line = next(JournalLines(journal).at([start]))
    except OSError as error:
        raise RecordError(f"{journal} cannot be read: {error.strerror}.", fix=_RELOAD) from None
    if line.index != place:
        raise RecordError(f"{journal} has changed.", fix=_RELOAD)
    return line


def _failure(row: Row, known: dict[tuple[str, ...], None]) -> str:
    if not row.failures:
        return ""
    *kind, message = row.failures[0]  # of several repeats that failed, the first, as in the report
    key = failure_key((kind[0], kind[1], kind[2]), message, known=known)
    known.setdefault(key)
    return json.dumps(key, ensure_ascii=False)


def item_columns(item: ItemRow) -> tuple[Any, ...]:
    """The columns of an item in the order of the table, from `place` on."""
    row = item.row
    return (
        item.place,
        item.start,
        item.length,
        row.id,
        row.state,
        item.failure,
        row.question[:SNIPPET],
        answer_end(row.answer)[:SNIPPET],
        row.expected[:SNIPPET],
        *(to_json(values).decode() for values in (row.measured, row.used, row.labels)),
    )


def searched_texts(item: ItemRow) -> tuple[str, str, str]:
    """The texts by which an item is found: id, question, answer and why it failed."""
    row = item.row
    failed = "\n".join(failure[3] for failure in row.failures)
    return row.id, row.question[:_MOST_SEARCHED], f"{row.answer[:_MOST_SEARCHED]}\n{failed[:_MOST_SEARCHED]}"
