"""Ratings that people gave to the answers of a run: lines of `<data-dir>/ratings/RUN.jsonl`, which are only appended.

The file is read each time, since other processes append to it.
"""

import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from modelgauge.data.base import Count, Frozen, Text, UnknownFields
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.items import hex_digest
from modelgauge.data.responses import SUTCompletion
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.run_files.lines import whole_lines
from modelgauge.errors import InvalidDataError, RecordError
from modelgauge.files.json_lines import read_json_lines
from modelgauge.files.whole import append_line

RATINGS = "ratings"
LOWEST, HIGHEST = 1, 5

_Name = Annotated[str, Field(min_length=1, max_length=100, strict=True)]


def _now() -> datetime:
    return datetime.now(UTC)


class Rating(Frozen):
    """The rating of one answer by one person.

    Args:
        item_id: the item that was answered.
        answers: the digests of the completions that were shown; see `digest_answer`.
        rater: the name of the person.
        score: 1 (worst) to 5 (best); None if the rater skipped the answer.
        reason: why.
        guidelines: the digest of the guidelines that the rater had.
        order: how many answers the rater had seen in the queue before, skipped answers included.
        kind: always "rating": what the line is.
        id: of this rating.
        time: when it was given.
    """

    kind: Literal["rating"] = "rating"
    item_id: Text
    answers: tuple[Text, ...]
    rater: _Name
    score: Annotated[int, Field(ge=LOWEST, le=HIGHEST, strict=True)] | None
    reason: Text | None = None
    guidelines: Text | None = None
    order: Count = 0
    id: Text = Field(default_factory=partial(secrets.token_hex, 8))
    time: AwareDatetime = Field(default_factory=_now)


class Undo(Frozen):
    """A rating that its rater took back.

    Args:
        undoes: the id of the rating.
        kind: always "undo": what the line is.
        time: when it was taken back.
    """

    kind: Literal["undo"] = "undo"
    undoes: Text
    time: AwareDatetime = Field(default_factory=_now)


class RatingsFile:
    """The ratings of the answers of one run.

    Args:
        path: of the file, which need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, run: RunFolder) -> "RatingsFile":
        """Return the ratings of a run, whose file is beside the folder of runs."""
        return cls(run.path.parent.parent / RATINGS / f"{run.run_id}.jsonl")

    def add(self, line: Rating | Undo) -> None:
        """Append a rating, or withdraw a rating; it is on the disk when this returns.

        Raises:
            OSError: the disk refuses; the file is as it was.
        """
        append_line(self.path, line.model_dump_json().encode())

    def in_force(self) -> list[Rating]:
        """Return the ratings that count, in order: the last of each rater and item.

        Raises:
            RecordError: the file is damaged; the message names the line.
        """
        lines = self._lines()
        undone = {line.undoes for line in lines if isinstance(line, Undo)}
        given = [line for line in lines if isinstance(line, Rating) and line.id not in undone]
        last = {(rating.rater, rating.item_id): rating.id for rating in given}
        return [rating for rating in given if last[rating.rater, rating.item_id] == rating.id]

    def _lines(self) -> list[Rating | Undo]:
        unknown = UnknownFields()
        lines = read_json_lines(whole_lines(self.path), str(self.path))
        return [_read(value, where, unknown) for where, value in lines]


def _read(data: Any, where: str, unknown: UnknownFields) -> Rating | Undo:
    try:
        if isinstance(data, ValueError):
            raise data
        kind = Undo if isinstance(data, dict) and data.get("kind") == "undo" else Rating
        return kind.load(data, unknown)
    except InvalidDataError as error:
        why = error.problem.rstrip(".")
    except ValueError as error:  # no JSON
        why = str(error)
    raise RecordError(f"{where} is not a rating: {why}.", fix="Correct the line, or remove it.")


def first_repeat(item: ItemRecord) -> tuple[int, Mapping[str, float]]:
    """Return the first measured repeat of an item, and its measurements: the answer that people judge."""
    if not item.is_scored or not item.repeat_measurements:
        return 0, item.measurements
    failed = {failure.repeat for failure in item.failures}
    number = next(number for number in range(len(failed) + 1) if number not in failed)
    return number, item.repeat_measurements[0]


def first_answer(item: ItemRecord) -> tuple[SUTCompletion, ...]:
    """Return the completions of an item for people to judge; none if a prompt has no answer, or a blocked one."""
    if item.failure is not None and item.failure.stage == "sut":
        return ()
    repeat, _ = first_repeat(item)
    answers = [
        interaction.response.completions for interaction in item.interactions if interaction.repeat == repeat
    ]
    if len(answers) < len(item.test_item.prompts):
        return ()
    return tuple([each.completion for completions in answers for each in completions])


def digest_answer(answer: Iterable[SUTCompletion]) -> tuple[str, ...]:
    """Return digests that identify completions, so that a rating belongs to one completion."""
    return tuple([hex_digest(completion.text) for completion in answer])
