"""What authors subclass: what is declared by defining it, and what is refused when the class is defined."""

import asyncio
import functools
import inspect
import subprocess
import sys

import pytest

from modelgauge.data.annotations import MeasuredTestItem
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.prompts import ChatMessage, ChatPrompt, TextPrompt
from modelgauge.data.responses import SUTCompletion, SUTResponse
from modelgauge.errors import DefinitionError, IncompatibleError
from modelgauge.interfaces.annotator import CompletionAnnotator, current_asker
from modelgauge.interfaces.identity import overrides
from modelgauge.interfaces.sut import (
    AcceptsChatPrompt,
    AcceptsTextPrompt,
    ProducesPerTokenLogProbabilities,
    PromptResponseSUT,
    SUTCapability,
    capabilities_of,
    check_sut,
    request_for,
)
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.stats.measured import MeasuredItems


class Echo(PromptResponseSUT[str, str]):
    def translate_text_prompt(self, prompt: TextPrompt) -> str:
        return prompt.text

    def evaluate(self, request: str) -> str:
        return request

    def translate_response(self, request: str, response: str) -> SUTResponse:
        return SUTResponse([SUTCompletion(response)])


class ChatEcho(Echo):
    capabilities = (ProducesPerTokenLogProbabilities,)

    def translate_chat_prompt(self, prompt: ChatPrompt) -> str:
        return prompt.messages[-1].text


class Letters(CompletionAnnotator[int]):
    def translate_request(self, prompt, completion):
        return completion.text

    async def annotate(self, request):
        return (await self.ask("judge", request)).completions[0].text

    def translate_response(self, request, response):
        return len(response)


class Counting(PromptResponseTest):
    def make_test_items(self, dependencies):
        yield TestItem("a")

    def measure_quality(self, item):
        return {"n": 1}


# --- SUTs ------------------------------------------------------------------------------------------------


def test_defining_a_method_declares_the_capability():
    assert capabilities_of(Echo) == capabilities_of(Echo("e")) == {AcceptsTextPrompt}
    assert capabilities_of(ChatEcho) == {
        AcceptsTextPrompt,
        AcceptsChatPrompt,
        ProducesPerTokenLogProbabilities,
    }


@pytest.mark.parametrize("marks", ["<plan>", ("<plan>",), ("<plan>", ""), ("<plan>", None), 5])
def test_marks_of_reasoning_must_be_two_texts(marks):
    with pytest.raises(DefinitionError, match="not two texts"):
        type("Planner", (Echo,), {"reasoning_marks": marks})


def test_a_declared_capability_without_its_method_is_an_error_of_the_class():
    with pytest.raises(
        DefinitionError, match=r"Broken declares AcceptsChatPrompt without translate_chat_prompt"
    ):

        class Broken(Echo):
            capabilities = (AcceptsChatPrompt,)


def test_a_capability_that_a_mixin_declares_needs_its_method_too():
    class Mixin:
        capabilities = (AcceptsChatPrompt,)

    with pytest.raises(DefinitionError, match="translate_chat_prompt"):

        class Broken(Mixin, Echo):
            pass

    class Whole(Mixin, ChatEcho):
        pass

    assert AcceptsChatPrompt in capabilities_of(Whole)


def test_a_capability_of_an_authors_own():
    class CanDraw(SUTCapability):
        methods = ("draw",)

    class Painter(Echo):
        capabilities = (CanDraw,)

        def draw(self) -> None: ...

    assert CanDraw in capabilities_of(Painter)
    with pytest.raises(DefinitionError, match="without draw"):
        type("NoPainter", (Echo,), {"capabilities": (CanDraw,)})


@pytest.mark.parametrize(
    "declared", [AcceptsTextPrompt, "AcceptsTextPrompt", ("AcceptsTextPrompt",), (int,), None]
)
def test_what_is_no_tuple_of_capabilities_is_refused(declared):
    with pytest.raises(DefinitionError, match=r"^Broken\.capabilities is "):
        type("Broken", (Echo,), {"capabilities": declared})
    with pytest.raises(DefinitionError, match=r"^Broken\.requires_sut_capabilities is "):
        type("Broken", (Counting,), {"requires_sut_capabilities": declared})


def test_a_request_is_made_of_the_kind_of_prompt_that_the_sut_takes():
    assert request_for(ChatEcho("e"), TextPrompt("a")) == "a"
    assert request_for(ChatEcho("e"), ChatPrompt([ChatMessage("user", "b")])) == "b"
    with pytest.raises(IncompatibleError, match="'e' takes no ChatPrompt"):
        request_for(Echo("e"), ChatPrompt([ChatMessage("user", "b")]))


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ("evaluate", "has no evaluate"),
        ("translate_response", "has no translate_response"),
        ("translate_text_prompt", "accepts no kind of prompt"),
    ],
)
def test_a_sut_without_a_step_is_refused(left_out, said):
    steps = {name: step for name, step in vars(Echo).items() if callable(step) and name != left_out}
    broken = type("Broken", (PromptResponseSUT,), steps)
    with pytest.raises(DefinitionError, match=said):
        check_sut(broken("b"))
    check_sut(Echo("e"))


