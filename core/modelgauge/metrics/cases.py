"""What a metric judges: the test case of a prompt, its context and a completion.

The classes of test cases are in `data/test_cases.py`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel

from modelgauge.data.items import PromptWithContext
from modelgauge.data.prompts import AnyPrompt, TextPrompt
from modelgauge.data.responses import SUTCompletion
from modelgauge.data.test_cases import (
    ConversationalGolden,
    ConversationalTestCase,
    Golden,
    LLMTestCase,
    Turn,
)
from modelgauge.errors import MissingParameterError

TestCase: TypeAlias = LLMTestCase | ConversationalTestCase

NO_OUTPUT = {"actual_output": None}
"""What the metadata of a completion says that stands for an answer which is not there."""

_OF_A_COMPLETION = ("retrieval_context", "tools_called", "token_cost", "completion_time")
_LONGEST_TITLE = 60
_SUT_GIVES_IT = (
    " An app that is asked gives it: update_current_trace({name}=…), where it is observed; any other SUT in its "
    "completion: SUTCompletion(text, {where})."
)
_CONVERSATION = frozenset(ConversationalTestCase.model_fields)
_EXCHANGE = frozenset(LLMTestCase.model_fields)


def case_of(prompt: PromptWithContext, completion: SUTCompletion) -> TestCase:
    """The test case that a prompt and its completion make, for a metric that judges as an annotator.

    References (`expected_output`, `context`, `expected_tools`, …) come from the prompt's context, where that
    is a golden, a test case, or a mapping or model with those names; other names in it are the test's own
    and are left alone. What the completion says itself goes before: its text is the `actual_output`, its
    tool calls are the `tools_called`, and its metadata may hold the other runtime fields
    (`retrieval_context`, `token_cost`, `completion_time`). A completion has a text in any case: where its
    metadata says that `actual_output` is None, nothing was answered.

    Raises:
        InvalidDataError: a reference is of a wrong type.
    """
    context = prompt.context
    if isinstance(context, ConversationalTestCase):
        return context
    if isinstance(context, ConversationalGolden):
        return _continued(context, prompt.prompt, completion)
    said = _said(completion)
    if isinstance(context, LLMTestCase):
        same = all(getattr(context, name) == value for name, value in said.items())
        return context if same else context.replaced(**_checked(said))
    if isinstance(context, Golden):
        return context.to_test_case(**said)
    held = _named_fields(context)
    if "turns" in held:
        return ConversationalTestCase(**held)
    return LLMTestCase(**{"input": text_of(prompt.prompt), **held, **said})


def missing_parameters(case: TestCase, names: Iterable[str]) -> list[str]:
    """Those of the named fields that a case does not have. An empty text or list is there."""
    return [name for name in names if getattr(case, name, None) is None]


def check_case(
    case: Any,
    kind: type[BaseModel],
    names: Iterable[str],
    metric: str,
    *,
    by_app: bool = False,
    golden: type[BaseModel] | None = None,
) -> None:
    """Refuse a case that a metric cannot judge.

    Args:
        case: to be judged.
        kind: the class of cases that the metric judges.
        names: the fields that it needs.
        metric: its name, for the message.
        by_app: whether the case is what an observed app made of a golden.
        golden: the class of the golden of which the case was made, where its author has made no case.

    Raises:
        MissingParameterError: it is of another kind, or lacks a field.
    """
    if not isinstance(case, kind):
        raise MissingParameterError(
            f"{metric} judges a {kind.__name__}, and got a {type(case).__name__}.",
            fix=f"Give it a {kind.__name__}, or use another metric.",
        )
    for name in [one for one in names if getattr(case, one, None) is None]:
        if by_app and name == "actual_output":
            raise MissingParameterError(
                f"{metric} needs 'actual_output', and the app returned None for {called(case)}.",
                fix="Let the function that is observed return its answer.",
            )
        what, made = ("test case", kind) if golden is None else ("golden", golden)
        raise MissingParameterError(
            f"{metric} needs '{name}', which the {what} {called(case)} does not have.",
            fix=f"Make the {what.split()[-1]} with it: {made.__name__}(…, {name}=…)."
            + (_SUT_GIVES_IT.format(name=name, where=_where(name)) if name in _OF_A_COMPLETION else ""),
        )


def _where(name: str) -> str:
    return "tool_calls=[…]" if name == "tools_called" else f'metadata={{"{name}": …}}'


def text_of(prompt: AnyPrompt) -> str:
    """What a prompt asks, as one text; the roles of a chat are told where it has more than one message."""
    if isinstance(prompt, TextPrompt):
        return prompt.text
    if len(prompt.messages) == 1:
        return prompt.messages[0].text
    return "\n".join(f"{message.role.value}: {message.text}" for message in prompt.messages)


def _said(completion: SUTCompletion) -> dict[str, Any]:
    said: dict[str, Any] = {"actual_output": completion.text}
    if completion.metadata:  # seldom, and this runs for every case of every metric
        if completion.metadata.get("actual_output", "") is None:
            said["actual_output"] = None
        held = {name: completion.metadata.get(name) for name in _OF_A_COMPLETION}
        said |= {name: value for name, value in held.items() if value is not None}
    if completion.tool_calls is not None:
        said["tools_called"] = list(completion.tool_calls)
    return said


def _checked(said: dict[str, Any]) -> dict[str, Any]:
    """What a completion says, with the types of a test case."""
    case = LLMTestCase(input="", **said)
    return {name: getattr(case, name) for name in said}


def _named_fields(context: Any) -> dict[str, Any]:
    """The fields of a test case in a context."""
    if isinstance(context, BaseModel):
        held: Mapping[Any, Any] = {name: getattr(context, name) for name in type(context).model_fields}
    else:
        held = context if isinstance(context, Mapping) else {}
    known = _CONVERSATION if held.get("turns") is not None else _EXCHANGE
    return {name: value for name, value in held.items() if name in known and value is not None}


def _continued(
    golden: ConversationalGolden, prompt: AnyPrompt, completion: SUTCompletion
) -> ConversationalTestCase:
    """A conversation that goes on with one completion."""
    turns = list(golden.turns or [Turn("user", text_of(prompt))])
    if turns[-1].role == "user":
        turns.append(Turn("assistant", completion.text))
    return golden.to_test_case(turns)


def title_of(case: BaseModel) -> str:
    """How reports call a case: by its name, else by what was said first."""
    if isinstance(case, ConversationalTestCase):
        return case.name or case.turns[0].content
    return getattr(case, "name", None) or str(getattr(case, "input", ""))


def called(case: BaseModel) -> str:
    """A case as messages call it: its title in quotes, where it is long only its beginning."""
    said = title_of(case)
    return repr(said) if len(said) <= _LONGEST_TITLE else f"{said[:_LONGEST_TITLE]!r}…"
