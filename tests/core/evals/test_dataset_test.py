import asyncio
import math

import pytest
from click.testing import CliRunner

from modelgauge import (
    FunctionSUT,
    PromptResponseSUT,
    SUTCompletion,
    SUTResponse,
    ToolCall,
    load_record,
    metrics,
    run_test,
)
from modelgauge.cli.main import cli
from modelgauge.errors import IncompatibleError, InvalidDataError, MissingParameterError
from modelgauge.evals import (
    ConversationalGolden,
    ConversationalTestCase,
    DatasetTest,
    EvaluationDataset,
    Golden,
    LLMTestCase,
    LLMTestCaseParams,
    Turn,
    evaluate,
)
from modelgauge.metrics import (
    CostMetric,
    ExactMatchMetric,
    GEval,
    JsonCorrectnessMetric,
    LatencyMetric,
    LevenshteinMetric,
    Metric,
    RoleAdherenceMetric,
    ToolCorrectnessMetric,
)

GOLDENS = [Golden("a", expected_output="a"), Golden("b", expected_output="x", name="second")]


def test_any_sut_can_be_asked_a_data_set(here, match):
    dataset = EvaluationDataset(GOLDENS, name="goldens")
    record = run_test(DatasetTest("mine", dataset, [match(threshold=0.7)]), FunctionSUT("echo", str))
    assert record.result["Match"].value == 0.75
    assert record.result["Match.passed"].value == record.result["passed"].value == 0.5
    assert (record.dataset.name, record.dataset.digest) == ("goldens", dataset.content_hash)
    first, second = record.test_item_records
    assert second.test_item.id == "second"
    assert first.interactions[0].prompt.context_as(Golden) == GOLDENS[0]


class Near(Metric):
    """Scores of 0.9 and 1, whose t interval would leave the range."""

    score_range = (0.0, 1.0)

    def score(self, test_case):
        return 1.0 if test_case.input == "a" else 0.9


class Elsewhere(Near):
    def score(self, test_case):
        return 9.0 if test_case.input == "a" else 10.0


def test_what_a_stopped_run_of_a_data_set_has_not_begun_is_known(here, match):
    dataset = EvaluationDataset([Golden(f"q{n}", expected_output="yes") for n in range(3000)])
    test = DatasetTest("mine", dataset, [match()])
    record = run_test(test, FunctionSUT("app", lambda text: "yes"), max_calls=5, concurrency=1)
    assert record.counts.items + record.counts.not_begun == 3000


def test_an_interval_stays_in_the_range_of_the_scores(here):
    test = DatasetTest("t", EvaluationDataset(GOLDENS), [Near(), Elsewhere(), LevenshteinMetric()])
    assert test.measurement_ranges == {"Near": (0.0, 1.0), "LevenshteinMetric": (0.0, 1.0)}
    result = run_test(test, FunctionSUT("echo", str)).result
    assert result["Near"].value == 0.95
    assert result["Near"].interval[1] == 1.0
    assert result["Elsewhere"].interval[1] > 10


def test_missing_scores_have_bounds(here):
    def app(question):
        if question == "b":
            raise LookupError("no")
        return question

    result = run_test(
        DatasetTest("t", EvaluationDataset(GOLDENS), [LevenshteinMetric()]), FunctionSUT("app", app)
    ).result
    assert result["LevenshteinMetric"].bounds == (0.5, 1.0)


def test_given_answers_have_the_ranges_of_their_metrics(here):
    cases = [LLMTestCase(one.input, "", "x") for one in GOLDENS]
    result = evaluate(cases, [Near()], print_results=False).record.result
    assert result["Near"].interval[1] == 1.0


def test_all_metrics_know_their_range():
    named = {name: getattr(metrics, name) for name in metrics.__all__}
    ranges = {
        name: cls.score_range
        for name, cls in named.items()
        if isinstance(cls, type) and issubclass(cls, Metric) and cls not in (Metric, metrics.JudgeMetric)
    }
    amounts = {"CostMetric", "LatencyMetric"}
    assert {name for name, limits in ranges.items() if limits == (0.0, math.inf)} == amounts
    assert set(ranges.values()) == {(0.0, math.inf), (0.0, 1.0)}


