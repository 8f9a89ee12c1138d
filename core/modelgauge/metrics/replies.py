"""Replies of judges, parsed strictly: one JSON object of the requested shape, or an error.

Judges write prose around their JSON, think aloud, contradict themselves, and stop in the middle. A reply
counts only where exactly one thing can be meant; a score is never guessed from words.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Annotated, Any, Generic, Literal, NamedTuple, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationError,
    WrapValidator,
    create_model,
    model_validator,
)

from modelgauge.data.responses import SUTCompletion
from modelgauge.metrics.reply_json import UnusableReplyError, values_in
from modelgauge.text.answers import split_reasoning

T = TypeVar("T", bound=BaseModel)

_NonEmpty = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

_NUMBER_TEXT = re.compile(r"\s*(-?[0-9]{1,9}(?:\.[0-9]{1,9})?)\s*", re.ASCII)


def _number(reply: Any) -> Any:
    """Return the number that a judge wrote as a text or as 7.0; anything else unchanged."""
    if isinstance(reply, str) and (found := _NUMBER_TEXT.fullmatch(reply)):
        reply = float(found[1])
    return int(reply) if isinstance(reply, float) and reply.is_integer() else reply


_Whole = Annotated[int, BeforeValidator(_number)]
_AS_IT_IS = PlainSerializer(lambda score: score)  # a judge may give 7.5 for an int
_ANSWERS = frozenset({"score", "verdict", "verdicts", "item"})


def _as_text(reason: Any) -> Any:
    """Return a reason as a text: a list of texts as lines, other values as JSON, unless they contain another answer."""
    if isinstance(reason, list) and all(isinstance(part, str) for part in reason):
        return "\n".join(reason)
    if reason is None or isinstance(reason, str) or not _ANSWERS.isdisjoint(_keys_in(reason)):
        return reason
    return json.dumps(reason, ensure_ascii=False)


_Reason = Annotated[str | None, BeforeValidator(_as_text)]


class Shape(NamedTuple, Generic[T]):
    """The shape that a judge's reply must have.

    Args:
        model: the reply as an object. It ignores what it does not know.
        shown: the same for the judge. It is not JSON itself, so that a judge who repeats it gives no answer.
        schema: the same for judges that produce structured output. It keeps to what all of them understand:
            every property required, no others, and no limits of lengths; these the model checks.
    """

    model: type[T]
    shown: str
    schema: dict[str, Any]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class Statements(_Reply):
    """Statements found in a text, possibly none."""

    statements: list[_NonEmpty]


class Verdict(_Reply):
    """Verdict of a judge on one item.

    Args:
        item: the number of the item, from 1.
        verdict: one of the words that were asked for.
        reason: why.
    """

    item: _Whole | None = None
    verdict: str
    reason: _Reason = None


class Verdicts(_Reply):
    """Verdicts of a judge on each item, in order."""

    verdicts: Sequence[Verdict]

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        numbers = [verdict.item for verdict in self.verdicts]
        if any(number not in (None, place) for place, number in enumerate(numbers, start=1)):
            raise ValueError(f"its items are numbered {numbers}, not 1 to {len(numbers)}")
        return self


class Points(_Reply):
    """A grade on a scale of points; an int where it is whole."""

    score: float
    reason: _Reason = None


class Steps(_Reply):
    """Steps for judging by a criterion."""

    steps: Annotated[list[_NonEmpty], Field(min_length=1)]


_TEXT: dict[str, Any] = {"type": "string"}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


STATEMENTS = Shape(
    Statements,
    '{"statements": [TEXT, TEXT, …]}\nThe list is empty if there is nothing to list.',
    _object(statements=_list(_TEXT)),
)
STEPS = Shape(Steps, '{"steps": [TEXT, TEXT, …]}', _object(steps=_list(_TEXT)))


@lru_cache(maxsize=512)
def verdicts_shape(words: tuple[str, ...], count: int, *, reasons: bool) -> Shape[Verdicts]:
    """Return the shape of verdicts on a number of items.

    Args:
        words: the verdicts that there are, in small letters.
        count: how many items.
        reasons: whether the judge shall say why.
    """
    word: Any = Annotated[Literal[words], BeforeValidator(_small_letters)]
    verdict = create_model("Verdict", __base__=Verdict, verdict=(word, ...))
    several: Any = Annotated[list[verdict], Field(min_length=count, max_length=count)]
    model = create_model("Verdicts", __base__=Verdicts, verdicts=(several, ...))
    choice = " or ".join(f'"{word}"' for word in words)
    example = f'{{"item": 1, "verdict": {choice}{_REASON if reasons else ""}}}'
    number = "one verdict" if count == 1 else f"exactly {count} verdicts, one for each item, in their order"
    return Shape(
        model,
        f'{{"verdicts": [{example}{"" if count == 1 else ", …"}]}}\nThere is {number}.',
        _object(
            verdicts=_list(
                _object(
                    item={"type": "integer"},
                    verdict={"type": "string", "enum": list(words)},
                    **_reason(reasons=reasons),
                )
            )
        ),
    )


@lru_cache(maxsize=64)
def points_shape(grades: tuple[int, ...], *, reasons: bool) -> Shape[Points]:
    """Return the shape of a grade, a whole number from a list.

    The reason stands after the grade, so that the grade's own token carries the probabilities.

    Args:
        grades: those that can be given, in ascending order.
        reasons: whether the judge shall say why.
    """
    grade: Any = Annotated[
        _Whole, AfterValidator(_check_grade(grades)), WrapValidator(_between(grades)), _AS_IT_IS
    ]
    model = create_model("Points", __base__=Points, score=(grade, ...))
    example = f'{{"score": NUMBER{_REASON if reasons else ""}}}'
    return Shape(
        model,
        f"{example}\nNUMBER is a whole number: {_spans(grades)}.",
        _object(score={"type": "integer", "enum": list(grades)}, **_reason(reasons=reasons)),
    )


def _reason(*, reasons: bool) -> dict[str, dict[str, Any]]:
    return {"reason": _TEXT} if reasons else {}


def _check_grade(grades: tuple[int, ...]) -> Callable[[int], int]:
    def check(reply: int) -> int:
        if reply not in grades:
            raise ValueError(f"Input should be {_spans(grades)}")
        return reply

    return check


def _between(grades: tuple[int, ...]) -> Callable[[Any, Callable[[Any], Any]], Any]:
    """Accept a score between two adjacent grades, and one as a text, with or without the scale: "8/10"."""

    def check(reply: Any, handler: Callable[[Any], Any]) -> Any:
        said = _OF_TEN.sub("", reply) if isinstance(reply, str) else reply
        number = _number(said)
        if isinstance(number, float) and math.isfinite(number):
            return number if {math.floor(number), math.ceil(number)} <= set(grades) else handler(reply)
        return handler(said)

    return check


def _spans(numbers: Sequence[int]) -> str:
    """Ascending whole numbers for a reader: `0 to 3, 5, or 7 to 10`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    *first, last = [" to ".join(map(str, span)) for span in spans]
    return f"{', '.join(first)}{', or ' if first else ''}{last}"


