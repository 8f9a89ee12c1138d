"""A SUT that answers from a file of recorded prompts and responses."""

import csv
import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from modelgauge.data.json_values import is_exact
from modelgauge.data.prompts import TextPrompt
from modelgauge.data.responses import SUTCompletion, SUTResponse
from modelgauge.errors import InputFileError, MissingAnswerError
from modelgauge.files.regular import bytes_of
from modelgauge.interfaces.sut import PromptResponseSUT
from modelgauge.wording.shortening import quoted

if TYPE_CHECKING:
    import _csv

_LARGEST_CELL = 2**31 - 1  # what fits into a C long everywhere


class ReplaySUT(PromptResponseSUT[str, str]):
    """Answers each prompt with the response recorded for exactly this text; an unknown prompt is an error of
    its item.

    The same prompt may stand twice with the same response. With different responses it has no answer, because
    a guess would score one of them.

    Args:
        uid: the name in records.
        model: path of a JSONL or CSV file (UTF-8; the suffix decides).
        prompt: the column of prompts.
        response: the column of responses.

    Raises:
        InputFileError: the file cannot be read; the message names file, line and columns.
    """

    max_concurrency: int | None = 1024
    identity_excludes: ClassVar[frozenset[str]] = frozenset({"model"})  # what counts is what the file holds

    def __init__(self, uid: str, model: str, prompt: str = "prompt", response: str = "response") -> None:
        super().__init__(uid)
        path = Path(model)
        data = _read(path)
        self.cache_version = hashlib.sha256(data).hexdigest()
        self._path = path
        self._answers: dict[str, str] = {}
        self._ambiguous: set[str] = set()
        rows = _csv_rows if path.suffix.lower() == ".csv" else _jsonl_rows
        for line, row in rows(path, _text(path, data)):
            self._add(_cell(row, prompt, path, line), _cell(row, response, path, line))
        if not self._answers:
            raise InputFileError(
                f"{path} holds no responses.", fix="Write one prompt and its response a line."
            )

    def _add(self, prompt: str, response: str) -> None:
        if self._answers.setdefault(prompt, response) != response:
            self._ambiguous.add(prompt)

    def translate_text_prompt(self, prompt: TextPrompt) -> str:
        """The text."""
        return prompt.text

    async def evaluate(self, request: str) -> str:
        """Look the prompt up."""
        if request in self._ambiguous:
            raise MissingAnswerError(
                f"{self._path} has different responses for one prompt: {_start(request)}.",
                fix="Keep one line for each prompt.",
            )
        if request not in self._answers:
            raise MissingAnswerError(
                f"{self._path} has no response for the prompt: {_start(request)}.",
                fix="Add a line with exactly this prompt; `modelgauge list-items` prints a test's prompts.",
            )
        return self._answers[request]

    def translate_response(self, request: str, response: str) -> SUTResponse:
        """The recorded response as the only completion."""
        del request
        return SUTResponse(completions=(SUTCompletion(text=response),))


def _start(text: str) -> str:
    return quoted(text, 80) + (f" ({len(text):,} characters)" if len(text) > 80 else "")


def _read(path: Path) -> bytes:
    try:
        return bytes_of(path)
    except OSError as error:
        raise InputFileError(
            f"The recorded responses {os.fspath(path)} cannot be read: {error.strerror}.",
            fix="Name an existing JSONL or CSV file: --sut replay/PATH",
        ) from None


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputFileError(f"{path}, line {line}: not UTF-8.", fix="Save the file as UTF-8.") from None


def _jsonl_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputFileError(
                f"{path}, line {number}: not JSON: {error}.", fix="Write one JSON object a line."
            ) from None
        if not isinstance(row, dict):
            raise InputFileError(
                f"{path}, line {number}: not an object.", fix="Write one JSON object a line."
            )
        yield number, row


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: list[str] | None = None
    while (row := _next_row(path, reader)) is not None:
        if not row:
            continue  # a blank line
        if columns is None:
            columns = _header(path, row)
        elif len(row) == len(columns):
            yield reader.line_num, dict(zip(columns, row, strict=True))
        else:
            raise InputFileError(
                f"{path}, line {reader.line_num}: {len(row)} cells for {len(columns)} columns.",
                fix="Quote cells that hold commas or line breaks.",
            )


def _next_row(path: Path, reader: "_csv.Reader") -> list[str] | None:
    """A row, whatever its size: the limit on cells is the whole process's, so it is put back at once."""
    limit = csv.field_size_limit(_LARGEST_CELL)
    try:
        return next(reader, None)
    except csv.Error as error:
        raise InputFileError(
            f"{path}, line {reader.line_num}: {error}.",
            fix="Correct the quotes; a quote inside a cell is doubled.",
        ) from None
    finally:
        csv.field_size_limit(limit)


def _header(path: Path, row: list[str]) -> list[str]:
    twice = sorted(name for name, times in Counter(row).items() if times > 1)
    if twice:
        raise InputFileError(
            f"{path} has several columns '{twice[0]}'.", fix="Give each column a name of its own."
        )
    return row


def _cell(row: dict[str, Any], column: str, path: Path, line: int) -> str:
    if column not in row:
        raise InputFileError(
            f"{path}, line {line}: no column '{column}'; there are: {', '.join(map(str, row))}.",
            fix="Name the columns: --sut 'replay/PATH?prompt=COLUMN&response=COLUMN'",
        )
    value = row[column]
    if not isinstance(value, str) or not is_exact(value):
        what = (
            "no text that UTF-8 can hold" if isinstance(value, str) else f"{type(value).__name__}, not text"
        )
        raise InputFileError(f"{path}, line {line}: '{column}' is {what}.", fix="Write it as a JSON string.")
    return value
