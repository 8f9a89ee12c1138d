"""The tables of a run's items: items, completions, annotations, measurements, repeats' measurements, spans."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from modelgauge.data.annotations import Interaction, SUTCompletionAnnotations, list_completions
from modelgauge.data.item_records import ItemRecord, get_trace
from modelgauge.data.items import get_context
from modelgauge.data.prompts import prompt_text
from modelgauge.data.responses import Usage
from modelgauge.data.spans import TRACE, Trace
from modelgauge.data.tables.run_tables import RUN_ID, Column, RecordTable, Row, parse_time

_OF_ITEM = (RUN_ID, Column("item_id", "text", "the item"))
_OF_REPEAT = Column("repeat", "integer", "which time the prompt was asked, from 0")
_OF_PROMPT = Column("prompt_index", "integer", "the place of the prompt in its item, from 0")
_OF_COMPLETION = (
    *_OF_ITEM,
    _OF_PROMPT,
    _OF_REPEAT,
    Column(
        "completion", "integer", "the place of the completion among those of its prompt and repeat, from 0"
    ),
)


_OF_FAILURE = ("stage", "source_uid", "error_type", "message", "traceback")


def _item_rows(run: Any, record: ItemRecord) -> Iterator[Row]:
    item = record.test_item
    answers = [each.completion.text for each in list_completions(record.interactions)]
    yield (
        run.run_id,
        item.id,
        run.test_uid,
        run.sut_name,
        record.index,
        record.outcome,
        "\n\n".join(prompt_text(prompt.prompt) for prompt in item.prompts),
        answers[0] if answers else None,
        get_context(item),
        *(getattr(record.failure, name, None) for name in _OF_FAILURE),
        len(record.failures) if record.is_scored else 0,
        record.redacted,
    )


ITEMS = RecordTable(
    "items",
    "an item, also one that failed",
    2,
    (
        *_OF_ITEM,
        Column("test", "text", "the test"),
        Column("sut", "text", "the SUT: what the user called it, else its uid"),
        Column("item_index", "integer", "its place in the test, from 0"),
        Column("outcome", "text", "ok, wrong, below threshold, failed in part, or failed"),
        Column("prompt", "text", "what was asked; several prompts with an empty line between them"),
        Column("answer", "text", "the text of its first completion"),
        Column("context", "JSON", "what the test knows of it, such as the right answer"),
        Column("stage", "text", "where it failed: sut, annotator or measure"),
        Column("source_uid", "text", "the SUT, annotator or test that failed"),
        Column("error_type", "text", "the class of the exception"),
        Column("message", "text", "what the exception says"),
        Column("traceback", "text", "where it was raised"),
        Column("failed_repeats", "integer", "its repeats that failed, if the others scored it"),
        Column("redacted", "boolean", "whether a secret was taken out of its answers"),
    ),
    rows_of_item=_item_rows,
)


# --- completions and annotations --------------------------------------------------------------------


def _interactions(record: ItemRecord) -> Iterator[tuple[int | None, Interaction]]:
    """Yield the interactions of an item, each with the position of its prompt."""
    prompts, taken = record.test_item.prompts, set[tuple[int | None, int]]()
    for interaction in record.interactions:
        same = [place for place, prompt in enumerate(prompts) if prompt is interaction.prompt]
        # In JSON that is not a journal, equal prompts can be told by their order alone.
        equal = same or [
            place
            for place, prompt in enumerate(prompts)
            if prompt == interaction.prompt and (place, interaction.repeat) not in taken
        ]
        place = equal[0] if equal else None
        taken.add((place, interaction.repeat))
        yield place, interaction


def _completions(run: Any, record: ItemRecord) -> Iterator[tuple[Row, Interaction, SUTCompletionAnnotations]]:
    """Yield the completions of an item, each with its key and its interaction."""
    for place, interaction in _interactions(record):
        for number, annotated in enumerate(interaction.response.completions):
            yield (run.run_id, record.test_item.id, place, interaction.repeat, number), interaction, annotated


def _completion_rows(run: Any, record: ItemRecord) -> Iterator[Row]:
    for key, interaction, annotated in _completions(run, record):
        answer, usage = annotated.completion, (None if key[-1] else interaction.response.usage) or Usage()
        time = None if key[-1] else interaction.time
        hidden = {TRACE} if get_trace(answer) else set()
        dumped = answer.model_dump(mode="json", include={"tool_calls", "top_logprobs", "token_logprobs"})
        yield (
            *key,
            interaction.prompt.source_id,
            prompt_text(interaction.prompt.prompt),
            answer.text,
            answer.reasoning,
            answer.raw_text,
            answer.truncated_reasoning,
            answer.finish_reason,
            answer.blocked,
            dumped["tool_calls"],
            dumped["top_logprobs"],
            answer.logprob,
            answer.is_greedy,
            answer.num_tokens,
            dumped.get("token_logprobs"),
            {name: value for name, value in answer.metadata.items() if name not in hidden} or None,
            usage.input_tokens,
            usage.output_tokens,
            usage.reasoning_tokens,
            usage.cost_usd,
            *((_parse_unix_time(time.began), time.seconds) if time else (None, None)),
        )


def _parse_unix_time(seconds: float) -> datetime | None:
    """Unix time as a time of UTC; None if a stranger's record holds something else."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


