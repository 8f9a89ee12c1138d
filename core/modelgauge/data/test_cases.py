"""Goldens (inputs and references), and test cases (goldens with the app's answer).

Test cases record what happened, so they and their lists are frozen. Goldens are editable: a data set is
curated. How they are gathered and read from files lives in `modelgauge.evals`; how they are judged, in
`modelgauge.metrics`.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Unpack

from pydantic import BeforeValidator, ConfigDict, Field

from modelgauge.data.base import Frozen, Text
from modelgauge.data.case_fields import (
    AdditionalMetadata,
    Conversation,
    ConversationArguments,
    Editable,
    Exchange,
    ExchangeArguments,
    Fixed,
    Metadata,
    Ordered,
    Texts,
    Tools,
    WithAdditionalMetadata,
    WithMetadata,
)
from modelgauge.data.responses import Own, ToolCall
from modelgauge.errors import InvalidDataError

IN_METADATA = ("retrieval_context", "token_cost", "completion_time")
"""Runtime fields that are stored in a completion's metadata; it has fields of its own for the other two."""


class LLMTestCaseParams(StrEnum):
    """The parts of an `LLMTestCase` that a metric can look at."""

    INPUT = "input"
    ACTUAL_OUTPUT = "actual_output"
    EXPECTED_OUTPUT = "expected_output"
    CONTEXT = "context"
    RETRIEVAL_CONTEXT = "retrieval_context"
    TOOLS_CALLED = "tools_called"
    EXPECTED_TOOLS = "expected_tools"
    TOKEN_COST = "token_cost"  # noqa: S105  money, not a credential
    COMPLETION_TIME = "completion_time"
    TAGS = "tags"
    METADATA = "metadata"


class TurnParams(StrEnum):
    """The parts of a conversation that a metric can look at: of its turns, and of the whole."""

    ROLE = "role"
    CONTENT = "content"
    RETRIEVAL_CONTEXT = "retrieval_context"
    TOOLS_CALLED = "tools_called"
    CONTEXT = "context"
    SCENARIO = "scenario"
    EXPECTED_OUTCOME = "expected_outcome"
    USER_DESCRIPTION = "user_description"
    CHATBOT_ROLE = "chatbot_role"
    METADATA = "metadata"
    TAGS = "tags"


SingleTurnParams = LLMTestCaseParams
MultiTurnParams = TurnParams


# --- one question, one answer ---------------------------------------------------------------------------


class LLMTestCase(Exchange, Fixed, WithMetadata):
    """One use of an app: its input, its output, and the expected output.

    Args:
        input: what the user asked.
        actual_output: what the app answered.
        expected_output: what it should have answered.
        context: the facts that are known to be true, as a fixed reference.
        retrieval_context: the texts that the app found, best first.
        tools_called: the tools that the app called, in order.
        expected_tools: the tools that it should have called.
        token_cost: what the answer cost, in US dollars.
        completion_time: how long it took, in seconds.
        name: how reports call the case.
        tags: for grouping.
        comments: notes for people.
        custom_column_key_values: columns of a data set that are not fields.
        metadata: any JSON object; `additional_metadata` is an alias.

    Raises:
        InvalidDataError: an argument is unknown, missing or of a wrong type.
    """

    positional_fields: ClassVar[tuple[str, ...]] = ("input", "actual_output", "expected_output")
    comes_back: ClassVar[bool] = True

    metadata: Metadata = None

    if TYPE_CHECKING:

        def __init__(
            self,
            input: str,  # noqa: A002  the name that users know
            actual_output: str | None = None,
            expected_output: str | None = None,
            **fields: Unpack[ExchangeArguments],
        ) -> None: ...


# --- conversations --------------------------------------------------------------------------------------


class Turn(Frozen, WithMetadata):
    """One message of a conversation.

    Args:
        role: who speaks, "user" or "assistant".
        content: the text of the message.
        user_id: which user, where there are several.
        retrieval_context: the texts that the app found for this answer, best first.
        tools_called: the tools that the app called for this answer, in order.
        metadata: any JSON object; `additional_metadata` is an alias.
    """

    positional_fields: ClassVar[tuple[str, ...]] = ("role", "content")

    role: Literal["user", "assistant"]
    content: Text
    user_id: Text | None = None
    retrieval_context: Texts | None = None
    tools_called: Tools | None = None
    metadata: Metadata = None

    if TYPE_CHECKING:

        def __init__(
            self,
            role: Literal["user", "assistant"],
            content: str,
            *,
            user_id: str | None = None,
            retrieval_context: Sequence[str] | None = None,
            tools_called: Sequence[ToolCall] | None = None,
            metadata: Mapping[str, Any] | None = None,
            additional_metadata: Mapping[str, Any] | None = None,
        ) -> None: ...


def _as_turns(value: Any) -> Any:
    """Split each test case among the turns into its question and its answer."""
    listed = isinstance(value, list | tuple)
    return [turn for at, given in enumerate(value) for turn in _split_turn(given, at)] if listed else value


def _split_turn(turn: Any, place: int) -> list[Any]:
    if isinstance(turn, Mapping) and "input" in turn and "role" not in turn:
        turn = LLMTestCase(**turn)
    if not isinstance(turn, LLMTestCase):
        return [turn]
    if turn.actual_output is None:
        raise InvalidDataError(
            f"turns[{place}] is a test case without an 'actual_output', so the assistant has no turn.",
            fix="Give its actual_output, or Turn('user', …) where nobody answered.",
        )
    answer = Turn(
        "assistant",
        turn.actual_output,
        retrieval_context=turn.retrieval_context,
        tools_called=turn.tools_called,
        metadata=turn.metadata,
    )
    return [Turn("user", turn.input), answer]


