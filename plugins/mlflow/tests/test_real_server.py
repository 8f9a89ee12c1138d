"""A run on a real MLflow server, from its first items to its last. One test: the server takes a while to start."""

import json
from urllib.request import Request, urlopen

import pytest

from modelgauge import FunctionSUT, PromptResponseTest, TestItem, resume, run_test
from modelgauge.config.secrets import SecretStore
from modelgauge.config.settings import Settings
from modelgauge_mlflow.sending import send

SECRET = "sk-1234567890abcdef"


class Sums(PromptResponseTest):
    """Its measurements and its argument have names that MLflow refuses."""

    def __init__(self, uid, a_size=3):
        super().__init__(uid)

    def make_test_items(self, dependencies):
        for number in range(6):
            yield TestItem(f"{number} + {number} = ?", context=str(2 * number))

    def measure_quality(self, item):
        right = item.text == item.context
        return {
            "right": right,
            "right/wholly: 100 %?": right,
            "right/wholly: 100 %!": right,
            "x" * 300: right,
        }


def answer(text):
    if text.startswith("5"):
        raise ValueError("That is too much.")
    return "2"


def sent_runs(address, run_id):
    """What the server knows of a run."""
    asked = {"experiment_ids": ["1"], "filter": f"tags.`modelgauge.run_id` = '{run_id}'"}
    return post(address, "runs/search", asked).get("runs", [])


def post(address, call, body):
    request = Request(
        f"{address}/api/2.0/mlflow/{call}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urlopen(request) as answered:
        return json.load(answered)


def file_of(address, run, name):
    place = run["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/")
    with urlopen(f"{address}/api/2.0/mlflow-artifacts/artifacts/{place}/{name}") as answered:
        return answered.read()


def values(run, kind):
    return {one["key"]: one["value"] for one in run["data"][kind]}


def test_a_run_is_one_run_of_mlflow_from_its_beginning_to_its_end(mlflow):
    settings = Settings(of_plugins={"mlflow": {"send": True, "tracking_uri": mlflow}})
    secrets = SecretStore(env={})
    secrets.redactor.add("openai.api_key", SECRET)
    test, sut = Sums("sums", a_size=4), FunctionSUT("two", answer, version=1)
    options = {
        "settings": settings,
        "secrets": secrets,
        "max_retries": 0,
        "concurrency": 1,
        "hyperparameters": {"note": f"the key is {SECRET}", "temperature (C°)": 0.5},
    }
    record = run_test(test, sut, max_calls=2, **options)
    assert record.failure is not None

    [told] = sent_runs(mlflow, record.run_id)
    first = told["info"]["run_id"]
    assert told["info"]["status"] == "FAILED"
    assert told["info"]["run_name"] == "sums on two"
    assert values(told, "tags")["modelgauge.state"] == "stopped"
    assert values(told, "metrics")["run.scored"] == record.counts.scored

    [record] = resume(record.run_id, test=test, sut=sut, max_calls=100, settings=settings, secrets=secrets)
    [told] = sent_runs(mlflow, record.run_id)
    assert told["info"]["run_id"] == first
    assert told["info"]["status"] == "FINISHED"
    assert values(told, "tags").items() >= {"modelgauge.state": "finished", "modelgauge.why": ""}.items()
    assert (
        values(told, "params").items() >= {"test_uid": "sums", "sut_uid": "two", "test.a_size": "4"}.items()
    )
    assert values(told, "params")["hyperparameters.temperature _C__"] == "0.5"
    measured = values(told, "metrics")
    assert (measured["run.scored"], measured["run.failed"]) == (5, 1)
    assert measured["right"] == pytest.approx(0.2)
    assert measured["right.n"] == 5
    assert measured["right.low"] == pytest.approx(record.result["right"].interval[0])
    assert {"right_wholly_ 100 __", "right_wholly_ 100 ___2", "x" * 250} <= measured.keys()
    assert file_of(mlflow, told, "record.json") == (record.folder / "record.json").read_bytes()
    assert SECRET not in json.dumps(told) + file_of(mlflow, told, "record.json").decode()

    page = send(record, {"tracking_uri": mlflow, "items": True})  # once more, with the items
    assert page == f"{mlflow}/#/experiments/1/runs/{first}"
    [again] = sent_runs(mlflow, record.run_id)
    assert again["data"]["metrics"] == told["data"]["metrics"]
    assert file_of(mlflow, again, "items.jsonl") == (record.folder / "items.jsonl").read_bytes()

    other = run_test(test, sut, **options)  # in the same experiment
    assert len(sent_runs(mlflow, other.run_id)) == 1
