"""What a data set holds, how it is named and hashed, and that files give back what was saved."""

import copy
import inspect
import pickle
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelgauge.data.responses import ToolCall
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase, Turn
from modelgauge.datasets.dataset import EvaluationDataset
from modelgauge.errors import InputFileError, InvalidOptionError, UsageError

SINGLE = Golden("hi")
MULTI = ConversationalGolden("greeting")
CASE = LLMTestCase("hi", "ho")
CONVERSATION = ConversationalTestCase([CASE])
FILE_TYPES = ("csv", "json", "jsonl")


def saved_and_read(dataset: EvaluationDataset, kind: str, folder, *, as_cases: bool = False):
    path = dataset.save_as(kind, folder, "data", include_test_cases=as_cases)
    read = EvaluationDataset()
    getattr(read, f"add_{'test_cases' if as_cases else 'goldens'}_from_{kind}_file")(path)
    return read


# --- one kind -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (MULTI, SINGLE, "You cannot add 'Golden' to a multi-turn dataset."),
        (SINGLE, MULTI, "You cannot add 'ConversationalGolden' to a single-turn dataset."),
        (MULTI, CASE, "You cannot add 'LLMTestCase' to a multi-turn dataset."),
        (SINGLE, CONVERSATION, "You cannot add 'ConversationalTestCase' to a single-turn dataset."),
        (CONVERSATION, SINGLE, "You cannot add 'Golden' to a multi-turn dataset."),
        (CASE, CONVERSATION, "You cannot add 'ConversationalTestCase' to a single-turn dataset."),
    ],
)
def test_a_dataset_is_single_turn_or_multi_turn(first, second, message):
    def add(dataset, member):
        golden = isinstance(member, Golden | ConversationalGolden)
        (dataset.add_golden if golden else dataset.add_test_case)(member)

    dataset = EvaluationDataset()
    add(dataset, first)
    with pytest.raises(TypeError) as caught:
        add(dataset, second)
    assert str(caught.value) == message
    assert len(dataset.goldens) + len(dataset.test_cases) == 1


def test_every_way_into_the_lists_is_checked():
    dataset = EvaluationDataset(goldens=[SINGLE])
    for put in (
        lambda: EvaluationDataset(goldens=[SINGLE, MULTI]),
        lambda: dataset.goldens.append(MULTI),
        lambda: dataset.goldens.extend([SINGLE, MULTI]),
        lambda: dataset.goldens.insert(0, MULTI),
        lambda: dataset.goldens.__iadd__([MULTI]),
        lambda: dataset.goldens.__setitem__(slice(0, 0), [MULTI]),
        lambda: setattr(dataset, "test_cases", [CONVERSATION]),
    ):
        with pytest.raises(TypeError, match="to a single-turn dataset"):
            put()
    with pytest.raises(TypeError, match="You cannot add a value of type Golden here"):
        dataset.add_test_case(SINGLE)
    with pytest.raises(TypeError, match="You cannot add a value of type dict here"):
        dataset.add_golden({"input": "hi"})
    assert dataset.goldens == [SINGLE]
    assert dataset.test_cases == []


def test_the_goldens_can_be_replaced_by_the_other_kind():
    dataset = EvaluationDataset([SINGLE])
    dataset.goldens = [MULTI, MULTI]
    assert dataset.goldens == [MULTI, MULTI]
    assert dataset.is_multi_turn


def test_lists_know_their_dataset_and_copies_are_whole():
    dataset = EvaluationDataset([SINGLE], test_cases=[CASE], name="greetings")
    assert dataset.test_cases.dataset is dataset
    for twin in (copy.deepcopy(dataset), pickle.loads(pickle.dumps(dataset))):
        assert (twin.goldens, twin.test_cases, twin.name) == ([SINGLE], [CASE], "greetings")
        assert twin.goldens.dataset is twin
    assert type(copy.copy(dataset.goldens)) is list


def test_a_dataset_iterates_over_its_test_cases_or_else_its_goldens():
    dataset = EvaluationDataset([SINGLE, SINGLE])
    assert list(dataset) == [SINGLE, SINGLE]
    dataset.add_test_case(CASE)
    assert list(dataset) == [CASE]
    assert len(dataset) == 1