def test_what_the_app_returns_beside_its_text_reaches_the_metrics(here):
    seen = []

    class Seen(Metric):
        def score(self, test_case):
            seen.append(test_case)
            return 1

    def app(question):
        return SUTCompletion(
            "out", metadata={"retrieval_context": ["doc"]}, tool_calls=[ToolCall(name="look")]
        )

    run_test(DatasetTest("t", EvaluationDataset(GOLDENS[:1]), [Seen()]), FunctionSUT("app", app))
    assert seen == [
        LLMTestCase("a", "out", "a", retrieval_context=["doc"], tools_called=[ToolCall(name="look")])
    ]


def test_an_item_whose_metric_cannot_judge_is_no_score(here, broken, match):
    record = run_test(
        DatasetTest("t", EvaluationDataset(GOLDENS), [match(), broken()]), FunctionSUT("echo", str)
    )
    assert (record.counts.scored, record.counts.annotator_errors) == (0, 2)
    assert set(record.result) == {"Match", "Match.passed"}  # of which all items have a score


class Turns(Metric):
    """How many turns a conversation has."""

    test_case_type = ConversationalTestCase

    def score(self, test_case):
        return len(test_case.turns)


class Chat(PromptResponseSUT):
    """Says all that was said once more."""

    def translate_chat_prompt(self, prompt):
        return [message.text for message in prompt.messages]

    def evaluate(self, request):
        return " ".join(request)

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response, metadata={"retrieval_context": ["found"]})])


def test_conversations_need_a_sut_that_chats_and_go_on_with_its_answer(here):
    golden = ConversationalGolden(
        turns=[Turn("user", "hi"), Turn("assistant", "hello"), Turn("user", "and?")]
    )
    test = DatasetTest("t", EvaluationDataset([golden]), [Turns(threshold=4)])
    with pytest.raises(IncompatibleError, match="AcceptsChatPrompt"):
        run_test(test, FunctionSUT("echo", str))
    (item,) = run_test(test, Chat("chat")).test_item_records
    assert item.measurements == {"Turns": 4, "Turns.passed": 1, "passed": 1}
    assert item.interactions[0].response.completions[0].completion.text == "hi hello and?"


def test_a_golden_that_was_edited_into_none_is_told_so_and_nobody_is_asked(here, match):
    golden = Golden("q", expected_output="yes", additional_metadata={"page": 1})
    test = DatasetTest("t", [golden], [match()])
    golden.additional_metadata["page"] = object()
    asked = []
    record = run_test(test, FunctionSUT("app", lambda prompt: asked.append(prompt) or "yes"))
    assert (record.failure.stage, asked) == ("items", [])
    assert "The golden 'q' was edited in place" in record.failure.message


def test_a_scenario_is_no_message_of_a_user():
    begun = ConversationalGolden(turns=[Turn("user", "hi")])
    goldens = [begun, ConversationalGolden("A user who wants a refund")]
    with pytest.raises(
        InvalidDataError, match=r"'A user who wants a refund', number 2 of the data set.*Give turns"
    ):
        DatasetTest("t", goldens, [Turns()])
    edited = ConversationalGolden("later", turns=[Turn("user", "hi")])
    test = DatasetTest("t", [edited], [Turns()])
    edited.turns = None
    with pytest.raises(InvalidDataError, match="The golden 'later' has a scenario and no turns"):
        list(test.make_test_items({}))