Turns = Annotated[list[Turn], Field(min_length=1), Ordered, BeforeValidator(_as_turns), Own]
"""At least one turn; an `LLMTestCase` among them counts as two."""


class ConversationalTestCase(Conversation, Fixed, WithMetadata):
    """Test case of one conversation between a user and an app.

    Args:
        turns: at least one `Turn`; an `LLMTestCase` counts as two turns, its input and its actual output.
        chatbot_role: whom the app is to play.
        scenario: what the conversation is about.
        expected_outcome: how it should end.
        user_description: who the user is.
        context: the facts that are known to be true; see `LLMTestCase` for those not named here.
        metadata: any JSON object; `additional_metadata` is an alias.

    Raises:
        InvalidDataError: there is no turn, or an argument is unknown, missing or of a wrong type.
    """

    positional_fields: ClassVar[tuple[str, ...]] = ("turns",)

    turns: Turns
    metadata: Metadata = None

    if TYPE_CHECKING:

        def __init__(
            self,
            turns: Sequence[Turn | LLMTestCase],
            *,
            scenario: str | None = None,
            **fields: Unpack[ConversationArguments],
        ) -> None: ...


# --- goldens --------------------------------------------------------------------------------------------


class Golden(Exchange, Editable, WithAdditionalMetadata):
    """A question for an app, and the references for a good answer.

    The runtime fields (actual_output, retrieval_context, tools_called, token_cost, completion_time) can be
    given, with a warning: they belong to the test case that a run of the app makes of the golden.

    Args:
        input: what the user asks.
        actual_output: see `LLMTestCase`, as for the other fields that are not listed here.
        expected_output: what the app should answer.
        additional_metadata: any JSON object; `metadata` is an alias.
        source_file: the document that the golden was made from.

    Raises:
        InvalidDataError: an argument, or a value assigned later, is unknown, missing or of a wrong type.
    """

    model_config = ConfigDict(frozen=False)  # as Editable says; type checkers do not see it there

    positional_fields: ClassVar[tuple[str, ...]] = ("input",)

    additional_metadata: AdditionalMetadata = None
    source_file: Text | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            input: str,  # noqa: A002  the name that users know
            *,
            actual_output: str | None = None,
            expected_output: str | None = None,
            source_file: str | None = None,
            **fields: Unpack[ExchangeArguments],
        ) -> None: ...

    def to_test_case(self, actual_output: str | None = None, **fields: Any) -> LLMTestCase:
        """Create the test case for one run of the app.

        Args:
            actual_output: what the app answered; without it, what the golden holds.
            fields: any other fields of `LLMTestCase`, over those of the golden.

        Raises:
            InvalidDataError: a field is unknown or of a wrong type.
        """
        self.check()
        if actual_output is not None:
            fields["actual_output"] = actual_output
        return LLMTestCase(**_fields_from_golden(self, LLMTestCase, fields))


class ConversationalGolden(Conversation, Editable, WithAdditionalMetadata):
    """A scenario for a conversation with an app, and how it should end.

    Args:
        scenario: what the conversation is about; without it there must be turns. It is not a message of a user, so it
            is never sent to a SUT.
        turns: the beginning of the conversation, if it is fixed; only then can a SUT be asked.
        chatbot_role: see `ConversationalTestCase`, as for the other fields that are not listed here.
        additional_metadata: any JSON object; `metadata` is an alias.
        source_file: the document that the golden was made from.

    Raises:
        InvalidDataError: there is neither scenario nor turns, or an argument, or a value assigned later, is
            unknown or of a wrong type.
    """

    model_config = ConfigDict(frozen=False)  # as Editable says; type checkers do not see it there

    positional_fields: ClassVar[tuple[str, ...]] = ("scenario",)

    turns: Turns | None = None
    additional_metadata: AdditionalMetadata = None
    source_file: Text | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            scenario: str | None = None,
            *,
            turns: Sequence[Turn | LLMTestCase] | None = None,
            source_file: str | None = None,
            **fields: Unpack[ConversationArguments],
        ) -> None: ...

    @classmethod
    def _check_combination(cls, fields: Mapping[str, Any]) -> None:
        """Refuse a golden that does not say how to begin."""
        if fields["scenario"] is None and fields["turns"] is None:
            raise InvalidDataError(
                "ConversationalGolden: there is neither 'scenario' nor 'turns'.",
                fix="Say in scenario what the conversation is about, or give its first turns.",
            )

    def to_test_case(
        self, turns: "Sequence[Turn | LLMTestCase] | None" = None, **fields: Any
    ) -> ConversationalTestCase:
        """Create the test case for one run of the app.

        Args:
            turns: the whole conversation; without it, the turns of the golden.
            fields: any other fields of `ConversationalTestCase`, over those of the golden.

        Raises:
            InvalidDataError: there are no turns, or a field is unknown or of a wrong type.
        """
        self.check()
        if turns is not None:
            fields["turns"] = turns
        return ConversationalTestCase(**_fields_from_golden(self, ConversationalTestCase, fields))


def _fields_from_golden(
    golden: Golden | ConversationalGolden, case: type[Frozen], fields: dict[str, Any]
) -> dict[str, Any]:
    """Return the fields of a test case: those of a golden, overridden by the given fields."""
    if "additional_metadata" in fields:
        fields["metadata"] = fields.pop("additional_metadata")
    held = {name: getattr(golden, name) for name in case.model_fields}
    return {name: value for name, value in held.items() if value is not None} | fields