def test_what_a_dataset_contains_is_what_it_iterates_over():
    dataset = EvaluationDataset([SINGLE])
    assert Golden("hi") in dataset
    assert Golden("ho") not in dataset
    assert "hi" not in dataset
    dataset.add_test_case(CASE)
    assert LLMTestCase("hi", "ho") in dataset
    assert SINGLE not in dataset
    assert SINGLE in dataset.goldens
    assert CASE not in EvaluationDataset()
    assert not EvaluationDataset()


# --- files give back what was saved -------------------------------------------------------------------------

AWKWARD = ["NA", "007", "1.50", "nan", "null", "true", "", " x ", "a,b", "a|b;c", 'say "hi"', "two\nlines"]
AWKWARD += [
    "dos\r\nlines",
    "mac\rlines",
    "[]",
    '["a"]',
    "[1]",
    "\ufeffbom",
    "line\u2028separator",
    "'",
    "é😀",
    "-",
]


@pytest.mark.parametrize("kind", FILE_TYPES)
@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_texts_come_back_as_they_were(text, kind, tmp_path):
    dataset = EvaluationDataset(
        [
            Golden(text, expected_output=text, comments=text, name=text, source_file=text),
            Golden("x", context=[text], tags=[text, text], expected_tools=[ToolCall(name=text, output=text)]),
            Golden("x", custom_column_key_values={"lang": text}, additional_metadata={text: text}),
        ]
    )
    read = saved_and_read(dataset, kind, tmp_path)
    assert read.goldens == dataset.goldens
    assert read.content_hash == dataset.content_hash


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(AWKWARD)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(texts, json_values, max_size=2)
optional_texts = st.none() | texts
lists = st.none() | st.lists(texts, max_size=3)
tools = st.none() | st.lists(
    st.builds(ToolCall, name=texts, output=json_values, input_parameters=st.none() | objects), max_size=2
)
shared = {
    "context": lists,
    "name": optional_texts,
    "tags": lists,
    "comments": optional_texts,
    "custom_column_key_values": st.none() | st.dictionaries(texts, texts | json_values, max_size=2),
    "additional_metadata": st.none() | objects,
    "source_file": optional_texts,
}
goldens = st.lists(
    st.builds(Golden, input=texts, expected_output=optional_texts, expected_tools=tools, **shared),
    min_size=1,
    max_size=3,
)
turns = st.lists(
    st.builds(
        Turn,
        role=st.sampled_from(["user", "assistant"]),
        content=texts,
        retrieval_context=lists,
        tools_called=tools,
    ),
    min_size=1,
    max_size=2,
)
conversational_goldens = st.lists(
    st.builds(
        ConversationalGolden,
        scenario=texts,
        turns=st.none() | turns,
        expected_outcome=optional_texts,
        chatbot_role=optional_texts,
        user_description=optional_texts,
        **shared,
    ),
    min_size=1,
    max_size=2,
)


@pytest.mark.parametrize("kind", FILE_TYPES)
@settings(max_examples=40)
@given(members=goldens | conversational_goldens)
def test_any_goldens_come_back_from_their_file(members, kind, tmp_path_factory):
    dataset = EvaluationDataset(members)
    read = EvaluationDataset()
    path = dataset.save_as(kind, tmp_path_factory.mktemp("goldens"), "data")
    read.goldens = EvaluationDataset.from_file(path).goldens
    assert read.goldens == dataset.goldens
    assert read.content_hash == dataset.content_hash


