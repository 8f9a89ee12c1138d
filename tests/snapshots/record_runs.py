"""Record the runs that the snapshots show: python tests/snapshots/record_runs.py FOLDER

The runs are recorded once and kept. Recording again changes ids and times, and so all snapshots.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TESTS = '''
import os

import pytest
from modelgauge.evals import LLMTestCase, assert_test, observe, update_current_span
from modelgauge.metrics import Metric, ContainsMetric, ExactMatchMetric, TokenF1Metric


class Crash(Metric):
    def score(self, test_case):
        raise RuntimeError("the judge is down")


@pytest.mark.parametrize("number", range(4))
def test_contains(number):
    """Passes for the first numbers."""
    answer = f"answer {number}" if number < int(os.environ["GOOD"]) else "x"
    case = LLMTestCase(f"Question {number}?", answer, expected_output="answer", name=f"q{number}")
    assert_test(case, [ContainsMetric(), TokenF1Metric(threshold=0.5)])


def test_several_metrics():
    texts = {"expected_output": "Nothing", "context": ["a fact"], "retrieval_context": ["a text"]}
    case = LLMTestCase("What <b>now</b>?", "Nothing | much", **texts)
    assert_test(case, [ExactMatchMetric(), ContainsMetric(), TokenF1Metric(threshold=0.9)])


def test_judge_is_down():
    assert_test(LLMTestCase("Who?", "Me."), [Crash(threshold=0.5)])


def test_is_wrong_itself():
    assert 1 == 2
'''
EVALUATE = """
import sys
from modelgauge.evals import EvaluationDataset, Golden, evaluate, observe, update_current_trace
from modelgauge.metrics import ContainsMetric, TokenF1Metric

@observe(type="retriever")
def look_up(question):
    return [f"about {question}"]

@observe(type="agent")
def app(question):
    update_current_trace(retrieval_context=look_up(question))
    if "broken" in question:
        raise LookupError("the app is broken")
    return f"{question} {sys.argv[1]}"

goldens = [Golden(f"Question {n}", expected_output=f"Question {n}", name=f"golden {n}") for n in range(5)]
dataset = EvaluationDataset(goldens=[*goldens, Golden("broken", expected_output="x")])
evaluate(goldens=dataset.goldens, observed_callback=app, metrics=[ContainsMetric(), TokenF1Metric(threshold=0.7)],
         hyperparameters={"model": sys.argv[1], "temperature": 0}, identifier=sys.argv[1])
"""
MEASURED = [
    "--test capitals --sut good",
    "--test capitals --sut poor",
    "--test capitals --sut flaky",
    "--test capitals --sut broken",
    "--test capitals --sut deadly",
    "--test capitals --sut good --max-calls 5 --no-caching",
    "--test strict --sut good --threshold accuracy=0.95",
    "--test strict --sut poor",
    "--test graded --sut good",
    "--test graded --sut poor --repeats 2",
    "--test graded --sut rich",
    "--test dialogues --sut rich",
    "--test judged --sut good",
    "--test hostile --sut good",
    "--test hostile --sut rich",
    "--test cut --sut good",
    "--test unmeasured --sut good",
    "--test unmeasured --sut poor",
    "--test named --sut good",
    "--test world --sut good --sut small=poor",
    "--test capitals --sut rich --repeats 3 --reduce pass@2",
    "--test capitals --sut good -m 6 --seed 1 --cluster continent --finite",
    "--dataset goldens.csv --metric exact_match --metric long_words --sut good",
    "--dataset goldens.csv --metric exact_match --metric long_words --sut poor",
]


def record(folder: Path) -> None:
    folder.mkdir(parents=True)
    shutil.copy(HERE / "recording_plugin.py", folder / "plugin.py")
    (folder / "test_app.py").write_text(TESTS, encoding="utf-8")
    (folder / "evaluate_app.py").write_text(EVALUATE, encoding="utf-8")
    rows = [
        "name,input,expected_output",
        "spain,What is the capital of Spain?,Madrid",
        "peru,…of Peru?,Lima",
        "cuba,of Cuba,Havana",
    ]
    (folder / "goldens.csv").write_text("\n".join(rows), encoding="utf-8")
    env = dict(os.environ)
    for line in MEASURED:
        quiet = ("--no-progress-bar", "--no-report", "--max-retries", "0")
        start(
            "-m",
            "modelgauge",
            "--plugin",
            "plugin.py",
            "run-test",
            *line.split(),
            *quiet,
            cwd=folder,
            env=env,
        )
    for good in "32":
        start(
            "-m",
            "modelgauge",
            "test",
            "run",
            "test_app.py",
            "-q",
            "-p",
            "no:cacheprovider",
            cwd=folder,
            env={**env, "GOOD": good},
        )
    for version in ("v1", "v2 of it"):
        start("evaluate_app.py", version, cwd=folder, env=env)
    hide_paths(folder)


def hide_paths(folder: Path) -> None:
    """Replace the folders of this machine in what was recorded."""
    places = {str(folder): "/home/user/app", str(HERE.parents[1]): "/opt/modelgauge", sys.base_prefix: "/usr"}
    for file in (folder / "run_data" / "runs").rglob("*.json*"):
        text = file.read_text(encoding="utf-8")
        for found, shown in places.items():
            text = text.replace(found, shown)
        file.write_text(text, encoding="utf-8")
    for page in (folder / "run_data" / "runs").rglob("report.html"):
        page.unlink()  # can be written again


def start(*args: str, **options: object) -> None:
    print("$", *args, flush=True)
    print(subprocess.run([sys.executable, *args], check=False, **options).returncode)


if __name__ == "__main__":
    record(Path(sys.argv[1]))
