"""Cache keys stay those of earlier versions, whatever fields the data classes have gained since."""

import pytest
from pydantic import BaseModel

from modelgauge import (
    ChatMessage,
    ChatPrompt,
    ChatRole,
    FunctionSUT,
    PromptWithContext,
    SUTCompletion,
    SUTOptions,
    SUTResponse,
    TestItem,
    TextPrompt,
    TokenProbability,
    ToolCall,
    TopTokens,
    Usage,
)
from modelgauge.cache.keys import KeyMaker
from modelgauge.data.annotations import (
    Interaction,
    MeasuredTestItem,
    SUTCompletionAnnotations,
    SUTResponseAnnotations,
    TestItemAnnotations,
)
from modelgauge.data.item_records import Failure, TestItemExceptionRecord, TestItemRecord
from modelgauge.data.results import CallCounts, Counts, Spent, Threshold
from modelgauge.data.spans import Span, Trace
from modelgauge.data.test_cases import ConversationalTestCase, Golden, LLMTestCase, Turn
from modelgauge.testing.fakes import FakeAnnotatorRequest, FakeSUT

PLAIN = SUTCompletion("Paris")
FULL = SUTCompletion(
    "Paris",
    reasoning="France",
    raw_text="<think>France</think>Paris",
    truncated_reasoning=True,
    top_logprobs=[TopTokens(top_tokens=[TokenProbability(token="Paris", logprob=-0.1)])],
    tool_calls=[ToolCall(name="search", input_parameters={"q": "France"})],
    finish_reason="stop",
    metadata={"retrieval_context": ["a", 1, None]},
)
ASKED = PromptWithContext("Capital?", source_id="1", context={"expected": "Paris"})
CHAT = ChatPrompt([ChatMessage(ChatRole.user, "hi"), ChatMessage(ChatRole.assistant, "Hello!")])
ITEM = TestItem([ASKED], context=1, id="i")
ANNOTATED = SUTCompletionAnnotations(completion=FULL, annotations={"a": 1})
RESPONSE = SUTResponseAnnotations(completions=(ANNOTATED,), usage=Usage(input_tokens=1))
INTERACTION = Interaction(prompt=ASKED, response=RESPONSE)
CASE = LLMTestCase("Capital?", actual_output="Paris", tools_called=[ToolCall(name="search")])
FAILURE = {"stage": "sut", "source_uid": "s", "error_type": "E", "message": "m", "traceback": "t"}


class Pair(BaseModel):
    """An author's own request."""

    __module__ = "acme"

    prompt: str
    completion: SUTCompletion