@pytest.mark.parametrize("kind", [ConversationalGolden, ConversationalTestCase])
def test_the_last_turn_of_the_assistant_is_the_suts_not_the_one_that_stands_there(here, kind):
    seen = []

    class Seen(Turns):
        def score(self, test_case):
            seen.append(test_case)
            return 1

    member = kind(
        turns=[Turn("user", "hi"), Turn("assistant", "of another")],
        scenario="greeting",
        chatbot_role="host",
        metadata={"page": 3},
        name="first",
    )
    record = run_test(DatasetTest("t", [member], [Seen()]), Chat("chat"))
    answered = [Turn("user", "hi"), Turn("assistant", "hi", retrieval_context=["found"])]
    assert seen == [
        ConversationalTestCase(
            answered, scenario="greeting", chatbot_role="host", metadata={"page": 3}, name="first"
        )
    ]
    assert record.test_item_records[0].test_item.id == "first"


FIRST = LLMTestCase(
    "a",
    "x",
    "b",
    tools_called=[ToolCall(name="look")],
    expected_tools=[ToolCall(name="look")],
    token_cost=0.5,
    completion_time=2,
    retrieval_context=["given"],
    metadata={"page": 3},
)


@pytest.mark.parametrize("of_golden", [True, False])
def test_what_an_earlier_answer_did_is_not_taken_for_what_this_sut_does(here, of_golden):
    seen = []

    class Seen(Metric):
        def score(self, test_case):
            seen.append(test_case)
            return 1

    member = FIRST
    if of_golden:
        with pytest.warns(UserWarning, match="A golden with"):
            member = Golden(**FIRST.model_dump())
    metrics = [Seen(), ToolCorrectnessMetric(), CostMetric(threshold=1), LatencyMetric(threshold=3)]
    record = run_test(DatasetTest("t", [member], metrics), FunctionSUT("echo", str))
    assert seen == [
        FIRST.replaced(actual_output="a", tools_called=None, token_cost=None, completion_time=None)
    ]
    (failed,) = record.test_item_exceptions
    assert "ToolCorrectnessMetric needs 'tools_called', which the SUT did not say" in failed.message
    assert record.counts.scored == 0


def test_an_empty_data_set_and_no_metric_are_errors(match):
    with pytest.raises(InvalidDataError, match="empty"):
        DatasetTest("t", EvaluationDataset(), [match()])
    with pytest.raises(InvalidDataError, match="no metric"):
        DatasetTest("t", EvaluationDataset(GOLDENS), [])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (ExactMatchMetric, r"the class ExactMatchMetric. Make an object of it: ExactMatchMetric\(\)."),
        (int, "a value of type type. Give metrics: .* a subclass of Metric with score."),
        (3, "a value of type int. Give metrics: .* a subclass of Metric with score."),
    ],
)
def test_what_is_no_metric_is_told_how_to_become_one(given, told):
    with pytest.raises(InvalidDataError, match=f"Among the metrics is {told}"):
        DatasetTest("t", EvaluationDataset(GOLDENS), [given])


class NeedsMetadata(Metric):
    required_params = ("metadata", "actual_output", "retrieval_context")

    def score(self, test_case):
        return 1.0


@pytest.mark.parametrize(
    ("goldens", "metric", "told"),
    [
        (
            [GOLDENS[0], Golden("c")],
            ExactMatchMetric(),
            r"which the golden 'c' does not have. Make the golden with it: Golden\(…, expected_output=…\)",
        ),
        ([Golden("c", name="n")], NeedsMetadata(), "NeedsMetadata needs 'metadata'.*'n'"),
        ([ConversationalGolden("s")], ExactMatchMetric(), "judges an LLMTestCase, and the golden 's'"),
        ([ConversationalGolden("s")], RoleAdherenceMetric(), "RoleAdherenceMetric needs 'chatbot_role'.*'s'"),
        ([Golden("c")], RoleAdherenceMetric(), "judges a ConversationalTestCase, and the golden 'c'"),
    ],
)
def test_what_only_goldens_can_say_is_asked_for_before_any_call(goldens, metric, told):
    with pytest.raises(MissingParameterError, match=told):
        DatasetTest("t", EvaluationDataset(goldens), [metric])


