"""The metrics by their names, and the public names."""

import pytest

import modelgauge.metrics
from modelgauge.errors import InvalidOptionError
from modelgauge.metrics import Metric
from modelgauge.plugins.discovery import discover

NEEDED = {
    "g_eval": "criteria=good",
    "latency": "threshold=2",
    "cost": "threshold=2",
    "pattern_match": "pattern=a",
}


@pytest.fixture(scope="module")
def metrics():
    return discover().metrics


def test_every_public_metric_is_registered_under_its_own_uid(metrics):
    public = {getattr(modelgauge.metrics, name) for name in modelgauge.metrics.__all__}
    classes = [one for one in public if isinstance(one, type) and issubclass(one, Metric)]
    concrete = {
        cls.default_uid(): cls
        for cls in classes
        if "score" in dir(cls) and cls.__name__ not in ("Metric", "JudgeMetric")
    }
    own = [entry.uid for entry in metrics if entry.distribution == "modelgauge-framework"]
    assert sorted(concrete) == own
    for uid, cls in concrete.items():
        made = metrics.make(f"{uid}?{NEEDED[uid]}" if uid in NEEDED else uid)
        assert type(made) is cls
        assert made.name == cls.__name__


def test_settings_are_options(metrics):
    made = metrics.make("answer_relevancy?threshold=0.7&model=a,b&combine=majority&include_reason=no")
    assert (made.threshold, made.model, made.combine, made.include_reason) == (
        0.7,
        ["a", "b"],
        "majority",
        False,
    )
    assert metrics.make("contains?texts=cat,dog").texts == ("cat", "dog")
    with pytest.raises(InvalidOptionError, match="threshold"):
        metrics.make("answer_relevancy?treshold=0.7")


def test_any_metric_can_be_named_by_an_option(metrics):
    made = metrics.make("g_eval?name=Be%20kind&criteria=be kind&threshold=0.7")
    assert (made.name, made.criteria, made.threshold) == ("Be kind", "be kind", 0.7)
    assert metrics.make("exact_match?name=Same").name == "Same"
    assert metrics.make("g_eval?criteria=x").name == "GEval"
