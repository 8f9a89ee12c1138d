"""What MLflow is told of a run, and by which names."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge import Estimate, FunctionSUT, PromptResponseTest, SUTOptions, TestItem, run_test
from modelgauge_mlflow.contents import LONGEST_NAME, LONGEST_TEXT, metrics, named, parameters, tags


class Sums(PromptResponseTest):
    def __init__(self, uid, size=3):
        super().__init__(uid)
        self.size = size

    def make_test_items(self, dependencies):
        for number in range(self.size):
            yield TestItem(f"{number} + {number} = ?", context=str(2 * number))

    def measure_quality(self, item):
        return {"right": item.text == item.context}


def record_of(answer="2", **options):
    return run_test(Sums("sums", size=4), FunctionSUT("two", lambda _: answer, version=1), **options)


def test_parameters_are_what_the_run_was_made_with():
    record = record_of(
        hyperparameters={"top_k": 3, "prompt": {"text": "Add.", "version": [1, 2]}},
        sut_options=SUTOptions(temperature=0.5),
        identifier="a try",
        max_test_items=2,
    )
    told = parameters(record)
    assert (
        told.items()
        >= {
            "test_uid": "sums",
            "sut_uid": "two",
            "test.size": "4",
            "sut_options.temperature": "0.5",
            "hyperparameters.top_k": "3",
            "hyperparameters.prompt.text": "Add.",
            "hyperparameters.prompt.version": "[1, 2]",
            "identifier": "a try",
            "sample.size": "2",
            "sample.total": "4",
            "repeats": "1",
        }.items()
    )
    assert "reduction" not in told


def test_metrics_are_results_with_their_uncertainty_and_what_the_run_took():
    record = record_of()
    found = record.result["right"]
    assert metrics(record) == {
        "right": 0.25,
        "right.stderr": found.stderr,
        "right.low": found.interval[0],
        "right.high": found.interval[1],
        "right.n": 4,
        "run.items": 4,
        "run.scored": 4,
        "run.failed": 0,
        "run.calls_paid": 4,
        "run.calls_cached": 0,
        "run.seconds": record.seconds,
        "run.attempts": 4,
        "run.tokens": 0,
        "run.forward_passes": 0,
        "run.cost_usd": 0,
    }


def test_what_is_not_known_or_no_number_is_left_out():
    result = {"group": {"a": Estimate(1.0, 1), "b": 2}, "odd": float("nan"), "endless": float("inf")}
    told = metrics(record_of().replaced(result=result, seconds=None, spent=None))
    assert told.items() >= {"group.a": 1.0, "group.a.n": 1, "group.b": 2, "run.items": 4}.items()
    assert not {"group.a.stderr", "group.a.low", "odd", "endless", "run.seconds", "run.tokens"} & set(told)


def test_tags_say_how_a_run_ended():
    record = record_of(max_calls=2, concurrency=1)
    assert tags(record).items() >= {"modelgauge.run_id": record.run_id, "modelgauge.state": "stopped"}.items()
    assert "max-calls" in tags(record)["modelgauge.why"]
    assert tags(record_of())["modelgauge.state"] == "finished"
    assert tags(record_of().replaced(cancelled=True))["modelgauge.state"] == "interrupted"


def test_long_texts_are_cut():
    told = parameters(record_of(hyperparameters={"prompt": "x" * 9999}))["hyperparameters.prompt"]
    assert len(told) == LONGEST_TEXT
    assert told.endswith("x...")


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("accuracy", "accuracy"),
        ("accuracy.pass@2", "accuracy.pass_2"),
        ("précision", "précision"),
        ("a/b//c:d", "a_b__c_d"),
        ("..", "_."),
        ("", "_"),
        ("a\nb", "a_b"),
    ],
)
def test_names_that_mlflow_refuses(name, plain):
    assert named([(name, 1)]) == {plain: 1}


@given(st.lists(st.text() | st.just("x" * 300), max_size=20, unique=True))
def test_each_value_has_a_name_of_its_own_that_mlflow_takes(names):
    told = named((name, place) for place, name in enumerate(names))
    assert list(told.values()) == list(range(len(names)))
    for name in told:  # as mlflow.utils.validation has it
        assert re.fullmatch(r"[/\w.\- ]+", name)
        assert len(name) <= LONGEST_NAME
        assert not name.startswith("..")
        assert name != "."
