"""JSON, latency and cost."""

import pytest
from pydantic import BaseModel, RootModel

from modelgauge.errors import InvalidOptionError
from modelgauge.evals import LLMTestCase
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
