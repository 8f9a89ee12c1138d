"""The fields and arguments that test cases and goldens share, and what makes a golden editable.

The classes that people use are in `test_cases`.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self, TypedDict

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, FiniteFloat, ValidationError
from pydantic_core import PydanticCustomError

from modelgauge.data.base import Frozen, Text, explain
from modelgauge.data.copies import read_only
from modelgauge.data.responses import Own, OwnJsonObject, ToolCall
from modelgauge.errors import InvalidDataError
from modelgauge.wording.did_you_mean import known_names
from modelgauge.wording.phrases import quoted

RUNTIME_FIELDS = ("actual_output", "retrieval_context", "tools_called", "token_cost", "completion_time")
"""Fields that come from running the app; the others are inputs, references and notes."""

_LONGEST_NAME = 60


def _as_amount(value: Any) -> Any:
    """Refuse True and "1", which pydantic would turn into numbers."""
    if isinstance(value, bool | str | bytes):
        raise PydanticCustomError("number", "Input should be a number")
    return value


Amount = Annotated[FiniteFloat, Field(ge=0), BeforeValidator(_as_amount)]


def _in_order(value: Any) -> Any:
    """Refuse sets, which pydantic would turn into lists of another order in each process."""
    if isinstance(value, set | frozenset):
        raise PydanticCustomError(
            "no_order", "a {kind} has no order of its own; give a list", {"kind": type(value).__name__}
        )
    return value


Ordered = BeforeValidator(_in_order)
Texts = Annotated[list[Text], Ordered]
Tools = Annotated[list[ToolCall], Ordered, Own]

Metadata = Annotated[
    OwnJsonObject | None, Field(validation_alias=AliasChoices("metadata", "additional_metadata"))
]
AdditionalMetadata = Annotated[
    OwnJsonObject | None, Field(validation_alias=AliasChoices("additional_metadata", "metadata"))
]


class _CaseBase(Frozen):
    """Test cases and goldens: their lists and mappings are their own."""

    what_it_is: ClassVar[str] = "test case"

    def __hash__(self) -> int:
        try:
            return hash((type(self), *self.__dict__.values()))
        except TypeError:
            raise TypeError(
                f"{type(self).__name__} {self._title()} has no hash, since it holds lists or mappings. As the key "
                "of a dict or in a set use its name, id(…) or it.model_dump_json()."
            ) from None

    def check(self) -> None:
        """Check all fields again, since lists and mappings may have been edited in place.

        Raises:
            InvalidDataError: something is wrong; the message names the golden or test case, and the field.
        """
        if not holds_more_than_texts(self):
            return
        try:
            held = self.model_dump(warnings=False, serialize_as_any=True)
            self.__pydantic_validator__.validate_python(held)
        except ValidationError as error:
            refused = explain(error, type(self))
            raise InvalidDataError(
                f"The {self.what_it_is} {self._title()} was edited in place, past all checks. {refused.problem}",
                fix=refused.fix,
            ) from None

    def _title(self) -> str:
        """Return the name, or the beginning of the input or scenario."""
        fields = self.__dict__
        title = next((str(fields[name]) for name in ("name", "input", "scenario") if fields.get(name)), "")
        return quoted(title, _LONGEST_NAME)

    def replaced(self, **fields: Any) -> Self:
        """Return a copy with some fields replaced, validated like constructor arguments.

        Raises:
            InvalidDataError: a field is unknown or of a wrong type.
        """
        held = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self)(**{**held, **fields})


class Fixed(_CaseBase):
    """Test cases: their lists and mappings are read-only too."""

    def model_post_init(self, _: Any, /) -> None:
        """Make the lists and mappings of the case read-only. Pydantic calls this after validation."""
        held = self.__dict__
        for name, value in held.items():
            if (kind := type(value)) is list or kind is dict:
                held[name] = read_only(value)


class WithMetadata:
    """A class with a field `metadata`, which can also be read as `additional_metadata`."""

    @property
    def additional_metadata(self: Any) -> dict[str, Any] | None:
        """The `metadata`, under the name that goldens have for it."""
        held: dict[str, Any] | None = self.metadata
        return held


class WithAdditionalMetadata:
    """A class with a field `additional_metadata`, which can also be read as `metadata`."""

    @property
    def metadata(self: Any) -> dict[str, Any] | None:
        """The `additional_metadata`, under the name that test cases have for it."""
        held: dict[str, Any] | None = self.additional_metadata
        return held


class Exchange(_CaseBase):
    """The fields that `LLMTestCase` and `Golden` share."""

    input: Text
    actual_output: Text | None = None
    expected_output: Text | None = None
    context: Texts | None = None
    retrieval_context: Texts | None = None
    tools_called: Tools | None = None
    expected_tools: Tools | None = None
    token_cost: Amount | None = None
    completion_time: Amount | None = None
    name: Text | None = None
    tags: Texts | None = None
    comments: Text | None = None
    custom_column_key_values: OwnJsonObject | None = None


class Conversation(_CaseBase):
    """The fields that `ConversationalTestCase` and `ConversationalGolden` share."""

    chatbot_role: Text | None = None
    scenario: Text | None = None
    expected_outcome: Text | None = None
    user_description: Text | None = None
    context: Texts | None = None
    token_cost: Amount | None = None
    completion_time: Amount | None = None
    name: Text | None = None
    tags: Texts | None = None
    comments: Text | None = None
    custom_column_key_values: OwnJsonObject | None = None


# --- the arguments of the constructors, for type checkers ------------------------------------------------


class _Arguments(TypedDict, total=False):
    context: Sequence[str] | None
    token_cost: float | None
    completion_time: float | None
    name: str | None
    tags: Sequence[str] | None
    comments: str | None
    custom_column_key_values: Mapping[str, Any] | None
    metadata: Mapping[str, Any] | None
    additional_metadata: Mapping[str, Any] | None


class ExchangeArguments(_Arguments, total=False):
    """The arguments by name that `LLMTestCase` and `Golden` share."""

    retrieval_context: Sequence[str] | None
    tools_called: Sequence[ToolCall] | None
    expected_tools: Sequence[ToolCall] | None


class ConversationArguments(_Arguments, total=False):
    """The arguments by name that `ConversationalTestCase` and `ConversationalGolden` share."""

    chatbot_role: str | None
    expected_outcome: str | None
    user_description: str | None


# --- what makes a golden editable ------------------------------------------------------------------------


class Editable(_CaseBase):
    """Goldens: they can be changed after they were made; an assigned value is checked as in the constructor.

    What is put into a list or mapping of it is not; that is for `check` to find.
    """

    model_config = ConfigDict(frozen=False, validate_assignment=True)

    what_it_is: ClassVar[str] = "golden"

    def __init__(self, /, *args: Any, **data: Any) -> None:
        super().__init__(*args, **data)
        self._check_combination(self.__dict__)
        _warn_of_prefilled(prefilled(self))

    # As in Frozen: values that are read back (from a record, from a file) do not warn one by one.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # pydantic's own mark

    @classmethod
    def _check_combination(cls, fields: Mapping[str, Any]) -> None:
        """Refuse fields that do not go together."""

    def __setattr__(self, name: str, value: Any) -> None:
        fields = type(self).model_fields
        if name not in fields and not name.startswith("_"):
            fix = known_names(name, fields, "The fields are")
            raise InvalidDataError(f"{type(self).__name__} has no field '{name}'.", fix=fix)
        self._check_combination({**self.__dict__, name: value})
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            raise explain(error, type(self)) from None
        _warn_of_prefilled([field for field in prefilled(self) if field == name])


def prefilled(golden: Editable) -> list[str]:
    """List the runtime fields that a golden sets, although they should come from running the app."""
    return [name for name in RUNTIME_FIELDS if getattr(golden, name, None) is not None]


def _warn_of_prefilled(names: Sequence[str]) -> None:
    if names:
        warnings.warn(
            f"A golden with {' and '.join(names)}: that is for the app to say when it runs, and belongs to a "
            "test case. Leave it out, or make a test case.",
            stacklevel=3,
        )


def holds_more_than_texts(case: Frozen) -> bool:
    """Return whether a test case or golden contains anything but texts and numbers."""
    for value in case.__dict__.values():
        if value is not None and type(value) is not str and type(value) is not float:
            return True
    return False
