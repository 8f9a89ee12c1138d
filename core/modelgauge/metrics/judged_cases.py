"""Test cases for metrics, built from a prompt, its context and a completion.

The classes of test cases are in `data/test_cases.py`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from modelgauge.data.base import Frozen
from modelgauge.data.case_fields import holds_more_than_texts
from modelgauge.data.copies import unshared
from modelgauge.data.items import PromptWithContext
from modelgauge.data.prompts import AnyPrompt
from modelgauge.data.responses import SUTCompletion
from modelgauge.data.spans import SPAN, TRACE
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase, Turn
from modelgauge.errors import MissingParameterError
from modelgauge.wording.phrases import a_class, a_thing, quoted

TestCase: TypeAlias = LLMTestCase | ConversationalTestCase

NO_OUTPUT = {"actual_output": None}
"""The metadata of a completion that stands for a missing answer."""

_OF_A_COMPLETION = ("retrieval_context", "tools_called", "token_cost", "completion_time")
_LONGEST_TITLE = 60
_CONVERSATION = frozenset(ConversationalTestCase.model_fields)
_EXCHANGE = frozenset(LLMTestCase.model_fields)


def case_of(prompt: PromptWithContext, completion: SUTCompletion) -> TestCase:
    """Build the test case of a prompt and its completion for a metric that judges as an annotator.

    References (`expected_output`, `context`, `expected_tools`, …) come from the prompt's context, where that is a
    golden, a test case, or a mapping or model with those names; other names in it are the test's own and are left
    alone. The completion's own values replace them: its text is the `actual_output`, its tool calls are the
    `tools_called`, and its metadata may hold the other runtime fields (`retrieval_context`, `token_cost`,
    `completion_time`). A completion has a text in any case: where its metadata says that `actual_output` is None,
    nothing was answered.

    Raises:
        InvalidDataError: a reference is of a wrong type.
    """
    context = prompt.context
    if isinstance(context, ConversationalTestCase):
        return context
    if isinstance(context, ConversationalGolden):
        return _continued_case(context, prompt.prompt, completion)
    fields = _fields(completion)
    if isinstance(context, LLMTestCase):
        same = all(getattr(context, name) == value for name, value in fields.items())
        return context if same else context.replaced(**_checked_fields(fields))
    if isinstance(context, Golden):
        return context.to_test_case(**fields)
    held = _named_fields(context)
    if "turns" in held:
        return ConversationalTestCase(**held)
    return LLMTestCase(**{"input": format_prompt(prompt.prompt), **held, **fields})


def own_case(case: Any) -> Any:
    """Return a test case for one metric only, copied where edits in place could reach the next metric."""
    return unshared(case) if isinstance(case, Frozen) and holds_more_than_texts(case) else case


def missing_parameters(case: BaseModel, names: Iterable[str]) -> list[str]:
    """Return the named fields that a case lacks. Empty texts and lists do not count as missing."""
    return [name for name in names if getattr(case, name, None) is None]


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a case, which determines who can add what it lacks.

    Args:
        kind: the case was given; it is made of a golden that nobody has answered yet, of an item and what a SUT
            answered, of a golden and what an observed app answered; or it is a part of such an app.
        name: the class of the golden, or the name of the part.
    """

    kind: Literal["given", "golden", "item", "app", "part"] = "given"
    name: str = ""


GIVEN = Origin()


def get_origin(prompt: PromptWithContext, completion: SUTCompletion) -> Origin:
    """Return the origin of the case of a prompt and a completion."""
    if SPAN in completion.metadata:
        return Origin("part", completion.metadata[SPAN])
    if TRACE in completion.metadata:
        return Origin("app", type(prompt.context).__name__)
    return GIVEN if isinstance(prompt.context, TestCase) else Origin("item", type(prompt.context).__name__)


