"""The row of an item, read from its line in a journal: for the table of a page and for the index of the workbench."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from modelgauge.data.item_records import Outcome, outcome
from modelgauge.data.prompts import parts_in
from modelgauge.data.spans import TRACE
from modelgauge.reports.item_texts import expected_text

SNIPPET = 240
"""Characters of a text that a table shows."""
SECONDS = "seconds"
_END = 64
_USAGE = {
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "reasoning_tokens": "reasoning tokens",
    "cost_usd": "dollars",
    "forward_passes": "forward passes",
}


class Row(NamedTuple):
    """Row of the table of items.

    Args:
        id: of the item.
        state: its outcome.
        measured: its measurements.
        question: its last message.
        answer: its first completion.
        expected: the right answers.
        labels: short values by which it can be found.
        used: seconds of its longest answer, tokens, dollars, by name; those that are known.
        binary: the measurements that are right or wrong.
        started: when its first answer was asked for, in Unix time; None if that is not known.
        failures: of it or its repeats: stage, uid of what failed, class and message of each exception.
    """

    id: str
    state: Outcome
    measured: dict[str, float]
    question: str
    answer: str
    expected: str
    labels: dict[str, str]
    used: dict[str, float]
    binary: Sequence[str]
    started: float | None
    failures: list[tuple[str, str, str, str]]

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Row":
        """Create the row of an item from its line in a journal."""
        item, asked = record["test_item"], record.get("interactions") or ()
        prompts = item["prompts"]
        prompt = prompts[0]["prompt"]
        completions = [completion for each in asked for completion in each["response"]["completions"]]
        all_contexts = [item.get("context"), *[prompt.get("context") for prompt in prompts]]
        contexts = [context for context in all_contexts if isinstance(context, dict)]
        measured = {name: float(value) for name, value in (record.get("measurements") or {}).items()}
        failures = [record] if record["kind"] == "exception" else record.get("failed_repeats") or []
        times = [time for each in asked for time in _times(each)]
        usages = [usage for each in asked if (usage := each["response"].get("usage"))]
        question = [text for role, text in parts_in(prompt) if role != "continuation"][-1]
        answer = _answer([each["completion"] for each in completions])
        labels = _labels(
            [*contexts, *[own for completion in completions if (own := completion.get("annotations"))]]
        )
        return cls(
            str(item.get("id") or ""),
            outcome(record["kind"], measured, record.get("binary") or (), has_failures=bool(failures)),
            measured,
            question,
            answer,
            expected_text(contexts),
            {name: label for name, label in labels.items() if label not in (question, answer)},
            _usage(times, usages),
            record.get("binary") or (),
            min((began for began, _ in times), default=None),
            [_failure(failure) for failure in failures],
        )


def _answer(completions: Sequence[Mapping[str, Any]]) -> str:
    """Return the answer of a row: the first completion, or the likeliest of scored continuations."""
    if not completions:
        return ""
    scored = [completion for completion in completions if completion.get("logprob") is not None]
    shown = max(scored, key=lambda completion: completion["logprob"]) if scored else completions[0]
    return str(shown["text"])


def _failure(record: Mapping[str, Any]) -> tuple[str, str, str, str]:
    kind = (record["stage"], record["source_uid"], record["error_type"], record.get("message", ""))
    return str(kind[0]), str(kind[1]), str(kind[2]), str(kind[3])


def _times(asked: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    """Return when an answer was requested, and its seconds: of the observed app, if there is one, or of the call."""
    traces = [
        completion["completion"].get("metadata", {}).get(TRACE)
        for completion in asked["response"]["completions"]
    ]
    if own := [trace for trace in traces if isinstance(trace, dict)]:
        yield from (
            (datetime.fromisoformat(span["started"]).timestamp(), float(span["seconds"])) for span in own
        )
    elif time := asked.get("time"):
        yield time[0], time[1]


def _usage(times: Sequence[tuple[float, float]], usages: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the usage of an item: the seconds of its longest answer, and the usage reported by its SUT."""
    found = {SECONDS: max(seconds for _, seconds in times)} if times else {}
    for usage in usages:
        for field, name in _USAGE.items():
            if usage.get(field) is not None:
                found[name] = found.get(name, 0.0) + float(usage[field])
    return found


def answer_end(answer: str) -> str:
    """Return the end of an answer, where a long answer has its result; an ellipsis replaces the rest."""
    before, _, line = answer.rstrip().rpartition("\n")
    last = line.strip()
    if len(last) > _END:
        end = last[-_END:]
        last = end[max(end.find(". ") + 1, end.find(" ")) :].strip()  # whole sentences, else whole words
    return f"… {last}" if before or len(last) < len(line.strip()) else last


def _labels(parts: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Short values by which items can be filtered: fields of contexts, and annotations."""
    return {
        name: str(value)
        for part in parts
        for name, value in part.items()
        if (isinstance(value, str) and len(value) <= SNIPPET) or isinstance(value, bool | int)
    }
