"""A SUT that answers from a file of recorded prompts and responses, or of recorded log-likelihoods."""

import hashlib
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError

from modelgauge.data.json_values import is_exact
from modelgauge.data.prompts import ContinuationPrompt, TextPrompt
from modelgauge.data.responses import SUTCompletion, SUTResponse
from modelgauge.errors import IncompatibleError, InputFileError, MissingAnswerError
from modelgauge.files.regular import bytes_of_file
from modelgauge.files.tables import SourceRow, table_of_bytes
from modelgauge.interfaces.sut import PromptResponseSUT
from modelgauge.wording.phrases import a_thing, quoted

_HOW_TO_WRITE = (
    "Write a prompt and its response a line, as a JSON object, or as CSV with commas and doubled quotes, in UTF-8: "
    "--sut replay/PATH"
)

_BLOCKED = "blocked"
_TRUTHS: dict[str | bool | None, bool] = {
    **dict.fromkeys((None, False, "", "false", "no", "0"), False),
    **dict.fromkeys((True, "true", "yes", "1"), True),
}


_SCORES = ("continuation", "logprob", "is_greedy", "num_tokens")
"""The columns of a file of log-likelihoods: the text behind the prompt, and the fields of its completion."""

_Request = str | dict[str, Any]


class ReplaySUT(PromptResponseSUT[_Request, Any]):
    """Answers each prompt with the response recorded for exactly this text; an unknown prompt is an error of
    its item.

    The same prompt may stand twice with the same response. With different responses it has no answer, because
    a guess would score one of them.

    A file with a column `continuation` has log-likelihoods instead of responses: the columns `logprob`, `is_greedy` and
    `num_tokens` of this text behind the prompt.

    Args:
        uid: the name in records.
        model: path of a JSONL or CSV file (UTF-8; the suffix decides).
        prompt: the column of prompts.
        response: the column of responses.
        blocked: the column of whether the service blocked a response: true, false or nothing. Only the default column
            may be missing; then no response is blocked.

    Raises:
        InputFileError: the file cannot be read; the message names file, line and columns.
    """

    max_concurrency: int | None = 1024
    identity_excludes: ClassVar[frozenset[str]] = frozenset({"model"})  # what counts is what the file holds

    def __init__(
        self,
        uid: str,
        model: str,
        prompt: str = "prompt",
        response: str = "response",
        blocked: str = _BLOCKED,
    ) -> None:
        super().__init__(uid)
        self._path = Path(model)
        try:
            data = bytes_of_file(model)
            table = table_of_bytes(data, model, "csv" if self._path.suffix.lower() == ".csv" else "jsonl")
        except InputFileError as error:
            raise InputFileError(error.problem, fix=_HOW_TO_WRITE) from None
        self.cache_version = hashlib.sha256(data).hexdigest()
        self._answers: dict[str, tuple[str, bool]] = {}
        self._ambiguous: set[str] = set()
        self._scores: dict[tuple[str, str], SUTCompletion] = {}
        for row in table.rows:
            if row.problem is not None and not row.values:
                raise InputFileError(row.problem.problem, fix=_HOW_TO_WRITE)
            if _SCORES[0] in row.values:
                self._add_score(row, _text(row, prompt, is_cell=table.cells_are_text))
                continue
            asked, is_blocked = _text(row, prompt, is_cell=table.cells_are_text), _is_true(row, blocked)
            answer = _text(row, response, is_cell=table.cells_are_text or is_blocked), is_blocked
            if self._answers.setdefault(asked, answer) != answer:
                self._ambiguous.add(asked)
        if not self._answers and not self._scores:
            raise InputFileError(f"{model} contains no responses.", fix=_HOW_TO_WRITE)
        if blocked != _BLOCKED and not any(blocked in row.values for row in table.rows):
            raise InputFileError(
                f"{model} has no column '{blocked}'.",
                fix="Name the column of blocked responses, or leave it out.",
            )

    def translate_text_prompt(self, prompt: TextPrompt) -> str:
        """Look answers up by the prompt's text."""
        return prompt.text

    def translate_continuation_prompt(self, prompt: ContinuationPrompt) -> dict[str, Any]:
        """Look log-likelihoods up by the context and each continuation.

        Raises:
            IncompatibleError: the context is a chat.
        """
        if not isinstance(prompt.context, str):
            raise IncompatibleError(
                f"'{self.uid}' has log-likelihoods behind texts only, and the context is a chat.",
                fix="Give the context as a text.",
            )
        return {"context": prompt.context, "continuations": list(prompt.continuations)}

    def _add_score(self, row: SourceRow, context: str) -> None:
        score = parse_score(row)
        if self._scores.setdefault((context, score.text), score) != score:
            raise InputFileError(
                f"{row.place}: {_start(score.text)} has another score behind this prompt in an earlier line.",
                fix="Keep one line for each prompt and continuation.",
            )

    async def evaluate(self, request: _Request) -> Any:
        """Look up the recorded response to a prompt, or the log-likelihoods of continuations.

        Raises:
            MissingAnswerError: the file has none, or several.
        """
        if isinstance(request, dict):
            return [self._score(request["context"], text) for text in request["continuations"]]
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
        return self._answers[request][0]

    def _score(self, context: str, text: str) -> dict[str, Any]:
        if (score := self._scores.get((context, text))) is None:
            raise MissingAnswerError(
                f"{self._path} has no log-likelihood of {_start(text)} behind the prompt: {_start(context)}.",
                fix="Add a line with this prompt and this continuation.",
            )
        return score.model_dump(mode="json", include=set(_SCORES) | {"text"})

    def translate_response(self, request: _Request, response: Any) -> SUTResponse:
        """Return the recorded response as the only completion, or a completion for each continuation."""
        if isinstance(request, dict):
            return SUTResponse([SUTCompletion(**score) for score in response])
        _, blocked = self._answers.get(request, ("", False))
        return SUTResponse(completions=(SUTCompletion(text=response, blocked=blocked),))


