"""Runs to bundle: with a judge, an annotator, failures, repeats."""

import json
from pathlib import Path

import pytest

from modelgauge import CompletionAnnotator, FunctionSUT, PromptResponseTest, TestItem, run_test
from modelgauge.bundles.bundling import bundle
from modelgauge.config.redaction import Redactor
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.plugins.discovery import Plugins

ASKED = []
"""What was paid for: the requests of SUTs, judges and annotators."""


def answer(text):
    ASKED.append(text)
    if text == "question 3":
        raise ValueError("no answer to question 3")
    return "yes" if text == "question 0" else "no"


def verdict(text):
    ASKED.append(text)
    return "sound"


class Length(CompletionAnnotator):
    def translate_request(self, prompt, completion):
        return completion.text

    def annotate(self, request):
        ASKED.append(f"length of {request}")
        return len(request)

    def translate_response(self, request, response):
        return response


class Judge(CompletionAnnotator):
    is_cheap = True  # as metrics are: only what the judge answers is kept

    def get_suts(self):
        return {"judge": FunctionSUT("judge", verdict, version=1)}

    def translate_request(self, prompt, completion):
        return [prompt.prompt.text, completion.text]

    async def annotate(self, request):
        return (await self.ask("judge", f"Is {request[1]!r} sound for {request[0]!r}?")).completions[0].text

    def translate_response(self, request, response):
        return response


class Questions(PromptResponseTest):
    def make_test_items(self, dependencies):
        return [TestItem([f"question {n}"], context={"right": "yes"}, id=f"q{n}") for n in range(5)]

    def get_annotators(self):
        return {"length": Length("length"), "judge": Judge("judged")}

    def measure_quality(self, item):
        return {"right": item.text == item.context["right"], "length": item.annotation("length")}


@pytest.fixture
def data_dir(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def make_run(data_dir):
    """Make a run of `Questions`: its folder."""

    def make_run(test=None, **options):
        sut = FunctionSUT("sut", answer, version=1)
        given = {"plugins": Plugins(), "max_retries": 0, "data_dir": data_dir, **options}
        record = run_test(test or Questions("questions"), sut, **given)
        return RunFolder(given["data_dir"] / "runs" / record.run_id)

    ASKED.clear()
    return make_run


@pytest.fixture
def run(make_run, data_dir, once):
    """A run of five items, one of which failed."""
    return RunFolder(data_dir / "runs" / once(data_dir, lambda: make_run().path.name))


@pytest.fixture
def bundled(run, data_dir, tmp_path):
    """The file of a bundle of the run."""
    bundle([run], data_dir, tmp_path / "run.mgb", Redactor())
    return tmp_path / "run.mgb"


def edit_lines(run, change):
    """Change the lines of a run's journal: `change` gets the list of their JSON objects."""
    lines = [json.loads(line) for line in run.journal.read_text(encoding="utf-8").splitlines()]
    lines = change(lines) or lines
    run.journal.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def edit_json(path: Path, change):
    """Change the object in a JSON file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
