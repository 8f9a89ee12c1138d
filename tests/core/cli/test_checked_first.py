"""Thresholds, gates and data that do not fit are refused before anything is paid, or noted in the record."""

import pytest

PLUGIN = """
import pathlib

import modelgauge as mg


class Rated(mg.PromptResponseTest):
    measurement_ranges = {"accuracy": (0, 1), "words": (0, float("inf")), "rouge1": (0, 1)}

    def make_test_items(self, dependencies):
        yield mg.TestItem("one", context=1, id="one")
        yield mg.TestItem("two", context=1, id="two")

    def measure_quality(self, item):
        return {"accuracy": 0.5, "words": 3, "rouge1": 0.5, "rouge2": 0.4}


class Own(Rated):
    def aggregate_measurements(self, items):
        return {"accuracy": 50}


class WithData(Rated):
    def get_dependencies(self):
        return {"questions": mg.LocalData(pathlib.Path("questions.txt"), sha256="0" * 64)}


def answer(text):
    with pathlib.Path("asked.txt").open("a") as file:
        file.write("asked")
    return "yes"


@mg.hookimpl
def modelgauge_register_tests(register):
    for test in (Rated, Own, WithData):
        register(test.__name__.lower(), test)


@mg.hookimpl
def modelgauge_register_suts(register):
    register("app", mg.FunctionSUT, answer, version=1)
"""


@pytest.fixture
def measure(run, here):
    """Run a test, whose SUT counts its calls in a file."""
    (here / "rated.py").write_text(PLUGIN, encoding="utf-8")

    def measure(*args, test="rated"):
        (here / "asked.txt").unlink(missing_ok=True)
        given = ("--plugin", "rated.py", "--test", test, "--sut", "app", "--no-caching", "--no-progress-bar")
        ended = run("run-test", *given, *args, plugin=False)
        return ended, (here / "asked.txt").exists()

    return measure


@pytest.mark.parametrize(
    ("threshold", "why"),
    [
        ("acuracy=0.5", "There is no result 'acuracy' for the threshold."),
        ("accuracy.passed=0.5", "There is no result 'accuracy.passed' for the threshold."),
        (
            "accuracy=50",
            "'accuracy=50' is outside the declared range of 'accuracy', which is at least 0 and at most 1.",
        ),
        ("words=-1", "'words=-1' is outside the declared range of 'words', which is at least 0."),
    ],
)
def test_threshold_that_a_test_cannot_have_is_refused_before_a_call(measure, threshold, why):
    ended, asked = measure("--threshold", threshold)
    assert (ended.code, asked) == (2, False)
    assert why in " ".join(ended.err.split())


@pytest.mark.parametrize(
    ("threshold", "test"), [("rouge2=0.3", "rated"), ("words=1000", "rated"), ("accuracy=40", "own")]
)
def test_threshold_that_a_test_may_have_is_not_refused(measure, threshold, test):
    ended, asked = measure("--threshold", threshold, test=test)
    assert (ended.code, asked) == (1 if threshold == "words=1000" else 0, True)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--fail-if", "acuracy<0.5"), "There is no 'acuracy' for the condition"),
        (("--fail-if", "accuracy<50"), "is outside the declared range of 'accuracy'"),
        (
            ("--require-not-worse", "2", "--measurement", "accuracy"),
            "margin is 2, and 'accuracy' goes from 0 to 1",
        ),
        (("--measurement", "acuracy"), "There is no 'acuracy' in the baseline's runs"),
        (("--lower-is-better", "word"), "There is no 'word' in the baseline's runs"),
    ],
)
def test_gate_that_does_not_fit_the_baseline_is_refused_before_a_call(measure, given, why):
    assert measure()[1]
    ended, asked = measure("--baseline", "latest", *given)
    assert (ended.code, asked) == (2, False)
    assert why in " ".join(ended.err.split())
    fits = "--fail-if", "accuracy<0.4", "--measurement", "accuracy"
    assert measure("--baseline", "latest", *fits)[0].code == 0


def test_data_of_another_digest_is_noted_in_summary_and_on_page(measure, here):
    (here / "mine.txt").write_text("other questions", encoding="utf-8")
    ended, _ = measure("--dependency", "questions=mine.txt", test="withdata")
    assert ended.code == 0
    note = "The data 'questions' was given by the user and is not what the test declares: its digest is"
    assert note in " ".join(ended.out.split())
    (page,) = (here / "run_data" / "runs").glob("*/report.html")
    assert "was given by the user and is not what the test declares" in page.read_text(encoding="utf-8")