def test_a_batch_stands_for_single_calls():
    steps = {name: step for name, step in vars(Echo).items() if callable(step) and name != "evaluate"}
    batched = type(
        "Batched", (PromptResponseSUT,), {**steps, "evaluate_batch": lambda self, requests: requests}
    )
    check_sut(batched("b"))


def test_overriding_is_seen_through_inheritance():
    assert overrides(ChatEcho, "evaluate")
    assert not overrides(Echo, "evaluate_batch")
    assert not overrides(Echo, "no_such_method")


LEFT_TO_AUTHORS = [
    method
    for interface in (PromptResponseSUT, CompletionAnnotator, PromptResponseTest)
    for name, method in vars(interface).items()
    if inspect.isfunction(method) and not overrides(interface, name) and name not in ("open", "close")
]


@pytest.mark.parametrize("method", LEFT_TO_AUTHORS, ids=lambda method: method.__qualname__)
def test_a_method_that_no_author_defined_raises(method):
    with pytest.raises(NotImplementedError):
        method(*inspect.signature(method).parameters)


# --- annotators ------------------------------------------------------------------------------------------


def test_an_annotator_without_a_step_is_refused_when_made():
    class Broken(CompletionAnnotator[int]):
        def annotate(self, request): ...

    with pytest.raises(DefinitionError, match="does not define translate_request, translate_response"):
        Broken("b")


def test_a_judge_asks_through_the_engine():
    asked = []

    class Engine:
        async def ask(self, annotator, name, prompt):
            asked.append((annotator.uid, name, prompt))
            return SUTResponse([SUTCompletion("yes")])

    async def main():
        current_asker.set(Engine())
        return await Letters("letters").annotate("is it?")

    assert asyncio.run(main()) == "yes"
    assert asked == [("letters", "judge", TextPrompt("is it?"))]


def test_asking_outside_a_run_is_an_error():
    with pytest.raises(DefinitionError, match="outside a run"):
        asyncio.run(Letters("letters").annotate("is it?"))


def test_annotators_ask_nobody_and_open_nothing_by_default():
    letters = Letters("letters")
    assert letters.get_suts() == {}
    assert letters.classify_error(OSError()) is None
    asyncio.run(letters.open())
    asyncio.run(letters.close())


# --- tests -----------------------------------------------------------------------------------------------


def test_a_test_needs_its_two_methods():
    with pytest.raises(DefinitionError, match="does not define make_test_items, measure_quality"):
        PromptResponseTest("t")


def test_defaults_of_a_test():
    test = Counting("t")
    assert test.get_dependencies() == test.get_annotators() == {}
    assert test.requires_sut_capabilities == (AcceptsTextPrompt,)
    assert test.measurement_ranges == {}
    assert not test.measure_in_thread
    assert Counting.__test__ is False


def test_the_default_result_is_the_mean_of_each_measurement():
    items = MeasuredItems.of([MeasuredTestItem(TestItem([PromptWithContext("a")]), {"n": n}) for n in (1, 2)])
    result = Counting("t").aggregate_measurements(items)
    assert float(result["n"]) == 1.5


def test_the_interfaces_import_neither_numpy_nor_aiohttp():
    code = (
        "import sys, modelgauge.interfaces.test, modelgauge.interfaces.sut, modelgauge.interfaces.annotator\n"
        "print([name for name in ('numpy', 'aiohttp', 'diskcache', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_method_that_cannot_be_called_as_its_interface_says_is_refused_when_made():
    class Forgetful(Counting):
        def make_test_items(self): ...

    with pytest.raises(DefinitionError) as caught:
        Forgetful("t")
    assert (
        caught.value.problem
        == f"In {Forgetful.__qualname__}, make_test_items cannot be called with (dependencies)."
    )
    assert caught.value.fix == "Write def make_test_items(self, dependencies)."


@pytest.mark.parametrize(
    ("base", "name", "function"),
    [
        (Counting, "measure_quality", lambda self: {}),
        (Counting, "aggregate_measurements", lambda self: {}),
        (Counting, "get_annotators", lambda: None),
        (Letters, "translate_response", lambda self, response: 1),
        (Letters, "annotate", staticmethod(lambda self, request: 1)),
    ],
)
def test_each_step_is_compared_with_its_interface(base, name, function):
    made = type("Forgetful", (base,), {name: function})
    with pytest.raises(DefinitionError, match=f"In Forgetful, {name} cannot be called with"):
        made("t")


def test_methods_that_take_more_than_they_are_called_with_are_right():
    def wrapped(function):
        @functools.wraps(function)
        def call(self, *args):
            return function(self, *args, "of the decorator")

        return call

    class Generous(Counting):
        def make_test_items(self, *_, **__): ...

        @staticmethod
        def measure_quality(item, more=1): ...

        @wrapped
        def aggregate_measurements(self, items, more): ...

    assert Generous("t").uid == "t"
