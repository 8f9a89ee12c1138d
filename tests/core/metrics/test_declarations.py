"""Further metrics that others know, each a declaration of a few lines, with scores worked out by hand."""

import json
from pathlib import Path

import pytest
from judge_scripts import items_in, verdicts

from modelgauge.errors import DefinitionError, InvalidResponseError
from modelgauge.evals import ConversationalTestCase, LLMTestCase, ToolCall, Turn
from modelgauge.metrics import Combination, Extract, Judge, JudgeMetric, Procedure
from modelgauge.metrics.judge_base import take_texts
from modelgauge.stats.exact import exact_mean


def of_contexts(words="Is it true?", **changes):
    """A procedure whose items are the contexts."""
    return Procedure(take_texts("context"), Judge(words, **changes))


class BiasMetric(JudgeMetric):
    """The share of the opinions in the output that are biased (deepeval.com/docs/metrics-bias)."""

    required_params = ("actual_output",)
    higher_is_better = False
    best_score, worst_score = 0.0, 1.0
    procedure = Procedure(
        extract=Extract("List the opinions in the actual_output.", shows=("actual_output",)),
        judge=Judge("Is the opinion biased?", verdicts={"yes": 1, "no": 0}),
        empty=0,
    )


class SummarizationMetric(JudgeMetric):
    """The lesser of alignment and coverage (deepeval.com/docs/metrics-summarization)."""

    required_params = ("input", "actual_output")
    procedure = Combination(
        {
            "alignment": Procedure(
                extract=Extract("List the claims of the actual_output.", shows=("actual_output",)),
                judge=Judge(
                    "Does the input say so?", shows=("input",), verdicts={"yes": 1, "no": 0, "idk": 0}
                ),
            ),
            "coverage": Procedure(
                extract=Extract(
                    "Write $n questions that the input answers with yes.", ("input",), settings=("n",)
                ),
                judge=Judge("Does the actual_output answer it with yes?", shows=("actual_output",)),
            ),
        }
    )

    def __init__(self, uid=None, *, n=5, **settings):
        super().__init__(uid, **settings)
        self.n = n


class PromptAlignmentMetric(JudgeMetric):
    """The share of given instructions that the output follows (deepeval.com/docs/metrics-prompt-alignment)."""

    required_params = ("input", "actual_output")
    procedure = Procedure(
        extract=lambda metric, case: metric.prompt_instructions,
        judge=Judge("Does the actual_output follow the item?", shows=("input", "actual_output")),
    )

    def __init__(self, uid=None, *, prompt_instructions, **settings):
        super().__init__(uid, **settings)
        self.prompt_instructions = prompt_instructions


class MisuseMetric(JudgeMetric):
    """The share of the output that has nothing to do with a domain (deepeval.com/docs/metrics-misuse)."""

    required_params = ("actual_output",)
    higher_is_better = False
    best_score, worst_score = 0.0, 1.0
    procedure = Procedure(
        extract=Extract(
            "List what a chatbot for $domain should not say. It costs $$5.", ("actual_output",), ("domain",)
        ),
        judge=Judge("Is this beside $domain?", settings=("domain",)),
        empty=0,
    )

    def __init__(self, uid=None, *, domain, **settings):
        super().__init__(uid, **settings)
        self.domain = domain


class ConversationCompletenessMetric(JudgeMetric):
    """The share of the user's intentions that are met (deepeval.com/docs/metrics-conversation-completeness)."""

    test_case_type = ConversationalTestCase
    required_params = ("turns",)
    procedure = Procedure(
        extract=Extract("List what the user wants in the turns.", shows=("turns",)),
        judge=Judge("Is it met in the turns?", shows=("turns",)),
    )


class ArgumentCorrectnessMetric(JudgeMetric):
    """The share of tool calls with fitting arguments (deepeval.com/docs/metrics-argument-correctness)."""

    required_params = ("input", "tools_called")
    procedure = Procedure(
        extract=take_texts("tools_called"), judge=Judge("Do the arguments fit the input?", shows=("input",))
    )


class Steps:
    """A judge that lists what a case says for certain instructions, and gives each item the verdict it says."""

    def __init__(self, listed, said):
        self.listed, self.said = listed, said
        self.asked = []

    def __call__(self, question):
        self.asked.append(question)
        for words, statements in self.listed.items():
            if question.startswith(words):
                return json.dumps({"statements": statements})
        return verdicts(*(self.said[item] for item in items_in(question)))


CASE = LLMTestCase("A long text.", "A summary.")


@pytest.mark.parametrize(("said", "value"), [(["yes", "no", "no", "no"], 1 / 4), ([], 0), (["yes"], 1)])
def test_bias(said, value):
    opinions = {f"opinion {place}": word for place, word in enumerate(said)}
    metric = BiasMetric(model=Steps({"List": list(opinions)}, opinions), threshold=0.3)
    score = metric.measure(CASE)
    assert score.value == value
    assert metric.is_successful(score) == (value <= 0.3)


SAID = {"claim 1": "yes", "claim 2": "idk", "question 1": "yes", "question 2": "yes", "question 3": "no"}
LISTED = {"List": ["claim 1", "claim 2"], "Write 3": ["question 1", "question 2", "question 3"]}


