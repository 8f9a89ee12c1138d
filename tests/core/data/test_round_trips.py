"""Every data class comes back from its JSON as it was."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from modelgauge.data.annotations import (
    Interaction,
    MeasuredTestItem,
    SUTCompletionAnnotations,
    SUTResponseAnnotations,
    TestItemAnnotations,
    add_annotations,
    make_interaction,
)
from modelgauge.data.base import Frozen, UnknownFields
from modelgauge.data.estimates import Estimate, Score
from modelgauge.data.item_records import TestItemExceptionRecord, TestItemRecord, item_from_json
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.prompts import ChatMessage, ChatPrompt, ChatRole, SUTOptions, TextPrompt
from modelgauge.data.records import TestRecord
from modelgauge.data.responses import (
    SUTCompletion,
    SUTResponse,
    TokenProbability,
    ToolCall,
    TopTokens,
    Usage,
)
from modelgauge.data.results import CallCounts, Counts, RunFailure
from modelgauge.data.test_cases import LLMTestCase
from modelgauge.engine.run_files.journal import make_line
from modelgauge.errors import InvalidDataError

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
names = st.text("abcdefgh", min_size=1, max_size=4)
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers() | floats | texts
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)


def optional(strategy):
    return st.none() | strategy


options = st.builds(
    SUTOptions,
    num_completions=optional(st.integers(1, 5)),
    max_tokens=optional(st.integers(1, 10**6)),
    temperature=optional(st.floats(0, 2)),
    top_p=optional(st.floats(0, 1)),
    stop_sequences=optional(st.lists(texts, max_size=2)),
    presence_penalty=optional(floats),
    random=optional(st.integers() | texts),
    top_logprobs=optional(st.integers(0, 20)),
    response_schema=optional(json_objects),
)
prompts = st.builds(TextPrompt, texts, options) | st.builds(
    ChatPrompt,
    st.lists(st.builds(ChatMessage, st.sampled_from(ChatRole), texts), min_size=1, max_size=3),
    options,
)
prompts_with_context = st.builds(PromptWithContext, prompts, optional(texts), json_values)
items = st.builds(
    TestItem,
    st.lists(prompts_with_context, min_size=1, max_size=3),
    json_values,
    optional(names),
)
tokens = st.builds(TokenProbability, token=texts, logprob=floats)
tool_calls = st.builds(ToolCall, name=texts, output=json_values, input_parameters=optional(json_objects))
completions = st.builds(
    SUTCompletion,
    texts,
    reasoning=optional(texts),
    raw_text=optional(texts),
    truncated_reasoning=st.booleans(),
    top_logprobs=optional(
        st.lists(st.builds(TopTokens, top_tokens=st.lists(tokens, max_size=2)), max_size=2)
    ),
    tool_calls=optional(st.lists(tool_calls, max_size=2)),
    finish_reason=optional(texts),
    metadata=json_objects,
)
usages = st.builds(Usage, input_tokens=optional(st.integers(0, 2**53)), cost_usd=optional(st.floats(0, 1e15)))
responses = st.builds(SUTResponse, st.lists(completions, min_size=1, max_size=2), optional(usages))
annotated = st.builds(
    Interaction,
    prompt=prompts_with_context,
    response=st.builds(
        SUTResponseAnnotations,
        completions=st.lists(
            st.builds(SUTCompletionAnnotations, completion=completions, annotations=json_objects), max_size=2
        ),
        usage=optional(usages),
    ),
)
measurements = st.dictionaries(texts, floats | st.integers(-9, 9) | st.booleans(), max_size=3)
estimates = st.builds(
    Estimate, floats, st.integers(0, 99), optional(floats), optional(st.tuples(floats, floats)), st.none()
)
results = st.dictionaries(
    names,
    floats | st.integers() | estimates | st.dictionaries(names, floats | estimates, max_size=2),
    max_size=4,
)
records = st.builds(
    TestRecord,
    run_id=names,
    invocation_id=names,
    run_timestamp=names,
    test_uid=names,
    test_initialization=json_objects,
    sut_uid=names,
    sut_initialization=json_objects,
    dependency_versions=st.dictionaries(names, names, max_size=2),
    counts=st.builds(
        Counts, items=st.integers(0, 99), sut_calls=st.builds(CallCounts, paid=st.integers(0, 2**63 - 1))
    ),
    result=results,
    seconds=optional(st.floats(0, 1e6)),
    notes=st.lists(texts, max_size=2),
    failure=optional(st.builds(RunFailure, stage=st.just("run"), error_type=names, message=texts)),
)
exceptions = st.builds(
    TestItemExceptionRecord,
    index=st.integers(0, 2**63 - 1),
    test_item=items,
    interactions=st.lists(annotated, max_size=2),
    stage=st.sampled_from(["sut", "annotator", "measure"]),
    source_uid=names,
    error_type=names,
    message=texts,
    traceback=texts,
)
item_records = st.builds(
    TestItemRecord,
    index=st.integers(0, 2**63 - 1),
    test_item=items,
    interactions=st.lists(annotated, max_size=2),
    measurements=measurements,
)
values = st.one_of(
    prompts,
    items,
    responses,
    annotated,
    st.builds(TestItemAnnotations, items, st.lists(annotated, max_size=2)),
    st.builds(MeasuredTestItem, items, measurements),
    estimates,
    st.builds(Score, floats, optional(texts), optional(json_objects), optional(floats)),
    records,
)


@given(values)
def test_json_gives_back_the_same_value(value):
    written = value.model_dump_json()
    assert type(value).model_validate_json(written) == value
    assert type(value).load(json.loads(written)) == value
    assert type(value).model_validate_json(written).model_dump_json() == written


@settings(max_examples=50)
@given(item_records | exceptions)
def test_a_line_of_a_journal_gives_back_its_record(record):
    assert item_from_json(record.model_dump_json().encode(), "a file") == record  # as in version 1
    read = item_from_json(make_line(record, "a test", str)[1], "a file")
    assert read.replaced(digests=record.digests) == record


@settings(max_examples=25)
@given(prompts_with_context, responses)
def test_an_answer_keeps_prompt_and_response(prompt, response):
    said = [{"place": place} for place in range(len(response.completions))]
    asked = make_interaction(prompt, response, 2, keys=["a key", None, "another"])
    assert asked.response.unannotated == response
    assert (asked.repeat, asked.key, asked.other_keys) == (2, "a key", ("another",))
    assert not any(completion.annotations for completion in asked.response.completions)
    made = add_annotations(
        asked,
        [(place, name, value, None) for place, own in enumerate(said) for name, value in own.items()],
        ["a judge's", "another"],
    )
    assert (made.repeat, made.keys) == (2, ["a key", "another", "a judge's"])
    assert made.prompt is prompt
    assert made.response.usage == response.usage
    assert [completion.completion for completion in made.response.completions] == list(response.completions)
    assert [completion.annotations for completion in made.response.completions] == said


def test_options_that_ask_for_nothing_are_left_out():
    assert TextPrompt("a").model_dump_json() == '{"text":"a"}'
    assert "temperature" in TextPrompt("a", SUTOptions(temperature=0)).model_dump_json()


class Want(BaseModel):
    answer: str | None


def test_a_context_model_keeps_its_nones():
    item = TestItem("a", context=Want(answer=None))
    again = TestItem.model_validate_json(item.model_dump_json())
    assert again.context == {"answer": None}
    assert again.context_as(Want) == item.context


exchanges = st.builds(
    LLMTestCase,
    texts,
    optional(texts),
    optional(texts),
    context=optional(st.lists(texts, max_size=2)),
    retrieval_context=optional(st.lists(texts, max_size=2)),
    tools_called=optional(st.lists(st.builds(ToolCall, name=texts, output=json_values), max_size=2)),
    token_cost=optional(st.floats(0, 100)),
    name=optional(texts),
    tags=optional(st.lists(texts, max_size=2)),
    metadata=optional(json_objects),
    custom_column_key_values=optional(json_objects),
)
scores = st.builds(Score, floats, optional(texts), optional(json_objects), optional(floats))


@given(exchanges | scores)
def test_what_says_that_it_comes_back_does(value):
    assert "comes_back" in type(value).__dict__
    assert type(value).model_validate_json(value.model_dump_json()) == value


def test_no_other_class_says_so():
    """One that is added needs a strategy in the test above."""

    def below(cls):
        return {cls}.union(*map(below, cls.__subclasses__()))

    said = {one for one in below(Frozen) if one.__dict__.get("comes_back")}
    assert said == {LLMTestCase, Score}


# --- files of newer versions -----------------------------------------------------------------------------


def test_a_loader_skips_unknown_fields_with_one_warning():
    data = {
        "prompts": [{"prompt": {"text": "a", "later": 1}, "new": 2}, {"prompt": {"text": "b", "later": 1}}],
        "newest": 3,
    }
    with pytest.warns(UserWarning, match=r"newest") as caught:
        loaded = TestItem.load(data)
    assert loaded == TestItem(["a", "b"])
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "prompts.0.prompt.later" in message
    assert "<text>" not in message


def test_one_warning_for_a_whole_file():
    unknown = UnknownFields("some.json")
    data = {"prompts": ["a"], "newer": 1}
    with pytest.warns(UserWarning, match="some.json: skipped"):
        TestItem.load(data, unknown)
    assert TestItem.load(data, unknown) == TestItem("a")  # a second warning would be an error here


def test_a_loader_keeps_context_as_it_is():
    data = {"prompts": ["a"], "context": {"anything": {"goes": 1}}}
    assert TestItem.load(data).context == {"anything": {"goes": 1}}


def test_a_loader_still_refuses_what_does_not_fit():
    with pytest.raises(InvalidDataError, match="'prompts' is missing"):
        TestItem.load({"promts": ["a"]})
    with pytest.raises(InvalidDataError):
        TestItem.load([])