def _start(text: str) -> str:
    return quoted(text, 80) + (f" ({len(text):,} characters)" if len(text) > 80 else "")


def _text(row: SourceRow, column: str, *, is_cell: bool) -> str:
    if column not in row.values:
        raise InputFileError(
            f"{row.place}: no column '{column}'; there are: {', '.join(map(str, row.values))}.",
            fix="Name the columns: --sut 'replay/PATH?prompt=COLUMN&response=COLUMN'",
        )
    value = row.values[column]
    if value is None and is_cell:
        return ""
    if not isinstance(value, str) or not is_exact(value):
        what = "not a text that UTF-8 can hold" if isinstance(value, str) else f"{a_thing(value)}, not a text"
        raise InputFileError(f"{row.place}: '{column}' is {what}.", fix="Write it as a JSON string.")
    return value


def parse_score(row: SourceRow) -> SUTCompletion:
    """Return a scored continuation.

    Raises:
        InputFileError: a column is missing, or holds another value; the message names the line.
    """
    lacking = [name for name in _SCORES if name not in row.values]
    if lacking:
        raise InputFileError(
            f"{row.place}: no column '{lacking[0]}'.",
            fix=f"Give a log-likelihood all of its columns: prompt, {', '.join(_SCORES)}.",
        )
    text, *numbers = (row.values[name] for name in _SCORES)
    try:
        fields = dict(zip(_SCORES[1:], numbers, strict=True))
        return SUTCompletion.model_validate({"text": text, **fields})
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        raise InputFileError(
            f"{row.place}: '{wrong['loc'][-1]}' is {quoted(str(wrong['input']), 40)}: {wrong['msg']}.",
            fix='Write it as in {"prompt": "2 + 2 =", "continuation": " 4", "logprob": -0.1, "is_greedy": true, '
            '"num_tokens": 1}',
        ) from None


def _is_true(row: SourceRow, column: str) -> bool:
    value = row.values.get(column)
    key = value.strip().lower() if isinstance(value, str) else value
    if not isinstance(key, str | bool | None) or key not in _TRUTHS:
        raise InputFileError(
            f"{row.place}: '{column}' is {quoted(str(value), 40)}, not true or false.",
            fix="Write true for a response that the service blocked, else false or nothing; or rename the column.",
        )
    return _TRUTHS[key]
