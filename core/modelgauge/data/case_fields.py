"""The fields and arguments that test cases and goldens share, and what makes a golden editable.

The classes that people use are in `test_cases`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self, TypedDict

from pydantic import BeforeValidator, ConfigDict, Field, FiniteFloat, ValidationError
from pydantic_core import PydanticCustomError

from modelgauge.data.base import Frozen, Text, explain
from modelgauge.data.responses import JsonObject, ToolCall
from modelgauge.did_you_mean import did_you_mean
from modelgauge.errors import InvalidDataError
from modelgauge.shortening import quoted

_LONGEST_NAME = 60


def _as_amount(value: Any) -> Any:
    """Refuse what pydantic would make a number of, although it is none: True, and "1"."""
    if isinstance(value, bool | str | bytes):
        raise PydanticCustomError("number", "Input should be a number")
    return value


Amount = Annotated[FiniteFloat, Field(ge=0), BeforeValidator(_as_amount)]


class _Copied(Frozen):
    """What users copy."""

    def replaced(self, **fields: Any) -> Self:
        """A copy with other values in some fields, checked as the constructor checks them.

        Raises:
            InvalidDataError: a field is unknown or of a wrong type.
        """
        held = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self)(**{**held, **fields})


class Exchange(_Copied):
    """The fields of `LLMTestCase` and `Golden` alike."""

    input: Text
    actual_output: Text | None = None
    expected_output: Text | None = None
    context: list[Text] | None = None
    retrieval_context: list[Text] | None = None
    tools_called: list[ToolCall] | None = None
    expected_tools: list[ToolCall] | None = None
    token_cost: Amount | None = None
    completion_time: Amount | None = None
    name: Text | None = None
    tags: list[Text] | None = None
    comments: Text | None = None
    custom_column_key_values: JsonObject | None = None


class Conversation(_Copied):
    """The fields of `ConversationalTestCase` and `ConversationalGolden` alike."""

    chatbot_role: Text | None = None
    scenario: Text | None = None
    expected_outcome: Text | None = None
    user_description: Text | None = None
    context: list[Text] | None = None
    token_cost: Amount | None = None
    completion_time: Amount | None = None
    name: Text | None = None
    tags: list[Text] | None = None
    comments: Text | None = None
    custom_column_key_values: JsonObject | None = None


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
    """What `LLMTestCase` and `Golden` take by name alike."""

    retrieval_context: Sequence[str] | None
    tools_called: Sequence[ToolCall] | None
    expected_tools: Sequence[ToolCall] | None


class ConversationArguments(_Arguments, total=False):
    """What `ConversationalTestCase` and `ConversationalGolden` take by name alike."""

    chatbot_role: str | None
    expected_outcome: str | None
    user_description: str | None


# --- what makes a golden editable ------------------------------------------------------------------------


class Editable(Frozen):
    """What can be changed after it was made; what is assigned is checked as the constructor checks it.

    What is put into a list or mapping of it is not; that is for `check` to find.
    """

    model_config = ConfigDict(frozen=False, validate_assignment=True)

    def check(self) -> None:
        """Check all fields anew, since lists and mappings may have been edited in place.

        Raises:
            InvalidDataError: something is wrong; the message names the golden and the field.
        """
        try:
            self.__pydantic_validator__.validate_python(_opened(dict(self.__dict__)))
        except ValidationError as error:
            refused = explain(error, type(self))
            raise InvalidDataError(
                f"The golden {self._called()} was edited in place, past all checks. {refused.problem}",
                fix=refused.fix,
            ) from None

    def _called(self) -> str:
        """By its name, else by how it begins."""
        fields = self.__dict__
        said = next((str(fields[name]) for name in ("name", "input", "scenario") if fields.get(name)), "")
        return quoted(said, _LONGEST_NAME)

    def __setattr__(self, name: str, value: Any) -> None:
        fields = type(self).model_fields
        if name not in fields and not name.startswith("_"):
            raise InvalidDataError(
                f"{type(self).__name__} has no field '{name}'.",
                fix=f"{did_you_mean(name, fields)}The fields are: {', '.join(fields)}.",
            )
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            raise explain(error, type(self)) from None


def _opened(value: Any) -> Any:
    """A value whose frozen parts are mappings, so that what they hold is checked, too."""
    if isinstance(value, Frozen):
        return _opened(value.__dict__)
    if isinstance(value, list):
        return [_opened(one) for one in value]
    if type(value) is dict:
        return {name: _opened(one) for name, one in value.items()}
    return value