_REASON = ', "reason": TEXT'
_OF_TEN = re.compile(r"\s*(?:/|out of|of)\s*10(?:\.0)?\s*\Z", re.IGNORECASE)  # the scale of GEval
_FENCED = re.compile(r"\A\s*```\w*\s(.*)```\s*\Z", re.DOTALL)
_FREE = re.compile(r"\s+|\\+[nrt]?")  # spaces, and the escapes of texts inside JSON
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
"""Finish reasons that SUTs report for a completion that reached its limit."""


def read_completion(completion: SUTCompletion, shape: Shape[T], material: Iterable[str]) -> T:
    """Parse the single object of a shape in a judge's completion; see `read_reply`.

    Raises:
        UnusableReplyError: it cannot be understood, or was cut off: what it holds may be a quotation then.
    """
    if completion.truncated_reasoning:  # already split off the text
        raise UnusableReplyError("it ended while still thinking")
    if is_cut_off(completion):
        raise UnusableReplyError("it was cut off at its greatest length")
    return read_reply(completion.text, shape, material)


def is_cut_off(completion: SUTCompletion) -> bool:
    """Return whether a completion reached its limit, by its `finish_reason`."""
    return (completion.finish_reason or "").lower() in _CUT_OFF


def read_reply(text: str, shape: Shape[T], material: Iterable[str] = ()) -> T:
    """Parse the single object of a shape in a reply.

    Judges quote what they judge, and that may hold an object of the very shape. So an object whose values are all in
    the material, in whatever form, counts only if it is the whole reply, and nothing else in the reply could be the
    answer: a second object that fits and says something else, one that does not fit and has a key of the shape
    anywhere in it, or a list of what the shape lists. Otherwise it is not clear which is meant. The same object again,
    objects with other keys, prose, and what stands in `<think>` do not matter.

    Args:
        text: the reply.
        shape: what was asked for.
        material: the texts that are judged.

    Raises:
        UnusableReplyError: there is no object, several could be meant, or the JSON is broken.
    """
    reply = split_reasoning(text)
    if reply.truncated:
        raise UnusableReplyError("it ended while still thinking")
    if not reply.text.strip():
        raise UnusableReplyError("it is empty")
    whole, keys = _FENCED.sub(r"\1", reply.text).strip(), _list_keys(shape.schema)
    answers: list[T] = []
    misfits: list[tuple[Any, ValidationError]] = []
    for value, source in values_in(reply.text, keys):
        try:
            answer = shape.model.model_validate(value)
        except ValidationError as error:
            misfits.append((value, error))
            continue
        if source != whole and _is_quoted(answer, source, material):
            raise UnusableReplyError(
                "beside other text it holds a JSON object that stands in the material, too"
            )
        if answer not in answers:
            answers.append(answer)
    if not answers:
        of_objects = [error for value, error in misfits if isinstance(value, dict)]
        why = describe_problems(of_objects[-1], "the object", 3) if of_objects else "it holds no JSON object"
        raise UnusableReplyError(why)
    if len(answers) > 1:
        raise UnusableReplyError("it holds two JSON objects that contradict each other")
    if any(_could_be_meant(value, shape, keys) for value, _ in misfits):
        raise UnusableReplyError("it holds JSON beside the object asked for that could be the answer as well")
    return answers[0]