_OF_CALL = "of all completions of this prompt and repeat; only the first one's row has it"

COMPLETIONS = RecordTable(
    "completions",
    "a completion: an answer to a prompt",
    5,
    (
        *_OF_COMPLETION,
        Column("source_id", "text", "the id of the prompt in the data set that it comes from"),
        Column("prompt", "text", "what was asked; a chat has a line for each message, with its role"),
        Column("text", "text", "the answer, without its reasoning block"),
        Column("reasoning", "text", "the reasoning of the model"),
        Column("raw_text", "text", "the text as it came, if a reasoning block was split off"),
        Column("truncated_reasoning", "boolean", "whether the answer ended inside the reasoning block"),
        Column("finish_reason", "text", "why it ended, in the SUT's own words"),
        Column("blocked", "boolean", "whether the service blocked the answer, or a part of it"),
        Column("tool_calls", "JSON", "the tools that were called"),
        Column("top_logprobs", "JSON", "the most likely tokens, one entry a position"),
        Column("logprob", "number", "the natural logarithm of the probability of a scored continuation"),
        Column("is_greedy", "boolean", "whether each token of a scored continuation is the most likely one"),
        Column("num_tokens", "integer", "the tokens of a scored continuation", "tokens"),
        Column("token_logprobs", "JSON", "these tokens with their log-probabilities"),
        Column("metadata", "JSON", "what an app returned beside its text; its trace is in the table `spans`"),
        *(
            Column(f"{what}_tokens", "integer", f"{what} tokens {_OF_CALL}", "tokens")
            for what in ("input", "output", "reasoning")
        ),
        Column("cost_usd", "number", f"cost {_OF_CALL}", "US dollars"),
        Column("began", "time", f"when the call was sent {_OF_CALL}; nothing where the cache had the answer"),
        Column(
            "seconds", "number", f"until the answer {_OF_CALL}; nothing where the cache had it", "seconds"
        ),
    ),
    rows_of_item=_completion_rows,
)


def _annotation_rows(run: Any, record: ItemRecord) -> Iterator[Row]:
    for key, _, annotated in _completions(run, record):
        for name, value in annotated.annotations.items():
            yield (*key, name, _number(value), _reason(value), value)


_LARGEST = sys.float_info.max  # JSON has larger whole numbers


def _number(annotation: Any) -> float | None:
    value = annotation.get("value") if isinstance(annotation, dict) else annotation
    return float(value) if isinstance(value, int | float) and abs(value) <= _LARGEST else None


def _reason(annotation: Any) -> str | None:
    reason = annotation.get("reason") if isinstance(annotation, dict) else None
    return reason if isinstance(reason, str) else None


