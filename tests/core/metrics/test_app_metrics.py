"""JSON, latency and cost."""

import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from pydantic import BaseModel, RootModel

from modelgauge import FunctionSUT, PromptResponseSUT, SUTCompletion, SUTResponse, Usage, rescore, run_test
from modelgauge.errors import ArgumentError, InvalidDataError, InvalidOptionError
from modelgauge.evals import DatasetTest, Golden, LLMTestCase, evaluate, observe, update_current_trace
from modelgauge.metrics import CostMetric, JsonCorrectnessMetric, LatencyMetric


class Person(BaseModel):
    """A schema."""

    name: str
    age: int = 0


class People(RootModel[list[Person]]):
    """A schema of a list."""


SCHEMA = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "output", "value"),
    [
        (Person, '{"name": "Ada", "age": 36}', 1),
        (Person, '{"name": null}', 0),
        (Person, "{'name': 'Ada'}", 0),
        (Person, "", 0),
        (People, '[{"name": "Ada"}]', 1),
        (People, '{"name": "Ada"}', 0),
        (list[int], "[1, 2]", 1),
        (list[int], '[1, "b"]', 0),
        (SCHEMA, '{"name": "Ada"}', 1),
        (SCHEMA, '{"name": 3}', 0),
        (None, "[1, {}]", 1),
        (None, "NaN", 0),
        (None, "Here you are: {}", 0),
    ],
)
def test_json_correctness(schema, output, value):
    score = JsonCorrectnessMetric(expected_schema=schema).measure(LLMTestCase("?", output))
    assert score.value == value


def test_no_judge_is_looked_for_where_none_is_asked():
    metric = JsonCorrectnessMetric(model="nobody/registered-this", include_reason=True)
    assert metric.get_suts() == {}
    assert metric.measure(LLMTestCase("?", "{}")) == 1


def test_the_reason_says_where_it_does_not_fit():
    for schema in (Person, SCHEMA):
        score = JsonCorrectnessMetric(expected_schema=schema).measure(LLMTestCase("?", '{"name": 3}'))
        assert "name" in score.reason


@pytest.mark.parametrize("schema", [{"type": "nothing"}, 3])
def test_what_is_no_schema(schema):
    with pytest.raises(InvalidOptionError, match="schema"):
        JsonCorrectnessMetric(expected_schema=schema)


REFERRING = {
    "$defs": {"row": {"type": "object", "required": ["name"]}, "rows": {"items": {"$ref": "#/$defs/row"}}},
    "$ref": "#/$defs/rows",
}


def test_a_schema_may_refer_to_its_own_parts_and_to_the_specifications():
    judged = JsonCorrectnessMetric(expected_schema=REFERRING)
    assert judged.measure(LLMTestCase("?", '[{"name": 1}]')).value == 1
    assert judged.measure(LLMTestCase("?", '[{"age": 1}]')).value == 0
    a_schema = JsonCorrectnessMetric(expected_schema={"$ref": "https://json-schema.org/draft/2020-12/schema"})
    assert a_schema.measure(LLMTestCase("?", '{"type": "object"}')).value == 1
    assert a_schema.measure(LLMTestCase("?", '{"type": 3}')).value == 0


def test_what_a_schema_refers_to_is_never_fetched():
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(404)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            elsewhere = f"http://127.0.0.1:{server.server_port}/schema.json"
            for schema in ({"$ref": elsewhere}, {"items": {"properties": {"a": {"$ref": elsewhere}}}}):
                with pytest.raises(InvalidOptionError, match=r"refers to 'http.*, which is not in it"):
                    JsonCorrectnessMetric(expected_schema=schema)
        finally:
            server.shutdown()
            thread.join()
    assert not asked


def test_a_reference_to_a_part_that_is_missing():
    with pytest.raises(InvalidOptionError, match=r"refers to '#/\$defs/row', which is not in it"):
        JsonCorrectnessMetric(expected_schema={"items": {"$ref": "#/$defs/row"}})


@pytest.mark.parametrize("metric", [LatencyMetric, CostMetric])
def test_no_amount_is_below_zero(metric):
    with pytest.raises(InvalidOptionError, match=r"its scores are 0 or more\."):
        metric(threshold=-1)