def check_case(
    case: Any, kind: type[BaseModel], names: Iterable[str], metric: str, origin: Origin = GIVEN
) -> None:
    """Refuse a case that a metric cannot judge.

    Args:
        case: to be judged.
        kind: the class of cases that the metric judges.
        names: the fields that it needs.
        metric: its name, for the message.
        origin: where the case is from.

    Raises:
        MissingParameterError: it is of another kind, or lacks a field.
    """
    if not isinstance(case, kind):
        raise _of_another_kind(case, kind, metric, origin)
    for name in missing_parameters(case, names):
        problem, fix = _lacking(name, case, origin)
        raise MissingParameterError(f"{metric} needs '{name}', {problem}.", fix=fix)


_OTHER_KIND = {
    "golden": ("the golden {case} makes {got}", "Use a metric that judges {answers}, or give {goldens}."),
    "app": (
        "an app's answer makes {got}",
        (
            "Use a metric that judges {answers}; a conversation is judged as a test case: "
            "ConversationalTestCase(turns=[…])."
        ),
    ),
    "part": ("'{origin}' makes {got}", "Give '{origin}' a metric that judges {answers}."),
}
_GIVEN_OTHER_KIND = ("got {got}", "Give it {kind}, or use a metric that judges {answers}.")

_OF_ONE_ANSWER = (
    "single answers",
    "goldens with an input: Golden(input=…); in a file it is the column input",
)
_OF_CONVERSATIONS = (
    "conversations",
    "goldens of conversations: ConversationalGolden(turns=[…]); in a file it is the column turns",
)


def _of_another_kind(case: Any, kind: type[BaseModel], metric: str, origin: Origin) -> MissingParameterError:
    problem, fix = _OTHER_KIND.get(origin.kind, _GIVEN_OTHER_KIND)
    if not isinstance(case, TestCase):
        goldens = isinstance(case, Golden | ConversationalGolden)
        fix = "Make a case of what was answered: golden.to_test_case(…)." if goldens else "Give it {kind}."
    words = {
        "case": called(case) if isinstance(case, TestCase) else "",
        "got": a_thing(case),
        "kind": a_class(kind),
        "origin": origin.name,
        "answers": (_OF_ONE_ANSWER if isinstance(case, LLMTestCase) else _OF_CONVERSATIONS)[0],
        "goldens": (_OF_ONE_ANSWER if kind is LLMTestCase else _OF_CONVERSATIONS)[1],
    }
    return MissingParameterError(
        f"{metric} judges {a_class(kind)}, and {problem.format(**words)}.", fix=fix.format(**words)
    )


_LACKING = {
    "golden": (
        "which the golden {case} does not have",
        "Make the golden with it: {origin}(…, {name}=…); in a file it is the column {name}.",
    ),
    "app": (
        "which the golden {case} does not have and the app did not say",
        (
            "Make the golden with it: Golden(…, {name}=…); or let the app say it: update_current_trace({name}=…), or "
            "in the test case that it gives."
        ),
    ),
    "part": (
        "which '{origin}' did not say of its own test case {case}",
        "Let it say so: update_current_span({name}=…).",
    ),
    "item": (
        "which the test case {case} does not have",
        "Give it in the prompt's context: PromptWithContext(prompt, context=Golden(…, {name}=…)), or a mapping.",
    ),
    "given": (
        "which the test case {case} does not have",
        "Make the case with it: {case_class}(…, {name}=…).",
    ),
}
_ANSWERER_LACKS = {
    "app": (
        "which the app did not say of {case}",
        (
            "Let it say so: update_current_trace({name}=…) in the observed function. If that is not called (for a "
            "cached answer, say), return SUTCompletion(text, {where})."
        ),
    ),
    "item": (
        "which the SUT did not say of {case}",
        (
            "Let the SUT say it: SUTCompletion(text, {where}); if its function is observed, "
            "update_current_trace({name}=…)."
        ),
    ),
}
_NO_OUTPUT = {
    "app": ("and the app returned None for {case}", "Let the function that is observed return its answer."),
    "part": (
        "and '{origin}' returned None or raised",
        "Let it return what is to be judged, or say it: update_current_span(output=…).",
    ),
}


