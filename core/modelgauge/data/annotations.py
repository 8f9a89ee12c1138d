"""An item with its annotated responses, and an item with its measurements."""

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, SupportsFloat, TypeVar, overload

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from modelgauge.data.base import Count, Frozen, Text, added_later, list_names, of_valid, typed
from modelgauge.data.items import PromptWithContext, TestItem, get_context
from modelgauge.data.json_values import check_exact, finite_number
from modelgauge.data.responses import SUTCompletion, SUTResponse, Usage
from modelgauge.errors import InvalidDataError
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.phrases import a_thing

T = TypeVar("T")


def _exact_annotations(value: dict[str, Any]) -> dict[str, Any]:
    for key, annotation in value.items():
        check_exact(annotation, f"annotation '{key}'")
    return value


class SUTCompletionAnnotations(Frozen):
    """A completion and its annotations, keyed by the names that the test gave the annotators."""

    completion: SUTCompletion
    annotations: Annotated[dict[Text, Any], AfterValidator(_exact_annotations)] = Field(default_factory=dict)

    @overload
    def get_annotation(self, key: str) -> Any: ...
    @overload
    def get_annotation(self, key: str, cls: type[T]) -> T: ...
    def get_annotation(self, key: str, cls: type[T] | None = None) -> T | Any:
        """Return the annotation under a name as an object of the given class.

        Raises:
            InvalidDataError: no annotator has this name, or the annotation is of another class.
        """
        if key not in self.annotations:
            raise InvalidDataError(
                f"There is no annotation '{key}'.",
                fix=f"{did_you_mean(key, self.annotations)}Here are: {list_names(self.annotations)}.",
            )
        value = self.annotations[key]
        return value if cls is None else typed(value, cls)


class SUTResponseAnnotations(Frozen):
    """A response whose completions are annotated."""

    completions: tuple[SUTCompletionAnnotations, ...]
    usage: Usage | None = None

    @property
    def is_blocked(self) -> bool:
        """True if the service blocked a completion."""
        return any(each.completion.blocked for each in self.completions)

    @property
    def unannotated(self) -> SUTResponse:
        """The response of the SUT alone."""
        return SUTResponse([each.completion for each in self.completions], self.usage)


class CallTime(NamedTuple):
    """Time at which a call was sent, in seconds of Unix time, and the seconds until its answer; of the last attempt."""

    began: float
    seconds: float


class Interaction(Frozen):  # noqa: PLW1641  pydantic makes the hash of what is frozen
    """A prompt and the response to it, with the annotations of its completions.

    Args:
        prompt: the prompt.
        response: the response.
        repeat: the number of the repeat, from 0, if a run asks each prompt several times.
        key: of the answer in the cache, in the journal and in no other JSON; None if it is not cached.
        annotation_keys: for each completion the cache keys of its annotations by name, if any is cached; in the journal
            only.
        other_keys: the cache keys of further completions that were calls of their own, and of judges' answers; in the
            journal only.
        time: of the SUT's call, or of the longest of several; None if the answer was in the cache or was computed at
            once. It is in the journal only, and interactions that differ only in it are equal.
    """

    prompt: PromptWithContext
    response: SUTResponseAnnotations
    repeat: Count = 0
    key: str | None = Field(default=None, exclude=True, repr=False)
    annotation_keys: tuple[dict[str, str], ...] = Field(default=(), exclude=True, repr=False)
    other_keys: tuple[str, ...] = Field(default=(), exclude=True, repr=False)
    time: CallTime | None = Field(default=None, exclude=True, repr=False)

    @property
    def keys(self) -> list[str]:
        """All cache keys: of the calls to the SUT, of the answers to judges, of annotations."""
        own = [] if self.key is None else [self.key]
        return [*own, *self.other_keys, *(key for each in self.annotation_keys for key in each.values())]

    def __key_form__(self) -> tuple[str, dict[str, Any]]:
        """Return the names of the class and of the fields in cache keys."""
        return f"{__name__}:PromptInteractionAnnotations", self.__dict__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Interaction) and other.time != self.time:
            other = other.replaced(time=self.time)
        return super().__eq__(other)


PromptInteractionAnnotations = Interaction
"""The name of the class in Tests written before."""


def make_interaction(
    prompt: PromptWithContext,
    response: SUTResponse,
    repeat: int = 0,
    *,
    keys: Sequence[str | None] = (),
    time: CallTime | None = None,
) -> Interaction:
    """Return an interaction without annotations.

    Args:
        prompt: the prompt.
        response: the response of the SUT.
        repeat: the number of the repeat.
        keys: of the calls in the cache, None for a call that is not cached.
        time: of the longest call.
    """
    completions = tuple(
        [
            of_valid(SUTCompletionAnnotations, completion=completion, annotations={})
            for completion in response.completions
        ]
    )
    return of_valid(
        Interaction,
        prompt=prompt,
        response=of_valid(SUTResponseAnnotations, completions=completions, usage=response.usage),
        repeat=repeat,
        key=keys[0] if keys else None,
        annotation_keys=(),
        other_keys=tuple([key for key in keys[1:] if key is not None]),
        time=time,
    )