def test_summarization_is_the_lesser_of_two_scores():
    judge = Steps(LISTED, SAID)
    score = SummarizationMetric(model=judge, n=3).measure(CASE)
    assert score.value == 1 / 2
    assert {name: part["score"] for name, part in score.breakdown.items()} == {
        "alignment": 1 / 2,
        "coverage": pytest.approx(2 / 3),
    }
    assert [one["item"] for one in score.breakdown["coverage"]["items"]] == LISTED["Write 3"]
    assert score.reason.splitlines() == [
        "alignment (0.5): Of 2: 1 yes, 1 idk.",
        "2: it is idk",
        "coverage (0.666667): Of 3: 2 yes, 1 no.",
        "3: it is no",
    ]
    assert len(judge.asked) == 4


def test_scores_are_combined_by_any_function():
    class Mean(SummarizationMetric):
        procedure = Combination(SummarizationMetric.procedure.parts, reduce=exact_mean)

    assert Mean(model=Steps(LISTED, SAID), n=3).measure(CASE).value == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_a_part_without_a_score_leaves_the_whole_without():
    judge = Steps({**LISTED, "Write 3": ["question 4"]}, {**SAID, "question 4": "perhaps"})
    with pytest.raises(InvalidResponseError):
        SummarizationMetric(model=judge, n=3).measure(CASE)


def test_several_judges_of_a_combination():
    worse = {**SAID, "claim 1": "no", "claim 2": "no"}
    judges = [Steps(LISTED, SAID), Steps(LISTED, worse)]
    assert SummarizationMetric(model=judges, n=3).measure(CASE).value == (1 / 2 + 0) / 2


def test_prompt_alignment():
    said = {"Be brief.": "yes", "Rhyme.": "no"}
    assert (
        PromptAlignmentMetric(model=Steps({}, said), prompt_instructions=list(said)).measure(CASE).value
        == 1 / 2
    )


def test_settings_stand_in_the_instructions():
    judge = Steps({"List": ["a", "b"]}, {"a": "yes", "b": "no"})
    case = LLMTestCase("?", "Ask $domain about ${domain}.")
    assert MisuseMetric(model=judge, domain="banks").measure(case).value == 1 / 2
    assert judge.asked[0].startswith("List what a chatbot for banks should not say. It costs $5.")
    assert "Ask $domain about ${domain}." in judge.asked[0]  # what a case says is no instruction
    assert judge.asked[1].startswith("Is this beside banks?")


def test_conversation_completeness():
    judge = Steps({"List": ["a", "b", "c"]}, {"a": "yes", "b": "no", "c": "yes"})
    case = ConversationalTestCase([Turn("user", "Hi?"), Turn("assistant", "Hello.")])
    assert ConversationCompletenessMetric(model=judge).measure(case).value == pytest.approx(2 / 3)
    assert '"content": "Hello."' in judge.asked[1]


def test_items_that_are_no_texts():
    calls = [ToolCall(name="search", input={"q": "Oslo"}), ToolCall(name="send")]
    texts = ['{"input_parameters": {"q": "Oslo"}, "name": "search"}', '{"name": "send"}']
    judge = Steps({}, dict(zip(texts, ["yes", "no"], strict=True)))
    score = ArgumentCorrectnessMetric(model=judge).measure(LLMTestCase("?", "!", tools_called=calls))
    assert score.value == 1 / 2
    assert [one["item"] for one in score.breakdown["items"]] == texts


# --- mistakes in declarations -------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [{}, {"Yes": 1}, {"yes ": 1}, {"": 1}])
def test_verdicts_that_no_reply_can_give(words):
    with pytest.raises(DefinitionError, match="small letters"):
        Judge("Judge.", verdicts=words)


def test_a_judge_metric_without_a_procedure():
    class Undeclared(JudgeMetric):
        pass

    with pytest.raises(DefinitionError, match=r"Undeclared has no procedure.*extract=…"):
        Undeclared()


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ("true?", "is 'true\\?'"),
        (Combination({}), "one or more"),
        (Combination({"a": Combination({})}), "one or more"),
        (of_contexts(shows="input"), "shows=\\('input',\\)"),
        (of_contexts(shows=("inputt",)), "Did you mean 'input'"),
        (of_contexts(settings="domain"), "settings=\\('domain',\\)"),
        (of_contexts(settings=("country",)), "self.country"),
        (of_contexts("In $country?", settings=("domain",)), "\\$country that names none"),
        (of_contexts("$5 in $domain?", settings=("domain",)), "Write \\$\\$"),
        (of_contexts(Path("nowhere.md")), "nowhere.md"),
        (Combination({"a": of_contexts(), "b": of_contexts(shows=("x",))}), "shows of .* names 'x'"),
    ],
)
def test_a_declaration_that_works_for_no_case_is_refused_before_any_call(declared, told):
    class Declared(JudgeMetric):
        domain = "law"
        procedure = declared

    with pytest.raises(DefinitionError, match=told):
        Declared()


def test_a_dollar_is_a_dollar_where_there_are_no_settings(scripted):
    class Dear(JudgeMetric):
        required_params = ("context",)
        procedure = of_contexts("Is it above $5?")

    judge = scripted(verdicts("yes"))
    assert Dear(model=judge).measure(LLMTestCase("?", "!", context=["$7"])).value == 1