def _lacking(name: str, case: BaseModel, origin: Origin) -> tuple[str, str]:
    """Describe the problem and the fix for a case without a field that a metric needs."""
    special = _NO_OUTPUT if name == "actual_output" else _ANSWERER_LACKS if name in _OF_A_COMPLETION else {}
    words = {
        "case": called(case),
        "case_class": type(case).__name__,
        "name": name,
        "origin": origin.name,
        "where": "tool_calls=[…]" if name == "tools_called" else f'metadata={{"{name}": …}}',
    }
    problem, fix = special.get(origin.kind, _LACKING[origin.kind])
    if name == "completion_time" and origin.kind == "item":
        fix += " Of a function that is observed it is known: decorate it with @observe."
    return problem.format(**words), fix.format(**words)


def format_prompt(prompt: AnyPrompt) -> str:
    """Return a prompt as one text, with the roles of a chat if it has more than one message."""
    parts = prompt.parts
    return parts[0][1] if len(parts) == 1 else "\n".join(f"{role}: {text}" for role, text in parts)


def _fields(completion: SUTCompletion) -> dict[str, Any]:
    fields: dict[str, Any] = {"actual_output": completion.text}
    if completion.metadata:  # rare, and this runs for every case of every metric
        if completion.metadata.get("actual_output", "") is None:
            fields["actual_output"] = None
        held = {name: completion.metadata.get(name) for name in _OF_A_COMPLETION}
        fields |= {name: value for name, value in held.items() if value is not None}
    if completion.tool_calls is not None:
        fields["tools_called"] = list(completion.tool_calls)
    return fields


def _checked_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a completion, with the types of a test case."""
    case = LLMTestCase(input="", **fields)
    return {name: getattr(case, name) for name in fields}


def _named_fields(context: Any) -> dict[str, Any]:
    """Return the test case fields in a context."""
    if isinstance(context, BaseModel):
        held: Mapping[Any, Any] = {name: getattr(context, name) for name in type(context).model_fields}
    else:
        held = context if isinstance(context, Mapping) else {}
    known = _CONVERSATION if held.get("turns") is not None else _EXCHANGE
    return {name: value for name, value in held.items() if name in known and value is not None}


def _continued_case(
    golden: ConversationalGolden, prompt: AnyPrompt, completion: SUTCompletion
) -> ConversationalTestCase:
    """Continue a conversation by one completion and its metadata."""
    fields = _fields(completion)
    turns = turns_asked(golden.turns or ()) or [Turn("user", format_prompt(prompt))]
    of_turn = {name: fields[name] for name in ("retrieval_context", "tools_called") if name in fields}
    turns.append(Turn("assistant", completion.text, **of_turn))
    of_case = {name: fields[name] for name in ("token_cost", "completion_time") if name in fields}
    return golden.to_test_case(turns, **of_case)


def turns_asked(turns: Iterable[Turn]) -> list[Turn]:
    """Return a conversation up to the missing answer: without a last turn of the assistant, from another system."""
    asked = list(turns)
    return asked[:-1] if len(asked) > 1 and asked[-1].role == "assistant" else asked


def make_title(case: BaseModel) -> str:
    """Return the title of a case in reports: its name, or else its first text, which may be blank."""
    turns = getattr(case, "turns", None)
    texts = [getattr(case, name, None) for name in ("name", "input", "scenario")]
    texts.insert(1, turns[0].content if turns else None)
    return next((str(text) for text in texts if text and str(text).strip()), "(empty input)")


def called(case: BaseModel) -> str:
    """Return the title of a case in messages: quoted, and shortened if long."""
    return quoted(make_title(case), _LONGEST_TITLE)
