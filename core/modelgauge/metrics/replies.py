"""What a judge replies, read strictly: one JSON object of the shape that was asked for, or an error.

Judges write prose around their JSON, think aloud, contradict themselves, and stop in the middle. A reply
counts only where exactly one thing can be meant; a score is never guessed from words.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    create_model,
)

from modelgauge.text.reasoning import split_reasoning

T = TypeVar("T", bound=BaseModel)

_NonEmpty = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def _whole(said: Any) -> Any:
    """A whole number, also where the judge wrote it with a point, as 7.0."""
    return int(said) if isinstance(said, float) and said.is_integer() else said


_Whole = Annotated[int, BeforeValidator(_whole)]


class UnusableReplyError(ValueError):
    """A reply cannot be understood; the message says why, in words that the judge can mend it by."""


class Shape(NamedTuple, Generic[T]):
    """What a reply must be.

    Args:
        model: the reply as an object. It ignores what it does not know.
        shown: the same for the judge. It is no JSON itself, so that a judge who repeats it has said nothing.
        schema: the same for judges that produce structured output. It keeps to what all of them understand:
            every property required, no others, and no limits of lengths; these the model checks.
    """

    model: type[T]
    shown: str
    schema: dict[str, Any]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class Statements(_Reply):
    """What was found in a text; possibly nothing."""

    statements: list[_NonEmpty]


class Verdict(_Reply):
    """What a judge says of one item.

    Args:
        item: the number of the item, from 1.
        verdict: one of the words that were asked for.
        reason: why.
    """

    item: _Whole | None = None
    verdict: str
    reason: str | None = None


class Verdicts(_Reply):
    """What a judge says of each item, in their order."""

    verdicts: Sequence[Verdict]


class Points(_Reply):
    """A grade on a scale of whole points."""

    score: _Whole
    reason: str | None = None


class Steps(_Reply):
    """How to judge by a criterion."""

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
    '{"statements": [TEXT, TEXT, …]}\nThe list is empty where there is nothing to list.',
    _object(statements=_list(_TEXT)),
)
STEPS = Shape(Steps, '{"steps": [TEXT, TEXT, …]}', _object(steps=_list(_TEXT)))


@lru_cache(maxsize=512)
def verdicts_shape(words: tuple[str, ...], count: int, *, reasons: bool) -> Shape[Verdicts]:
    """Verdicts on a number of items, in certain words.

    Args:
        words: the verdicts that there are, in small letters.
        count: how many items.
        reasons: whether the judge shall say why.
    """
    word: Any = Annotated[Literal[words], BeforeValidator(_small_letters)]
    one = create_model("Verdict", __base__=Verdict, verdict=(word, ...))
    several: Any = Annotated[list[one], Field(min_length=count, max_length=count)]
    model = create_model("Verdicts", __base__=Verdicts, verdicts=(several, ...))
    choice = " or ".join(f'"{word}"' for word in words)
    example = f'{{"item": 1, "verdict": {choice}{_REASON if reasons else ""}}}'
    told = "one verdict" if count == 1 else f"exactly {count} verdicts, one for each item, in their order"
    return Shape(
        model,
        f'{{"verdicts": [{example}{"" if count == 1 else ", …"}]}}\nThere is {told}.',
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
    """One of some whole grades.

    The reason stands after the grade, so that the grade's own token carries the probabilities.

    Args:
        grades: those that can be given, in ascending order.
        reasons: whether the judge shall say why.
    """
    model = create_model(
        "Points", __base__=Points, score=(Annotated[_Whole, AfterValidator(_one_of(grades))], ...)
    )
    example = f'{{"score": NUMBER{_REASON if reasons else ""}}}'
    return Shape(
        model,
        f"{example}\nNUMBER is a whole number: {_spans(grades)}.",
        _object(score={"type": "integer", "enum": list(grades)}, **_reason(reasons=reasons)),
    )


def _reason(*, reasons: bool) -> dict[str, dict[str, Any]]:
    return {"reason": _TEXT} if reasons else {}


def _one_of(grades: tuple[int, ...]) -> Callable[[int], int]:
    def check(said: int) -> int:
        if said not in grades:
            raise ValueError(f"Input should be {_spans(grades)}")
        return said

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
_OBJECT = re.compile(r'\{\s*["}]')  # other braces are prose


def read_reply(text: str, shape: Shape[T]) -> T:
    """The one object of a shape that a reply holds. Prose and reasoning around it do not matter.

    Raises:
        UnusableReplyError: there is none, there are two that differ, or its JSON is broken.
    """
    said = split_reasoning(text)
    if said.truncated:
        raise UnusableReplyError("it ended while still thinking")
    if not said.text.strip():
        raise UnusableReplyError("it is empty")
    found: list[T] = []
    problem = "it holds no JSON object"
    for candidate in _objects(said.text):
        try:
            read = shape.model.model_validate(candidate)
            _check_order(read)
        except ValidationError as error:
            problem = _told(error)
            continue
        if read not in found:
            found.append(read)
    if len(found) > 1:
        raise UnusableReplyError("it holds two JSON objects that contradict each other")
    if not found:
        raise UnusableReplyError(problem)
    return found[0]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, none of those inside others.

    Raises:
        UnusableReplyError: something begins like an object and is none: what stands inside it is nothing.
    """
    # Not strict: judges break the lines of their texts where JSON wants \n, and what is meant is plain.
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeats, parse_constant=_no_number, strict=False)
    end = 0
    while (start := _OBJECT.search(text, end)) is not None:
        try:
            value, end = decoder.raw_decode(text, start.start())
        except (json.JSONDecodeError, RecursionError) as error:
            raise UnusableReplyError(f"its JSON is broken: {error}") from None
        yield value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise UnusableReplyError("one of its JSON objects says the same key twice")
    return made


def _no_number(name: str) -> Any:
    raise UnusableReplyError(f"{name} is no number")


def _check_order(read: BaseModel) -> None:
    """Refuse verdicts whose numbers are not those of the items, one after the other."""
    if not isinstance(read, Verdicts):
        return
    numbers = [one.item for one in read.verdicts]
    if any(number is not None and number != place for place, number in enumerate(numbers, start=1)):
        raise UnusableReplyError(f"its items are numbered {numbers}, not 1 to {len(numbers)}")


def _small_letters(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def _told(error: ValidationError) -> str:
    lines = error.errors(include_url=False, include_input=False)[:3]
    return "; ".join(f"{'.'.join(map(str, line['loc'])) or 'the object'}: {line['msg']}" for line in lines)