ANNOTATIONS = RecordTable(
    "annotations",
    "an annotation: what an annotator, such as a judge, found of a completion",
    6,
    (
        *_OF_COMPLETION,
        Column("annotator", "text", "the name that the test gave the annotator"),
        Column("score", "number", "the annotation if it is a number, or its field `value`"),
        Column("reason", "text", "its field `reason`, as metrics have it"),
        Column("annotation", "JSON", "all of it"),
    ),
    rows_of_item=_annotation_rows,
)


# --- measurements -----------------------------------------------------------------------------------


def _measurement_rows(run: Any, record: ItemRecord) -> Iterator[Row]:
    for name, value in record.measurements.items():
        yield (run.run_id, record.test_item.id, name, value, name in record.binary)


_VALUE = Column("value", "number", "its value")

MEASUREMENTS = RecordTable(
    "measurements",
    "a measurement of an item",
    3,
    (
        *_OF_ITEM,
        Column("measurement", "text", "its name"),
        _VALUE,
        Column("binary", "boolean", "whether the test gave it as true or false"),
    ),
    rows_of_item=_measurement_rows,
)


def _repeat_rows(run: Any, record: ItemRecord) -> Iterator[Row]:
    if not record.is_scored:
        return
    failed = {failure.repeat for failure in record.failures}
    number = len(record.repeat_measurements) + len(failed)
    measured = [repeat for repeat in range(number) if repeat not in failed]
    for repeat, values in zip(measured, record.repeat_measurements, strict=False):
        for name, value in values.items():
            yield (run.run_id, record.test_item.id, repeat, name, value)


REPEAT_MEASUREMENTS = RecordTable(
    "repeat_measurements",
    "a measurement of a repeat, if each prompt was asked several times",
    4,
    (
        *_OF_ITEM,
        Column("repeat", "integer", "which repeat of the item, from 0"),
        Column("measurement", "text", "its name"),
        _VALUE,
    ),
    rows_of_item=_repeat_rows,
)


# --- spans ------------------------------------------------------------------------------------------


def _span_rows(run: Any, record: ItemRecord) -> Iterator[Row]:
    for number, (place, trace) in enumerate(_traces(run, record)):
        for span in trace.spans:
            yield (
                *(run.run_id, record.test_item.id, number, span.id, span.parent, *place),
                *(span.name, span.type, parse_time(trace.started), span.start, span.seconds, span.error),
                *(span.input, span.output, span.metadata or None, list(span.tags) or None),
            )


def _traces(run: Any, record: ItemRecord) -> Iterator[tuple[Row, Trace]]:
    """Yield the traces of an item, each with prompt, repeat and completion as far as known."""
    for key, _, annotated in _completions(run, record):
        if trace := get_trace(annotated.completion):
            yield key[2:], trace
    for failure in record.failures:
        yield from (((None, failure.repeat, None), trace) for trace in failure.traces)


SPANS = RecordTable(
    "spans",
    "a span: a call of an observed function of an app",
    4,
    (
        *_OF_ITEM,
        Column("trace", "integer", "the place of its trace, one use of the app, in the item, from 0"),
        Column("span", "integer", "its place in the trace, from 0"),
        Column("parent", "integer", "the span that it was called in; null for the outermost"),
        *_OF_COMPLETION[2:],
        Column("name", "text", "the function"),
        Column("type", "text", "llm, retriever, tool, agent, or a word of the author's"),
        Column("started", "time", "when the trace began"),
        Column("start", "number", "when the span began, since the trace began", "seconds"),
        Column("seconds", "number", "how long it took; null if it did not end", "seconds"),
        Column("error", "text", "the exception that ended it"),
        Column("input", "JSON", "the arguments"),
        Column("output", "JSON", "what was returned"),
        Column("metadata", "JSON", "what the app added"),
        Column("tags", "JSON", "a list of texts"),
    ),
    rows_of_item=_span_rows,
)

TABLES_OF_ITEMS = (ITEMS, COMPLETIONS, ANNOTATIONS, MEASUREMENTS, REPEAT_MEASUREMENTS, SPANS)
