"""The public API as type checkers see it: checked by mypy and pyright, never run."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Unpack, assert_type

from pydantic import BaseModel

from modelgauge import (
    AcceptsChatPrompt,
    AcceptsTextPrompt,
    ChatMessage,
    ChatPrompt,
    ChatRole,
    Comparison,
    CompletionAnnotator,
    ContinuationPrompt,
    Estimate,
    FunctionSUT,
    MeasuredItems,
    MeasuredTestItem,
    PromptResponseSUT,
    PromptResponseTest,
    PromptWithContext,
    Retry,
    Score,
    ScoringFunctionSUT,
    SUTCapability,
    SUTCompletion,
    SUTOptions,
    SUTResponse,
    TestItem,
    TestItemAnnotations,
    TestRecord,
    TextPrompt,
    Usage,
    calibrate_judge,
    compare,
    plan_comparison,
    run_test,
    sample_answers,
)
from modelgauge.evals import (
    ConversationalTestCase,
    DatasetTest,
    EvaluationDataset,
    EvaluationResult,
    Golden,
    LLMTestCase,
    LLMTestCaseParams,
    MetricData,
    TestResult,
    ToolCall,
    Turn,
    assert_test,
    evaluate,
    in_this_trace,
    observe,
    update_current_span,
)
from modelgauge.metrics import (
    AnswerRelevancyMetric,
    Extract,
    GEval,
    Judge,
    JudgeMetric,
    Metric,
    MetricSettings,
    Procedure,
    Rubric,
)


class Request(BaseModel):
    text: str
    temperature: float | None = None


class Reply(BaseModel):
    text: str
    tokens: int


class Want(BaseModel):
    answer: str


# --- data ------------------------------------------------------------------------------------------------

TextPrompt("hi")
TextPrompt(text="hi", options=SUTOptions(temperature=0, stop_sequences=("x",)))
TextPrompt("hi", temperature=0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
TextPrompt(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ChatPrompt([ChatMessage(ChatRole.user, "hi"), ChatMessage(role="system", text="be brief")])
PromptWithContext("hi", source_id="1", context={"any": ["JSON"]})
TestItem("hi")
TestItem(["hi", TextPrompt("there"), PromptWithContext("you")], context=Want(answer="x"), id="1")
TestItem(prompt="hi")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
SUTCompletion("hi", metadata={"documents": []}, finish_reason="stop")
SUTResponse([SUTCompletion("hi")], usage=Usage(input_tokens=1))
Estimate(0.5, n=3, interval=(0.1, 0.9))
Score(1, reason="because")

item = TestItem("hi")
assert_type(item.prompts[0].prompt, TextPrompt | ChatPrompt | ContinuationPrompt)
assert_type(item.context_as(Want), Want)
assert_type(item.id, str | None)


comparison = compare("latest~1", Path("run_data"), alpha=0.01, allow="data", lower_is_better=["seconds"])
assert_type(comparison, Comparison)
assert_type(comparison.comparisons[0].interval, tuple[float, float] | None)
compare("a", "b", alfa=0.01)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
compare("a", "b", test="wilcoxon", allow=["data", "judge"])
compare("a", "b", test="wilcox")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
plan = plan_comparison(rate=0.7, correlation=0.5, effect=0.05)
assert_type(plan.designs[0].items, int | None)
plan_comparison("latest~1", "latest", items=500)
plan_comparison(rates=0.7)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
assert_type(sample_answers(["a", "b"], 100, seed=1), list[dict[str, str | None]])
calibration = calibrate_judge("latest", [Path("ann.csv"), Path("ben.csv")], measurement=["a", "b"])
assert_type(calibration.suts[0].scores[0].value, float | None)


# --- what authors write ----------------------------------------------------------------------------------


class MyTest(PromptResponseTest):
    requires_sut_capabilities = (AcceptsTextPrompt, AcceptsChatPrompt)
    measurement_ranges = {"right": (0, 1)}  # noqa: RUF012  as authors write it

    def __init__(self, uid: str, data: str) -> None:
        super().__init__(uid)
        self.data = data

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Iterable[TestItem]:
        yield TestItem([PromptWithContext(self.data)], context=Want(answer="x"))

    def get_annotators(self) -> Mapping[str, CompletionAnnotator[Any] | str]:
        return {"letters": Letters("letters"), "other": "some_uid"}

    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        assert_type(item.text, str)
        assert_type(item.annotation("letters", int), int)
        completion = item.interactions[0].response.completions[0]
        assert_type(completion.get_annotation("letters", Want), Want)
        assert_type(completion.completion.metadata, dict[str, Any])
        return {"right": item.text == item.test_item.context_as(Want).answer}

    def aggregate_measurements(self, items: MeasuredItems) -> Mapping[str, Any]:
        for item in items:
            assert_type(item, MeasuredTestItem)
        return {"right": items.column("right").mean()}


class MySUT(PromptResponseSUT[Request, Reply]):
    def __init__(self, uid: str, temperature: float, *, retries: int = 3) -> None:
        super().__init__(uid)
        self.temperature = temperature
        self.retries = retries

    def translate_text_prompt(self, prompt: TextPrompt) -> Request:
        return Request(text=prompt.text, temperature=prompt.options.temperature)

    def evaluate(self, request: Request) -> Reply:
        return Reply(text=request.text, tokens=1)

    def translate_response(self, request: Request, response: Reply) -> SUTResponse:
        return SUTResponse([SUTCompletion(response.text)], Usage(output_tokens=response.tokens))


class MyAsyncSUT(MySUT):
    async def evaluate(self, request: Request) -> Reply:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]  # a plain one became async
        return Reply(text=request.text, tokens=1)

    def classify_error(self, error: BaseException) -> Retry | None:
        return Retry(after=1) if isinstance(error, OSError) else None


class Async(PromptResponseSUT[Request, Reply]):
    async def evaluate(self, request: Request) -> Reply:
        return Reply(text=request.text, tokens=1)


class Letters(CompletionAnnotator[int]):
    def translate_request(self, prompt: PromptWithContext, completion: SUTCompletion) -> str:
        return completion.text

    async def annotate(self, request: str) -> str:
        response = await self.ask("judge", request)
        return response.completions[0].text

    def translate_response(self, request: str, response: str) -> int:
        return len(response)

    def get_suts(self) -> Mapping[str, PromptResponseSUT[Any, Any] | str]:
        return {"judge": "some/model"}


MySUT("mine", 0.5, retries=1)
MySUT("mine")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
MySUT("mine", "hot")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
MyTest("mine", data="x")
Letters("letters")
Letters()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


# --- running ---------------------------------------------------------------------------------------------


async def answer(text: str) -> SUTCompletion:
    return SUTCompletion(text)


FunctionSUT("upper", str.upper)
FunctionSUT("app", answer, version=1)
FunctionSUT("app", lambda text: text + "!", max_concurrency=4)
FunctionSUT("app", len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def score(prompt: ContinuationPrompt) -> list[SUTCompletion]:
    return [SUTCompletion(text, logprob=-1.0) for text in prompt.continuations]


ScoringFunctionSUT("scorer", score, version=1)
ScoringFunctionSUT("scorer", str.upper)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

record = run_test(MyTest("mine", data="x"), FunctionSUT("upper", str.upper), max_test_items=3)
assert_type(record, TestRecord)
run_test("demo_01", "demo_yes_no", 3, data_dir="data", repeats=2, requests_per_minute=0.5, offline=True)
run_test("demo_01", "demo_yes_no", repeats="2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
run_test("demo_01", "demo_yes_no", repeat=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
assert_type(record.get_result(Want), Want)


# --- metrics ---------------------------------------------------------------------------------------------


class Brevity(Metric):
    """A metric as its author writes it, with a setting of its own."""

    required_params = ("actual_output",)

    def __init__(self, uid: str | None = None, *, most: int = 50, **settings: Unpack[MetricSettings]) -> None:
        super().__init__(uid, **settings)
        self.most = most

    def score(self, test_case: LLMTestCase) -> float:
        return min(1, self.most / len((test_case.actual_output or "-").split()))


class Kindness(Metric):
    needs_judge = True
    higher_is_better = False
    best_score, worst_score = 0.0, 1.0

    async def score(self, test_case: LLMTestCase) -> Score:
        response = await self.ask("judge", f"How unkind is this, 0 to 1? {test_case.actual_output}")
        assert_type(self.sut_capabilities("judge"), frozenset[type[SUTCapability]])
        return Score(float(response.completions[0].text), reason="so it says")


class Politeness(JudgeMetric):
    required_params = ("input", "actual_output")
    procedure = Procedure(
        extract=Extract("List every sentence.", shows=("actual_output",)),
        judge=Judge("Is it polite?", shows=("input",), verdicts={"yes": 1, "partly": 0.5, "no": 0}),
        reduce=min,
        empty=1,
    )


case = LLMTestCase(
    "Hi?", "Hello.", expected_output="Hello.", retrieval_context=["a"], tools_called=[ToolCall(name="x")]
)
LLMTestCase(input="Hi?", actual_output="Hello.")
LLMTestCase("Hi?", output="Hello.")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
LLMTestCase("Hi?", retrieval_context=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

brevity = Brevity(most=20, threshold=0.7, strict_mode=True)
Brevity(treshold=0.7)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Brevity(threshold="high")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
assert_type(brevity.measure(case), Score)
assert_type(brevity.is_successful(0.5), bool | None)
Brevity(threshold=None)
assert_type(brevity.measure(case).value, float)
assert_type(brevity.measure(case) >= 0.7, bool)
Kindness(model=lambda question: "0.5")
Politeness(model=["openai/gpt-4o-mini", FunctionSUT("judge", str.upper), str.lower], combine="majority")
Politeness(model="openai/gpt-4o-mini", combine="most")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
AnswerRelevancyMetric(threshold=0.7, model=answer, include_reason=False)
AnswerRelevancyMetric(model=len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

graded = GEval(
    name="Correctness",
    criteria="Is it right?",
    evaluation_params=[LLMTestCaseParams.ACTUAL_OUTPUT, "expected_output"],
    rubric=[Rubric(score_range=(0, 4), expected_outcome="Wrong."), Rubric((5, 10), "Right.")],
    model="openai/gpt-4o-mini",
)
GEval("Correctness", evaluation_steps=["Look."], threshold=0.5)
GEval(criteria="Is it right?")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
GEval("Correctness", "Right?", rubric=["5 to 10: right"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
Rubric(score_range=(0, 1, 2), expected_outcome="x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# --- evals -----------------------------------------------------------------------------------------------

result = evaluate([case], [brevity, "exact_match"], hyperparameters={"model": "m"})
assert_type(result, EvaluationResult)
for one in result:
    assert_type(one, TestResult)
    assert_type(one.success, bool)
    assert_type(one.metrics_data, tuple[MetricData, ...])
evaluate(case, brevity)
evaluate(test_cases=case, metrics=[brevity])
evaluate("Hi?", brevity)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
evaluate([case], [len])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]

golden = Golden("Hi?", expected_output="Hello.", additional_metadata={"source": "a"})
golden.expected_output = "Hi."
Golden(question="Hi?")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
dataset = EvaluationDataset(goldens=[golden], name="greetings")
dataset.add_golden(golden)
dataset.add_test_case(case)
dataset.add_golden("Hi?")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
assert_type(len(dataset), int)
evaluate(dataset, [brevity])
ConversationalTestCase([Turn("user", "Hi?"), Turn(role="assistant", content="Hello.")], chatbot_role="a host")
Turn("system", "Hi?")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
run_test(DatasetTest("greetings", dataset, [brevity]), FunctionSUT("upper", str.upper))


@observe
def app(question: str, *, loud: bool = False) -> str:
    return question.upper() if loud else question


@observe(type="llm", metrics=[brevity], name="asked", model="m")
async def async_app(question: str) -> str:
    update_current_span(input=question, output="Hello.")
    return question


@observe(type="tool")
def words(text: str) -> Iterator[str]:
    yield from text.split()


@observe
async def async_words(text: str) -> AsyncIterator[str]:
    for word in text.split():
        yield word


class Service:
    @observe
    def reply(self, question: str) -> int:
        return len(question)


async def use_observed() -> None:
    assert_type(app("Hi?", loud=True), str)
    assert_type(await async_app("Hi?"), str)
    assert_type(words("a b"), Iterator[str])
    assert_type(async_words("a b"), AsyncIterator[str])
    assert_type(Service().reply("Hi?"), int)
    assert_type(in_this_trace(app)("Hi?"), str)
    app(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app("Hi?", quiet=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    observe("a name")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


assert_test(case, [brevity])
assert_test(test_case=case, metrics=[brevity, "exact_match"], run_async=False)
assert_test(golden=golden, observed_callback=app)
assert_test(golden=golden, observed_callback=async_app)
assert_test(case, [brevity], retries=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