def test_what_a_sut_says_is_not_asked_of_goldens(here):
    test = DatasetTest("t", EvaluationDataset([Golden("c", metadata={"a": 1})]), [NeedsMetadata()])

    def app(question):
        return SUTCompletion("x", metadata={"retrieval_context": ["doc"]} if question else {})

    assert run_test(test, FunctionSUT("app", app)).counts.scored == 1
    (failed,) = run_test(test, FunctionSUT("echo", str)).test_item_exceptions
    assert "NeedsMetadata needs 'retrieval_context'" in failed.message


def test_several_completions_are_judged_and_averaged(here):
    class Several(FunctionSUT):
        def translate_response(self, request, response):
            several = super().translate_response(request, response)
            return several.replaced(completions=(SUTCompletion("a"), SUTCompletion("no")))

    record = run_test(
        DatasetTest("t", EvaluationDataset(GOLDENS[:1]), [ExactMatchMetric()]), Several("several", str)
    )
    (item,) = record.test_item_records
    assert item.measurements == {"ExactMatchMetric": 0.5, "ExactMatchMetric.passed": 0.0, "passed": 0.0}


# --- from the command line ------------------------------------------------------------------------------


PLUGIN = """
from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse, hookimpl

class Fixed(PromptResponseSUT):
    def __init__(self, uid, answer):
        super().__init__(uid)
        self.answer = answer

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        return self.answer

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response)])

@hookimpl
def modelgauge_register_suts(register):
    register("fixed", Fixed, answer="a")
    register("judge", Fixed, answer='{"verdicts": [{"verdict": "yes"}], "statements": ["a"], "reason": "ok"}')
"""


@pytest.fixture
def command(here):
    (here / "plug.py").write_text(PLUGIN, encoding="utf-8")
    (here / "goldens.csv").write_text("input,expected_output\na,a\nb,x\n", encoding="utf-8")

    def run(*args):
        return CliRunner().invoke(
            cli, ["run-test", "--plugin", "plug.py", "--sut", "fixed", "--no-progress-bar", *args]
        )

    return run


def test_goldens_and_metrics_by_name(command, here):
    done = command("--dataset", "goldens.csv", "--metric", "exact_match", "--metric", "levenshtein")
    assert done.exit_code == 1, done.output  # one of the two goldens does not pass
    (folder,) = (here / "run_data" / "runs").iterdir()
    record = load_record(folder)
    assert {"ExactMatchMetric", "LevenshteinMetric", "passed"} < set(record.result)
    assert record.result["ExactMatchMetric"].value == 0.5
    assert record.dataset.name == "goldens"


def test_the_judge_of_the_command_line(command, here):
    done = command("--dataset", "goldens.csv", "--metric", "answer_relevancy", "--judge", "judge")
    assert done.exit_code == 0, done.output
    (folder,) = (here / "run_data" / "runs").iterdir()
    assert load_record(folder).counts.judge_calls.paid > 0


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ([], "Missing option"),
        (["--dataset", "goldens.csv"], "at least one --metric"),
        (["--metric", "exact_match"], "which is missing"),
        (["--dataset", "goldens.csv", "--metric", "exact_mach"], "exact_match"),
        (["--dataset", "gone.csv", "--metric", "exact_match"], "gone.csv"),
        (["--dataset", "goldens.csv", "--metric", "answer_relevancy"], "--judge"),
    ],
)
def test_what_is_missing_is_told_before_any_call(command, here, args, why):
    done = command(*args)
    assert done.exit_code == 2
    assert why in done.output
    assert not (here / "run_data" / "runs").exists()


def test_metrics_in_a_running_loop(here, match):
    async def main():
        test = DatasetTest("t", EvaluationDataset(GOLDENS), [match()])
        return run_test(test, FunctionSUT("echo", str)).counts.scored

    assert asyncio.run(main()) == 2


def test_goldens_are_a_data_set_without_one(match):
    goldens = [Golden("a", expected_output="b"), Golden("c", expected_output="d")]
    listed, whole = (DatasetTest("m", given, [match()]) for given in (goldens, EvaluationDataset(goldens)))
    assert listed.members == whole.members
    assert listed.dataset == whole.dataset
    assert listed.initialization == whole.initialization  # which lists no goldens
    assert DatasetTest("m", goldens[0], [match()]).members == goldens[:1]
    case = LLMTestCase("a", expected_output="b")
    assert DatasetTest("m", [case], [match()]).members == [case]