amounts = st.none() | st.floats(min_value=0, allow_infinity=False)
test_cases = st.lists(
    st.builds(
        LLMTestCase,
        input=texts,
        actual_output=optional_texts,
        retrieval_context=lists,
        tools_called=tools,
        token_cost=amounts,
        completion_time=amounts,
        metadata=st.none() | objects,
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("kind", FILE_TYPES)
@settings(max_examples=25)
@given(members=test_cases | st.lists(st.builds(ConversationalTestCase, turns), min_size=1, max_size=2))
def test_any_test_cases_come_back_from_their_file(members, kind, tmp_path_factory):
    dataset = EvaluationDataset(test_cases=members)
    read = saved_and_read(dataset, kind, tmp_path_factory.mktemp("cases"), as_cases=True)
    assert read.test_cases == dataset.test_cases
    assert read.goldens == []


# --- saving -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FILE_TYPES)
def test_save_as_names_the_file_and_makes_its_folder(kind, tmp_path):
    dataset = EvaluationDataset([SINGLE])
    assert dataset.save_as(kind, tmp_path / "new", "mine") == tmp_path / "new" / f"mine.{kind}"
    assert (
        dataset.save_as(file_type=kind, directory=str(tmp_path), file_name=f"mine.{kind}").name
        == f"mine.{kind}"
    )
    first, second = dataset.save_as(kind, tmp_path), dataset.save_as(kind, tmp_path)
    assert first != second
    assert first.suffix == second.suffix == f".{kind}"


def test_save_as_writes_test_cases_when_asked(tmp_path):
    dataset = EvaluationDataset([SINGLE], test_cases=[CASE])
    assert len(EvaluationDataset.from_file(dataset.save_as("json", tmp_path)).goldens) == 1


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
@pytest.mark.parametrize("multi", [False, True])
def test_goldens_and_test_cases_of_one_file_are_told_apart(kind, multi, tmp_path):
    golden = Golden(
        "q", custom_column_key_values={"modelgauge_member": "test_case", "topic": "x"}, source_file="f"
    )
    case = LLMTestCase("q", "a;b", context=["one|two", "three;four"], metadata={"page": 3}, tags=["t"])
    if multi:
        golden, case = (
            ConversationalGolden("s", name="n"),
            ConversationalTestCase([Turn("user", "hi")], tags=["t"]),
        )
    dataset = EvaluationDataset([golden], test_cases=[case], name="both")
    path = dataset.save_as(kind, tmp_path, "both", include_test_cases=True)
    read = EvaluationDataset.from_file(path)
    assert (read.goldens, read.test_cases) == ([golden], [case])
    assert read.content_hash == dataset.content_hash
    goldens, cases = EvaluationDataset(), EvaluationDataset()
    getattr(goldens, f"add_goldens_from_{kind}_file")(path)
    getattr(cases, f"add_test_cases_from_{kind}_file")(path)
    assert (goldens.goldens, goldens.test_cases) == ([golden], [])
    assert (cases.goldens, cases.test_cases) == ([], [case])


def test_test_cases_alone_are_a_file_of_their_own(tmp_path):
    path = EvaluationDataset(test_cases=[CASE]).save_as("csv", tmp_path, include_test_cases=True)
    assert "modelgauge_member" not in path.read_text(encoding="utf-8")
    read = EvaluationDataset()
    read.add_test_cases_from_csv_file(path)
    assert read.test_cases == [CASE]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda one: one.save_as("csv", file_nam="x"),
            "save_as: there is no argument 'file_nam'. Did you mean",
        ),
        (lambda one: one.save_as("csv", ".", 3), "file_name is 3. Give a text"),
        (lambda one: one.save_as("csv", ".", "../up"), "'../up' is a path"),
        (lambda one: one.save_as("csv", ".", "..\\\\up"), "is a path"),
        (lambda one: one.save_as("csv", ".", "/up"), "'/up' is a path"),
        (lambda one: one.save_as("csv", 3), "type int is not a path"),
        (lambda one: one.save_as(), "save_as: missing a required argument: 'file_type'"),
        (
            lambda one: one.add_goldens_from_csv_file("a.csv", "q", "a"),
            r"too many positional .*Name all but file_path, input_col_name\. .* expected_output_col_name",
        ),
        (lambda one: EvaluationDataset(name=3), "name is 3. Give a text"),
    ],
)
def test_wrong_arguments_are_told_with_the_right_ones(call, told):
    with pytest.raises(InvalidOptionError, match=told):
        call(EvaluationDataset([SINGLE]))