REQUESTS = {
    "text": "Capital?",
    "json": {"prompt": "Capital?", "$n": [1, 1.0, None]},
    "text prompt": TextPrompt("Capital?"),
    "text prompt with options": TextPrompt(
        "Capital?", options=SUTOptions(max_tokens=5, stop_sequences=["\n"])
    ),
    "chat prompt": CHAT,
    "prompt with context": ASKED,
    "item": ITEM,
    "completion": PLAIN,
    "full completion": FULL,
    "completions": [PLAIN, FULL],
    "completion in a dict": {"answer": PLAIN, "$model": "x"},
    "completion in a tuple": (PLAIN, 1),
    "author's model": Pair(prompt="Capital?", completion=FULL),
    "fake annotator": FakeAnnotatorRequest(prompt=ASKED, completion=PLAIN),
    "response": SUTResponse([PLAIN, FULL], Usage(output_tokens=2, cost_usd=0.5)),
    "annotated completion": ANNOTATED,
    "annotated response": RESPONSE,
    "interaction": INTERACTION,
    "annotated item": TestItemAnnotations(ITEM, [INTERACTION]),
    "measured item": MeasuredTestItem(ITEM, {"x": 1}),
    "item record": TestItemRecord(index=0, test_item=ITEM, interactions=[INTERACTION], measurements={"x": 1}),
    "item record with a failed repeat": TestItemRecord(
        index=0,
        test_item=ITEM,
        interactions=[],
        measurements={},
        failed_repeats=[Failure(repeat=0, **FAILURE)],
    ),
    "exception record": TestItemExceptionRecord(index=0, test_item=ITEM, **FAILURE),
    "case": CASE,
    "golden": Golden("Capital?", expected_output="Paris"),
    "conversation": ConversationalTestCase([Turn("user", "hi"), Turn("assistant", "Hello!")]),
    "trace": Trace(
        name="app", started="now", seconds=1, spans=[Span(id=0, name="f", start=0, test_case=CASE)]
    ),
    "tool call": ToolCall(name="search", output=PLAIN),
    "counts": Counts(items=2, scored=1, sut_errors=1, sut_calls=CallCounts(paid=1)),
    "spent": Spent(attempts=1, tokens=2, cost_usd=0.5),
    "threshold": Threshold(value=0.5),
}
DIGESTS = {
    "text": "751da60e26810b2d19b93b870c7b63cef26f3a07d3a107fedd2f3bf3381535c6",
    "json": "809ee70ce4db8c39c4f84bacb50a4179c0eb1e846b7bb797e0f1d6ad8b0cc3f3",
    "text prompt": "219d353bdafa74302893e61a322ddafc2107d04b59366c976153e402949eb064",
    "text prompt with options": "289cf88aab551c3d9f7cdf4d036d392468861082a6887ec80a55f6dc374ca74f",
    "chat prompt": "130a37fa52e7757c7e4002ace5bc581c43e35d7a4221609284f0a9e3066cdc65",
    "prompt with context": "0a8403d1008452deca9005bdf0560c1064709cbb274c79b396975b0be8f351b9",
    "item": "f3e9113220b0c1415c27ce309106299a9ccfe8b0d3cf20c2e01500a075f21b59",
    "completion": "f20731e98a902c9fe5d8129f401018a51f17d9dc90fd252829b711d432d7387f",
    "full completion": "761da2d5bcc69253fbea34ad278c8ff1d2dee1c90e7a61a06572844e4f10ac43",
    "completions": "41b22071366261cb38a3bb18b173810f8e07ec2b43543816b62ebc5841573be4",
    "completion in a dict": "2cc6641d3216285e25ea3553c1ebf8f8df27175fc18abc5b8069462c030d8a92",
    "completion in a tuple": "80707107143593453365c680a4b13790d2497245a19468e0b627fb1065f74146",
    "author's model": "d57eefebe4071b7648e8d24b2938dd169cc7956f0942a4392a2cefd83d1f31ae",
    "fake annotator": "9622a3fe59d8b5ab86dd160eef92a4f23987999104f2b1acfe6f8809d835a396",
    "response": "7a74b91a972b3cbe8c773c8f3b71bee9f1809db21a681f3830bb3b0b61b6ef89",
    "annotated completion": "4f71ed4fd6459e2ef74c7df847108e8785ac7f8ed67611765bc6fb8fa9563287",
    "annotated response": "c2d202ad07653711e3c4991d4dffcf85dcdaf2a4bdc225731b873d67402507e9",
    "interaction": "3eed34e4d3cf3a05782c98e83bc56a094e3c9075836bf99247c7208d47eecc82",
    "annotated item": "ef5ccb1cf17b9a124307af088587c25987731c18f1ac5f49cdb747e87205facf",
    "measured item": "0d2c765aba55c1261861a6ec3fc0f1d14e356b79a67c30404d378234855938a7",
    "item record": "b79105eadb7a44a7d7b717ed8842b545515cef2eaa55dac76a20f14026eec570",
    "item record with a failed repeat": "513f65880f504b51d8b85c861c8dea70b0592f8fbb947f11fe73ec60855f2c39",
    "exception record": "4bfd06221301929126273781c82b4bda45902cc26a970526eaa3587795abeda2",
    "case": "f4ec23e5d5cf9cc6c7cb4b158e751d75c34d809640cc0a425ced2b4a494cf852",
    "golden": "64f1f97d52e4aaab13e9bddef59bef508c4ee8e792531e0991d544b0f9c0917a",
    "conversation": "a099637e6e72a6aadd1adf640c20fc731c7985c2d4ab1c411f7bdddce7b2ff5f",
    "trace": "6ebfec365fea50527da7fbe7777195ac66dfdcbb2984377608025329dcb5a5e9",
    "tool call": "ce43a5ca6df61d4bd422973ffefd907340be4381575e9956444da06574611197",
    "counts": "35232d48bfbcf845532e5231980abeb18757e247fb2012042af2c07533dcba7b",
    "spent": "524e7790e600a51dfc2f92cc236095c03320d92202748d0984f194e738bc5c7b",
    "threshold": "0aeca48cbc417dce76a3d5798f37b6fd9624c3e333dbc5628affa44db0b94960",
}


@pytest.mark.parametrize("name", REQUESTS)
def test_request_has_same_key_as_ever(name):
    assert KeyMaker("annotator", {"uid": "a"}).key(REQUESTS[name]).digest == DIGESTS[name]


@pytest.mark.parametrize(
    ("sut", "digest"),
    [
        (
            FunctionSUT("f", str.upper, version=1),
            "4dba4b163367d4b57aa39ce38444f87467cd6d5df44c674df9d6b640f8e0b7dc",
        ),
        (FakeSUT("fake", PLAIN), "f8cc3a3f6888bcf4bc84df7933133fa03126db2f1df371ae164c06b76d84dacb"),
        (
            FakeSUT("fake", {"Capital?": FULL}),
            "06c0cfdd8c84a0924e3261273e37b80a488ae1a6e220f5b92aefc1977f5a49e5",
        ),
    ],
)
def test_sut_has_same_key_as_ever(sut, digest):
    assert KeyMaker("sut", sut.identity()).key(TextPrompt("Capital?"), 1).digest == digest


def test_field_added_later_is_in_key_once_it_is_used():
    keys = KeyMaker("annotator", {"uid": "a"})
    blocked = PLAIN.replaced(blocked=True)
    assert keys.key(blocked).parts.count('"blocked":true') == 1
    assert len({keys.key(one) for one in (PLAIN, blocked, [blocked], {"answer": blocked})}) == 4
    assert keys.key(SUTCompletion("Paris", blocked=False)) == keys.key(PLAIN)