@pytest.mark.parametrize(
    ("dataset", "told"),
    [
        ("g.csv", r"EvaluationDataset\.from_file\('g\.csv'\)"),
        (None, "got None"),
        ([5], "nor a list of goldens"),
    ],
)
def test_what_is_no_data_set_is_told_what_to_give(dataset, told, match):
    with pytest.raises(InvalidDataError, match=told):
        DatasetTest("m", dataset, [match()])


@pytest.mark.parametrize("metrics", ["exact_match", ["exact_match"]])
def test_uids_of_metrics_are_told_where_they_are_looked_up(metrics):
    with pytest.raises(InvalidDataError, match="uid 'exact_match', and a DatasetTest looks up no names"):
        DatasetTest("m", [Golden("a")], metrics)


def test_metrics_of_one_class_are_told_apart_by_the_options_in_which_they_differ():
    golden = Golden("a", expected_output="b", expected_tools=[])
    metrics = [
        ExactMatchMetric(threshold=0.5),
        ExactMatchMetric(threshold=0.5, ignore_case=True),
        GEval("Kind", "be kind"),
        GEval("Kind", "be kind", [LLMTestCaseParams.INPUT]),
        LevenshteinMetric(),
        LevenshteinMetric(),
    ]
    assert list(DatasetTest("m", [golden], metrics).metrics) == [
        "ExactMatchMetric",
        "ExactMatchMetric(ignore_case=True)",
        "Kind",
        "Kind(evaluation_params=['input'])",
        "LevenshteinMetric",
        "LevenshteinMetric~2",
    ]


def test_a_metric_is_named_on_the_command_line(command, here):
    uids = ("exact_match?name=Same", "exact_match?ignore_case=true", "exact_match")
    done = command("--dataset", "goldens.csv", *(part for uid in uids for part in ("--metric", uid)))
    assert done.exit_code == 1, done.output
    (folder,) = (here / "run_data" / "runs").iterdir()
    names = {"Same", "ExactMatchMetric(ignore_case=True)", "ExactMatchMetric"}
    assert load_record(folder).thresholds.keys() == names


def test_long_and_nested_arguments_in_names_of_metrics():
    def names(*schemas):
        metrics = [JsonCorrectnessMetric(expected_schema=schema) for schema in schemas]
        return list(DatasetTest("m", [Golden("a")], metrics).metrics)

    assert names({"type": "array"}, {"type": "object"}) == [
        "JsonCorrectnessMetric(expected_schema={'type': 'array'})",
        "JsonCorrectnessMetric(expected_schema={'type': 'object'})",
    ]
    long = {"description": "x" * 50}
    told = f"{repr(long)[:39]}…"
    assert names({}, long)[1] == f"JsonCorrectnessMetric(expected_schema={told})"
    fits = {"description": "x" * (40 - len(repr({"description": ""})))}
    assert names({}, fits)[1] == f"JsonCorrectnessMetric(expected_schema={fits})"


def test_an_item_that_no_metric_is_chosen_for_has_no_score(here, match):
    class Choosy(DatasetTest):
        def choose_annotators(self, prompt):
            return ["Match"] if prompt.context.name is None else []

    record = run_test(Choosy("mine", GOLDENS, [match()]), FunctionSUT("echo", str))
    assert record.counts.scored == 1
    (failed,) = record.test_item_exceptions
    assert "Nothing judged 'second'. Let choose_annotators choose at least one metric." in failed.message


def test_the_measurement_of_a_part_is_never_called_like_one_of_the_whole(here, match):
    class InParts(DatasetTest):
        def component(self, prompt):
            return "part"

    test = InParts("mine", GOLDENS[:1], [match(), match("part.Match")])
    record = run_test(test, FunctionSUT("echo", str))
    assert {name for name in record.result if "passed" not in name} == {"part.Match~2", "part.part.Match"}
