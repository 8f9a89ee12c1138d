"""One call with everything that is said on the way."""

import errno

import pytest

import modelgauge as mg
from modelgauge.cli import single_call
from modelgauge.cli.single_call import annotate, ask, explain_ask
from modelgauge.errors import IncompatibleError, RunStoppedError, SingleCompletionError
from modelgauge.testing import FakeTest


class Judge(mg.CompletionAnnotator[str]):
    """Asks a SUT of its own."""

    def __init__(self, uid, sut):
        super().__init__(uid)
        self._sut = sut

    def get_suts(self):
        return {"model": self._sut}

    def translate_request(self, prompt, completion):
        return f"{prompt.prompt.text} {prompt.context} {completion.text}"

    async def annotate(self, request):
        return (await self.ask("model", request)).completions[0].text

    def translate_response(self, request, response):
        return response.upper()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []


def test_a_sut_is_asked_and_its_reasoning_is_split_off():
    exchange = ask(mg.FunctionSUT("thinks", lambda text: f"<think>hm</think>{text}!"), mg.TextPrompt("hi"))
    assert (exchange.request, exchange.response) == ("hi", "<think>hm</think>hi!")
    (completion,) = exchange.answer.completions
    assert (completion.text, completion.reasoning) == ("hi!", "hm")
    assert exchange.failure is None


def test_sut_names_marks_of_its_reasoning():
    sut = mg.FunctionSUT("plans", lambda text: f"<plan>hm</plan>{text}!")
    sut.reasoning_marks = ("<plan>", "</plan>")
    (completion,) = ask(sut, mg.TextPrompt("hi")).answer.completions
    assert (completion.text, completion.reasoning) == ("hi!", "hm")


def test_truncated_channels_of_gpt_oss_leave_no_answer():
    sut = mg.FunctionSUT("gpt", lambda text: f"<|channel|>analysis<|message|>{text}")
    (completion,) = ask(sut, mg.TextPrompt("hi")).answer.completions
    assert (completion.text, completion.reasoning, completion.truncated_reasoning) == ("", "hi", True)


def test_a_completion_reaches_an_annotator_whole_and_its_judge_is_asked():
    judge = Judge("judge", mg.FunctionSUT("model", lambda text: f"about {text}"))
    prompt = mg.PromptWithContext("question", context={"a": 1})
    exchange = annotate(judge, prompt, mg.SUTCompletion("<think>kept</think>yes"))
    assert exchange.request == "question {'a': 1} <think>kept</think>yes"
    assert exchange.response == f"about {exchange.request}"
    assert exchange.answer == exchange.response.upper()


def test_a_failure_keeps_what_was_said_before_it():
    def refuse(text):
        raise ValueError(f"no to {text}")

    exchange = ask(mg.FunctionSUT("refuses", refuse), mg.TextPrompt("hi"), max_retries=0)
    assert (exchange.request, exchange.response, exchange.answer) == ("hi", None, None)
    assert (exchange.failure.error_type, exchange.failure.message) == ("ValueError", "no to hi")


def test_a_prompt_that_the_sut_does_not_take_is_refused():
    chat = mg.ChatPrompt([mg.ChatMessage(role="user", text="hi")])
    with pytest.raises(IncompatibleError, match="takes no ChatPrompt"):
        ask(mg.FunctionSUT("text", str), chat)


CHAT = mg.ChatPrompt([mg.ChatMessage(role="system", text="be short"), mg.ChatMessage(role="user", text="hi")])


class TakesChat(mg.PromptResponseSUT[str, str]):
    def translate_text_prompt(self, prompt):
        return prompt.text

    def translate_chat_prompt(self, prompt):
        return " | ".join(message.text for message in prompt.messages)

    async def evaluate(self, request):
        return request.upper()

    def translate_response(self, request, response):
        return mg.SUTResponse(completions=(mg.SUTCompletion(response),))