def add_annotations(
    interaction: Interaction, found: Iterable[tuple[int, str, Any, str | None]], judge_keys: Iterable[str]
) -> Interaction:
    """Return an interaction with annotations.

    Args:
        interaction: without annotations.
        found: the annotations in their order: the place of the completion, the name of the annotator, the annotation,
            and its key in the cache or None.
        judge_keys: the cache keys of the answers to judges.
    """
    response = interaction.response
    annotations: list[dict[str, Any]] = [{} for _ in response.completions]
    keys: list[dict[str, str]] = [{} for _ in response.completions]
    for place, name, annotation, key in found:
        annotations[place][name] = annotation
        if key is not None:
            keys[place][name] = key
    completions = [
        completion.replaced(annotations=own)
        for completion, own in zip(response.completions, annotations, strict=True)
    ]
    return interaction.replaced(
        response=response.replaced(completions=tuple(completions)),
        annotation_keys=tuple(keys) if any(keys) else (),
        other_keys=tuple(dict.fromkeys([*interaction.other_keys, *judge_keys])),
    )


def list_completions(interactions: Iterable[Interaction]) -> list[SUTCompletionAnnotations]:
    """Return all completions of some interactions, with their annotations, in order."""
    return [completion for interaction in interactions for completion in interaction.response.completions]


def _with_prompts(value: Any, info: ValidationInfo) -> Any:
    """Return the interactions with the prompts to which a journal refers by position."""
    prompts = info.data["test_item"].prompts if "test_item" in info.data else ()
    return [_with_prompt(interaction, prompts) for interaction in value] if type(value) is list else value


def _with_prompt(value: Any, prompts: tuple[PromptWithContext, ...]) -> Any:
    if type(value) is not dict or "prompt_index" not in value:
        return value
    rest = dict(value)
    place = rest.pop("prompt_index")
    if place is None:
        return rest
    if type(place) is not int or not 0 <= place < len(prompts):
        raise ValueError(f"the item has no prompt {place!r}")
    return {**rest, "prompt": prompts[place]}


Interactions = Annotated[tuple[Interaction, ...], BeforeValidator(_with_prompts)]


class _OfItem(Frozen):
    """Base of values that belong to an item."""

    __test__: ClassVar[bool] = False

    test_item: TestItem

    @property
    def context(self) -> Any:
        """The item's context, or where it has none the context of its only prompt."""
        return get_context(self.test_item)


class TestItemAnnotations(_OfItem):
    """An item with all its annotated responses: what `measure_quality` gets.

    Args:
        test_item: the item.
        interactions: one for each prompt, in the item's order.
    """

    positional_fields: ClassVar[tuple[str, ...]] = ("test_item", "interactions")

    interactions: tuple[Interaction, ...]

    if TYPE_CHECKING:

        def __init__(self, test_item: TestItem, interactions: Sequence[Interaction]) -> None: ...

    @property
    def text(self) -> str:
        """The completion's text, for an item of one prompt and one completion."""
        return self._only().completion.text

    @overload
    def annotation(self, key: str) -> Any: ...
    @overload
    def annotation(self, key: str, cls: type[T]) -> T: ...
    def annotation(self, key: str, cls: type[T] | None = None) -> T | Any:
        """Return the only completion's annotation under a name; see `SUTCompletionAnnotations.get_annotation`."""
        return self._only().get_annotation(key) if cls is None else self._only().get_annotation(key, cls)

    def _only(self) -> SUTCompletionAnnotations:
        completions = list_completions(self.interactions)
        if len(completions) != 1:
            raise InvalidDataError(
                f"Item '{self.test_item.id}' has {len(completions)} completions, so there is no single text.",
                fix="Use item.interactions[i].response.completions[j], not item.text and item.annotation.",
            )
        return completions[0]


def measurement(name: str, value: Any) -> float:
    """Convert a measurement to a finite float.

    Args:
        name: of the measurement, for messages.
        value: a float, int, bool, or another number (of numpy, say).

    Raises:
        InvalidDataError: it is not a number, or not finite.
    """
    if type(value) is float and math.isfinite(value):  # most are
        return value
    if not (isinstance(value, Real) or hasattr(value, "__float__")):
        raise InvalidDataError(
            f"Measurement '{name}' is {a_thing(value)}, not a number.",
            fix="Return float, int or bool; leave out a measurement that this item does not have.",
        )
    return finite_number(f"Measurement '{name}'", value, instead="raise an error to leave the item unscored")


def _measurements(value: Any) -> Any:
    if type(value) is dict or isinstance(value, Mapping):
        return {name: measurement(name, part) for name, part in value.items()}
    return value


Measurements = Annotated[dict[Text, float], BeforeValidator(_measurements)]
"""Named finite floats; bool, int and numpy's numbers are taken too."""


class MeasuredTestItem(_OfItem):
    """An item and its named numbers: what `aggregate_measurements` gets.

    Args:
        test_item: the item.
        measurements: its numbers by name.
        interactions: its prompts with the responses, those of all repeats; for statistics of a whole corpus.
    """

    positional_fields: ClassVar[tuple[str, ...]] = ("test_item", "measurements")

    measurements: Measurements
    interactions: tuple[Interaction, ...] = added_later(())

    if TYPE_CHECKING:

        def __init__(
            self,
            test_item: TestItem,
            measurements: Mapping[str, SupportsFloat],
            *,
            interactions: Sequence[Interaction] = (),
        ) -> None: ...