def test_nothing_to_save_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="no goldens to save"):
        EvaluationDataset(test_cases=[CASE]).save_as("csv", tmp_path)
    with pytest.raises(InvalidOptionError, match="csv, json, jsonl"):
        EvaluationDataset([SINGLE]).save_as("xlsx", tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- name and hash ------------------------------------------------------------------------------------------


def test_the_name_is_given_or_that_of_the_first_file(tmp_path):
    path = EvaluationDataset([SINGLE]).save_as("csv", tmp_path, "greetings")
    other = EvaluationDataset([SINGLE]).save_as("csv", tmp_path, "others")
    dataset = EvaluationDataset()
    dataset.add_goldens_from_csv_file(path)
    dataset.add_goldens_from_csv_file(other)
    assert dataset.name == "greetings"
    assert EvaluationDataset.from_file(path, name="mine").name == "mine"


def test_the_hash_tells_contents_apart_and_ignores_what_the_app_did():
    golden = Golden("hi", expected_output="ho", additional_metadata={"a": 1})
    dataset = EvaluationDataset([golden], name="a")
    before = dataset.content_hash
    assert len(before) == 64
    assert set(before) <= set(string.hexdigits)
    assert EvaluationDataset([golden], name="b", test_cases=[CASE]).content_hash == before
    runs = [EvaluationDataset(test_cases=[golden.to_test_case(answer)]) for answer in ("x", "y")]
    assert {run.content_hash for run in runs} == {before}
    golden.expected_output = "hey"
    assert dataset.content_hash != before
    assert (
        EvaluationDataset([golden, SINGLE]).content_hash != EvaluationDataset([SINGLE, golden]).content_hash
    )


def test_conversations_without_a_scenario_differ_by_their_turns():
    one, other = (
        EvaluationDataset(test_cases=[ConversationalTestCase([Turn("user", text)])]) for text in "ab"
    )
    assert one.content_hash != other.content_hash


def test_from_file_goes_by_the_ending(tmp_path):
    with pytest.raises(InputFileError, match=r"goldens.txt' is not a data set"):
        EvaluationDataset.from_file(tmp_path / "goldens.txt")


def test_signatures_list_the_columns():
    signature = inspect.signature(EvaluationDataset.add_goldens_from_csv_file)
    assert {"file_path", "input_col_name", "expected_output_col_name", "context_col_delimiter"} <= set(
        signature.parameters
    )
    assert "context_key_name" in inspect.signature(EvaluationDataset.add_goldens_from_jsonl_file).parameters


def test_one_golden_alone_is_told_to_go_into_a_list():
    with pytest.raises(TypeError, match=r"Give a list, such as \[Golden\(…\)\]"):
        EvaluationDataset(Golden("a"))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("evaluate", r"evaluate\(dataset, metrics\)"),
        ("evals_iterator", "observed_callback"),
        ("queue", r"dataset\.push"),
    ],
)
def test_what_other_libraries_data_sets_do_is_told_how_it_is_done_here(name, told):
    with pytest.raises(AttributeError, match=told):
        getattr(EvaluationDataset(), name)
    assert not hasattr(EvaluationDataset(), "anything")


def test_the_lists_take_members_anywhere_as_other_lists_do():
    dataset = EvaluationDataset([SINGLE])
    dataset.goldens.insert(0, Golden("first"))
    dataset.goldens += [Golden("last")]
    goldens = dataset.goldens
    goldens += [Golden("very last")]
    assert [golden.input for golden in dataset.goldens] == ["first", "hi", "last", "very last"]
    assert dataset.goldens.dataset is dataset


@pytest.mark.parametrize(
    ("lists", "wrong"), [("goldens", [SINGLE, MULTI]), ("test_cases", [CASE, CONVERSATION])]
)
def test_members_that_cannot_be_replaced_stay(lists, wrong):
    dataset = EvaluationDataset([SINGLE, SINGLE], test_cases=[CASE, CASE])
    with pytest.raises(TypeError, match="to a single-turn dataset"):
        setattr(dataset, lists, wrong)
    assert (dataset.goldens, dataset.test_cases) == ([SINGLE, SINGLE], [CASE, CASE])


def test_a_dataset_is_shown_by_its_name_and_what_it_holds():
    assert repr(EvaluationDataset()) == "<EvaluationDataset 0 goldens, 0 test cases>"
    named = EvaluationDataset([SINGLE] * 1200, test_cases=[CASE], name="mine")
    assert repr(named) == "<EvaluationDataset 'mine': 1,200 goldens, 1 test case>"