def test_a_chat_is_asked_and_judged():
    exchange = ask(TakesChat("chats"), CHAT)
    assert (exchange.uid, exchange.request, exchange.response) == ("chats", "be short | hi", "BE SHORT | HI")

    class Roles(Judge):
        def translate_request(self, prompt, completion):
            return " ".join(message.role.value for message in prompt.prompt.messages)

    judge = Roles("judge", mg.FunctionSUT("model", str.upper))
    judged = annotate(judge, mg.PromptWithContext(CHAT), mg.SUTCompletion("yes"))
    assert (judged.uid, judged.request, judged.answer) == ("judge", "system user", "SYSTEM USER")


def test_an_annotator_that_fails_is_told_as_a_failure():
    class Broken(Judge):
        def translate_response(self, request, response):
            raise ValueError("no verdict")

    judge = Broken("judge", mg.FunctionSUT("model", str))
    exchange = annotate(judge, mg.PromptWithContext("q"), mg.SUTCompletion("yes"))
    assert (exchange.request, exchange.response, exchange.answer) == ("q None yes", "q None yes", None)
    assert exchange.failure.message == "no verdict"


def test_a_sut_that_cannot_be_opened_stops_it():
    class Closed(TakesChat):
        async def open(self):
            raise OSError("no door")

    with pytest.raises(RunStoppedError, match="no door"):
        ask(Closed("closed"), mg.TextPrompt("hi"))


def test_the_nearest_answer_to_a_chat_says_which_message_differs(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    sut = TakesChat("chats")
    assert explain_ask(sut, CHAT, data_dir=data).nearest is None
    other = mg.ChatPrompt(
        [mg.ChatMessage(role="system", text="be long"), mg.ChatMessage(role="user", text="hi")]
    )

    class Chats(mg.PromptResponseTest):
        def make_test_items(self, dependencies):
            return [mg.TestItem([other])]

        def measure_quality(self, item):
            return {}

    mg.run_test(Chats("chats"), sut, data_dir=data)
    found = explain_ask(sut, CHAT, data_dir=data)
    assert [difference.part for difference in found.differences] == [
        "request (the text of message 1, system differs)"
    ]
    assert explain_ask(sut, other, data_dir=data).hit


class OneACall(mg.PromptResponseSUT):
    completions = "auto"

    def translate_text_prompt(self, prompt):
        return [prompt.text, prompt.options.num_completions]

    def evaluate(self, request):
        return {"text": "hi"}

    def translate_response(self, request, response):
        return mg.SUTResponse([mg.SUTCompletion(response["text"])])


def test_completions_that_take_a_call_each_are_found_in_the_cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    prompt = mg.TextPrompt("x", mg.SUTOptions(num_completions=3))
    assert not explain_ask(OneACall("one"), prompt, data_dir=folder).hit
    mg.run_test(FakeTest("test", [prompt]), OneACall("one"), data_dir=folder)
    assert explain_ask(OneACall("one"), prompt, data_dir=folder).hit


def test_what_was_found_out_of_a_sut_is_no_answer_that_comes_near(tmp_path_factory):
    class Refusing(OneACall):
        def evaluate(self, request):
            raise SingleCompletionError("n must be 1.", fix="Ask once for each.")

    folder = tmp_path_factory.mktemp("data")
    prompt = mg.TextPrompt("x", mg.SUTOptions(num_completions=3))
    mg.run_test(FakeTest("test", [prompt]), Refusing("one"), data_dir=folder)
    assert explain_ask(Refusing("one"), prompt, data_dir=folder).nearest is None


def test_completions_that_take_a_call_each_show_all_calls():
    call = ask(OneACall("one"), mg.TextPrompt("x", mg.SUTOptions(num_completions=3)))
    assert call.request == [["x", 3], ["x", None], ["x", None]]
    assert call.response == [{"text": "hi"}] * 3
    assert len(call.answer.completions) == 3


def test_a_server_that_cannot_be_reached_is_not_waited_for_as_long_as_in_a_run(monkeypatch):
    def refuse(text):
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")

    assert single_call._PATIENCE < 5
    monkeypatch.setattr(single_call, "_PATIENCE", 0.1)
    with pytest.raises(
        RunStoppedError, match=r"^'gone' could not be reached for 0\.1 s: .*Connection refused"
    ):
        ask(mg.FunctionSUT("gone", refuse), mg.TextPrompt("hi"))