def _list_keys(schema: dict[str, Any]) -> frozenset[str]:
    """Return the keys of a shape, including those of inner objects."""
    parts = {**schema.get("properties", {}), "": schema.get("items", {})}
    inner = (_list_keys(part) for part in parts.values() if part)
    return frozenset(schema.get("properties", ())).union(*inner)


def _could_be_meant(candidate: Any, shape: Shape[Any], keys: frozenset[str]) -> bool:
    """Return whether a value that does not fit a shape may be an answer in the wrong form."""
    if not isinstance(candidate, list):
        return not keys.isdisjoint(_keys_in(candidate))
    return _list(_TEXT) in shape.schema["properties"].values()


def _keys_in(value: Any) -> Iterator[str]:
    """Return the keys of an object and of its inner objects, in lower case."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            yield from map(str.lower, part)
            left += part.values()
        elif isinstance(part, list):
            left += part


def _is_quoted(read: BaseModel, source: str, material: Iterable[str]) -> bool:
    """Return whether a text of the material quotes an object, or all its values, each after its key, in any order."""
    reply = [_essence(member) for member in _members(read.model_dump(exclude_none=True))]
    texts = [_essence(text) for text in material]
    return any(_essence(source) in text or all(part in text for part in reply) for text in texts)


def _members(value: dict[str, Any]) -> Iterator[str]:
    """Yield the JSON of each key with its value; for a list of objects, of their keys."""
    for key, part in value.items():
        inner = [member for member in part if isinstance(member, dict)] if isinstance(part, list) else []
        for member in inner:
            yield from _members(member)
        if not inner:
            yield json.dumps({key: part}, ensure_ascii=False)[1:-1]


def _essence(text: str) -> str:
    """Normalize a text: remove differences in spaces, escapes, capitals and the form of numbers."""
    return _NUMBER.sub(lambda number: f"<{float(number[0])}>", _FREE.sub("", text).casefold())


def _small_letters(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def describe_problems(error: ValidationError, whole: str, most: int) -> str:
    """Describe the problems of a value in one line.

    Args:
        error: of its validation.
        whole: how the value itself is called.
        most: how many problems to list.
    """
    lines = error.errors(include_url=False, include_input=False)[:most]
    return "; ".join(f"{'.'.join(map(str, line['loc'])) or whole}: {line['msg']}" for line in lines)
