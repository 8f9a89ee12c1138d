"""What the commands say of how sure a result is: shared answers, clusters, repeats that failed, runs that stopped."""

from pathlib import Path

import pytest

SPARE = '''
import modelgauge as mg


class Questions(mg.PromptResponseTest):
    """40 items of 10 questions, in four texts, sorted by whether the answer is right."""

    def make_test_items(self, dependencies):
        for number in range(40):
            yield mg.TestItem([f"q {number // 4}"], context={"text": number % 4, "number": number})

    def measure_quality(self, item):
        return {"accuracy": item.text == "yes"}


class Lengths(Questions):
    def measure_quality(self, item):
        if item.context["number"] == 7:
            raise ValueError("no length")
        return {"length": len(item.text)}


FAILED = set()


def flaky(text):
    number = int(text.split()[-1])
    if number < 3 and number not in FAILED:
        FAILED.add(number)
        raise ValueError("the line is dead")
    return "yes" if number < 6 else "no"


def steady(text):
    return "yes" if int(text.split()[-1]) < 6 else "no"


@mg.hookimpl
def modelgauge_register_tests(register):
    register("questions", Questions)
    register("lengths", Lengths)


@mg.hookimpl
def modelgauge_register_suts(register):
    register("steady", mg.FunctionSUT, steady, version=1)
    register("flaky", mg.FunctionSUT, flaky)
'''


@pytest.fixture
def told(run, here, monkeypatch):
    """Run a test as on a terminal of 80 columns."""
    (here / "spare.py").write_text(SPARE, encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "80")

    def told(*args, test="questions", sut="steady", command="run-test", plugin="spare.py"):
        ended = run(command, "--plugin", plugin, "--test", test, "--sut", sut, *args, plugin=False)
        ended.text = " ".join(ended.out.split())
        return ended

    return told


def test_items_of_equal_prompts_are_told(told):
    ended = told()
    assert "40 items, 10 distinct prompts" in ended.out
    record = told("--json").json["records"][0]
    assert (record["prompts"], record["distinct_prompts"]) == (40, 10)
    assert record["result"]["accuracy"]["n_clusters"] == 10


def test_a_field_makes_clusters(told):
    record = told("--cluster", "text", "--json").json["records"][0]
    assert record["result"]["accuracy"]["n_clusters"] == 1  # each text has every question
    ended = told("--cluster", "texts")
    assert (ended.code, ended.out) == (2, "")
    assert "Did you mean 'text'? The fields of a context are: 'text', 'number'." in ended.err


def test_a_column_of_a_data_set_makes_clusters(run_dataset, datasets):
    rows = "".join(f"q{n},q{n},{'ab'[n % 2]}\n" for n in range(6))
    (datasets / "texts.csv").write_text(f"input,expected_output,text\n{rows}", encoding="utf-8")
    record = run_dataset("--dataset", "texts.csv", "--cluster", "text", "--json").json["records"][0]
    assert record["result"]["passed"]["n_clusters"] == 2
    wrong = run_dataset("--dataset", "texts.csv", "--cluster", "tex")
    assert wrong.code == 2
    assert "Did you mean 'text'?" in wrong.err


def test_a_reduction_stands_in_the_name(told):
    ended = told("--repeats", "5", "--reduce", "pass@2")
    assert "accuracy, pass@2 of 5" in ended.out
    assert list(told("--repeats", "5", "--reduce", "pass@2", "--json").json["records"][0]["result"]) == [
        "accuracy.pass@2"
    ]
    assert "accuracy  " in told("--repeats", "5").out


def test_a_sample_is_told(told):
    assert "10 of 40, seed 7: 10 scored" in told("-m", "10", "--seed", "7").text


def test_failed_repeats_are_told_and_allowed_like_failed_items(told, run):
    ended = told("--repeats", "2", "--max-retries", "0", "--concurrency", "1", sut="flaky")
    assert ended.code == 3
    assert "40 scored, 3 of them in part (3 failed repeats), 0 failed" in ended.text
    assert "3 x SUT flaky: ValueError: the line is dead" in ended.text
    assert "worst to best" in ended.out
    assert "0 of 40 items and 3 repeats of others failed" in ended.err
    for allowed, code in [("2", 3), ("3", 0), ("3.7%", 3), ("3.75%", 0)]:
        again = told(
            "--repeats", "2", "--max-retries", "0", "--concurrency", "1", "--max-errors", allowed,
            "--no-caching", sut="flaky", plugin=_copy(allowed),
        )  # fmt: skip
        assert again.code == code
    name = ended.text.split("modelgauge show ")[1].split()[0]
    shown = run("show", name, "--failures", plugin=False)
    assert "FAILED at sut (flaky) (repeat 1): ValueError: the line is dead" in shown.out
    assert "3 failed items, 1 kind of failure." in shown.out
    held = run("show", name, "--failures", "--json", plugin=False).json["records"][0]
    assert [one["failed_repeats"][0]["repeat"] for one in held["test_item_records"]] == [0, 0, 0]


def _copy(name):
    """The plugin under another name: its SUT fails anew."""
    file = f"spare{name.replace('.', '_').rstrip('%')}.py"
    Path(file).write_text(SPARE, encoding="utf-8")
    return file


def test_a_stopped_run_warns_that_its_items_are_the_first(told):
    stopped = told("--max-calls", "5", "--concurrency", "1")
    assert stopped.code == 4
    assert "The run was stopped: its results are of the items that came first" in stopped.text
    assert "came first" not in told().text


def test_bounds_that_nobody_knows_are_told(told):
    ended = told("--max-errors", "1", test="lengths")
    assert "worst to best" in ended.out
    assert "bounds not known" in ended.out