@pytest.mark.parametrize(
    ("metric", "field"), [(LatencyMetric, "completion_time"), (CostMetric, "token_cost")]
)
def test_latency_and_cost(metric, field):
    limited = metric(threshold=1.5)
    score = limited.measure(LLMTestCase("?", **{field: 1.5}))
    assert score.value == 1.5
    assert limited.is_successful(score)
    assert not limited.is_successful(1.51)
    assert limited.missing_params(LLMTestCase("?")) == [field]
    with pytest.raises(InvalidOptionError, match="threshold"):
        metric()
    with pytest.raises(InvalidOptionError, match="strict"):
        metric(threshold=1, strict_mode=True)


@pytest.mark.parametrize("schema", ["object", 5, "list[int]"])
def test_what_is_no_schema_is_told_without_pydantics_own_words(schema):
    with pytest.raises(InvalidOptionError, match=r"is not a schema\. Give a pydantic model") as caught:
        JsonCorrectnessMetric(expected_schema=schema)
    assert "pydantic.dev" not in str(caught.value)


class Priced(PromptResponseSUT):
    """Says what its calls cost; each completion may say it itself."""

    def __init__(self, uid, *said):
        super().__init__(uid)
        self.said = said

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        return request

    def translate_response(self, request, response):
        metadata = [{} if cost is None else {"token_cost": cost} for cost in self.said]
        return SUTResponse([SUTCompletion(response, metadata=one) for one in metadata], Usage(cost_usd=0.5))


@pytest.mark.parametrize(
    ("said", "cost"), [((None,), 0.5), ((0.125,), 0.125), ((None, None), 0.25), ((None, 0.75), 0.5)]
)
def test_the_cost_of_a_call_is_what_the_sut_says(tmp_path, said, cost):
    test = DatasetTest("t", [Golden("a")], [CostMetric(threshold=0.3)])
    record = run_test(test, Priced("priced", *said), data_dir=tmp_path)
    assert record.result["CostMetric"].value == cost
    (again,) = rescore(record.run_id, tmp_path, test=test)
    assert again.result["CostMetric"].value == cost


def test_a_sut_that_says_nothing_of_time_is_told_how(tmp_path):
    test = DatasetTest("t", [Golden("a")], [LatencyMetric(threshold=1)])
    record = run_test(test, Priced("priced", None), data_dir=tmp_path)
    (failed,) = record.test_item_exceptions
    assert 'SUTCompletion(text, metadata={"completion_time": …})' in failed.message
    assert "decorate it with @observe" in failed.message


def test_the_time_of_an_observed_function_is_kept_with_its_answer(tmp_path):
    calls = []

    @observe
    def app(question):
        calls.append(question)
        time.sleep(0.05)
        return "answer"

    test = DatasetTest("t", [Golden("a")], [LatencyMetric(threshold=5)])
    sut = FunctionSUT("app", app, version=1)
    first, again = (run_test(test, sut, data_dir=tmp_path).result["LatencyMetric"].value for _ in range(2))
    assert calls == ["a"]
    assert 0.05 <= first == again  # what comes from the cache took as long as when it was paid


def test_the_time_of_an_observed_app_is_known_unless_it_says_another(tmp_path):
    @observe
    def app(question):
        if question == "said":
            update_current_trace(completion_time=3.0)
        return "answer"

    metric = LatencyMetric(threshold=2)
    goldens = [Golden("measured"), Golden("said")]
    result = evaluate(
        goldens=goldens, observed_callback=app, metrics=[metric], data_dir=tmp_path, print_results=False
    )
    measured, said = (one.metrics_data[0].score for one in result)
    assert 0 < measured < 2
    assert said == 3


def test_a_misspelt_threshold_is_not_a_missing_one():
    with pytest.raises(ArgumentError, match=r"no argument 'treshold'\. Did you mean 'threshold'"):
        LatencyMetric(treshold=2)


@pytest.mark.parametrize("output", ["[" * 900 + "]" * 900, "1" * 5000, '{"a": ' + "7" * 5000 + "}"])
def test_json_beyond_the_limits_of_the_parser_has_no_score(output):
    with pytest.raises(InvalidDataError, match="cannot read the output, which may be JSON"):
        JsonCorrectnessMetric().measure(LLMTestCase("?", output))
