"""A plugin file with all that the commands need, and a way to run commands in a folder of their own."""

import json
import os
import sys
from pathlib import Path

import children
import pytest
from click.testing import CliRunner

from modelgauge.cli.main import cli
from modelgauge.plugins import discovery

PLUGIN = '''
import click
import modelgauge as mg

CALLS = []


class Echo(mg.PromptResponseSUT[str, str]):
    def __init__(self, uid, answer="yes"):
        super().__init__(uid)
        self.answer = answer

    def translate_text_prompt(self, prompt):
        return f"{prompt.text}|{prompt.options.temperature}|{prompt.options.stop_sequences}"

    def translate_chat_prompt(self, prompt):
        return "/".join(message.text for message in prompt.messages)

    def evaluate(self, request):
        CALLS.append(request)
        number = request.split("|")[0].split()[-1]
        if self.answer == "flaky" and number in ("3", "4"):
            raise ValueError(f"cannot answer {number}")
        return self.answer

    def translate_response(self, request, response):
        return mg.SUTResponse(completions=[mg.SUTCompletion(text=response)])


class TextOnly(mg.PromptResponseSUT[str, str]):
    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        return "text"

    def translate_response(self, request, response):
        return mg.SUTResponse(completions=[mg.SUTCompletion(text=response)])


class Key(mg.RequiredSecret):
    @classmethod
    def description(cls):
        return mg.SecretDescription("acme", "key", "Ask acme.", env=("ACME_TOKEN",))


class Other(mg.RequiredSecret):
    @classmethod
    def description(cls):
        return mg.SecretDescription("other", "key", "Ask another.")


class Secretive(Echo):
    def __init__(self, uid, key):
        super().__init__(uid, f"my key is {key.value}")


class YesNo(mg.CompletionAnnotator[dict]):
    def translate_request(self, prompt, completion):
        return {"answer": completion.text, "context": prompt.context}

    def annotate(self, request):
        return request["answer"] == "yes"

    def translate_response(self, request, response):
        return {"yes": response}


class Numbers(mg.PromptResponseTest):
    items = 10

    def make_test_items(self, dependencies):
        for number in range(self.items):
            yield mg.TestItem([f"number {number}"], context={"even": number % 2 == 0}, id=f"n{number}")

    def measure_quality(self, item):
        return {"accuracy": item.text == "yes"}


class Judged(Numbers):
    items = 2

    def get_annotators(self):
        return {"judge": "yes_no"}

    def measure_quality(self, item):
        return {"yes": item.annotation("judge")["yes"]}


class WithData(mg.PromptResponseTest):
    def get_dependencies(self):
        return {"words": mg.WebData("https://nowhere.invalid/words.txt")}

    def make_test_items(self, dependencies):
        for word in dependencies["words"].read_text(encoding="utf-8").split():
            yield mg.TestItem([word])

    def measure_quality(self, item):
        return {"length": len(item.text)}


class Broken(Numbers):
    def make_test_items(self, dependencies):
        yield mg.TestItem(["one"], id="one")
        raise RuntimeError("the source of items is gone")


@mg.hookimpl
def modelgauge_register_suts(register):
    register("echo", Echo)
    register("flaky", Echo, "flaky")
    register("text_only", TextOnly)
    register("secretive", Secretive, mg.InjectSecret(Key))
    register("secretive2", Secretive, mg.InjectSecret(Other))


@mg.hookimpl
def modelgauge_register_tests(register):
    register("numbers", Numbers)
    register("judged", Judged)
    register("with_data", WithData)
    register("broken", Broken)


@mg.hookimpl
def modelgauge_register_annotators(register):
    register("yes_no", YesNo)


@mg.hookimpl
def modelgauge_register_commands(cli):
    @cli.command("hello")
    def hello():
        """Say hello."""
        click.echo("hello from a plugin")
'''


DATASET_PLUGIN = """
from modelgauge import FunctionSUT, hookimpl
from modelgauge.evals import observe, update_current_trace
from modelgauge.metrics import Metric


@observe(type="retriever")
def look_up(question):
    return [f"about {question}"]


@observe(type="agent")
def app(question):
    if question == "broken":
        raise LookupError("the app is broken")
    update_current_trace(retrieval_context=look_up(question))
    return question


def judge(question):
    return '{"verdicts": [{"verdict": "yes"}], "statements": ["a"], "reason": "ok"}'


def strict_judge(question):
    return '{"verdicts": [{"verdict": "no"}], "statements": ["a"], "reason": "no"}'


class Grounded(Metric):
    required_params = ("retrieval_context",)

    def score(self, test_case):
        return 1.0


class Length(Metric):
    higher_is_better = False
    best_score = 0.0

    def score(self, test_case):
        return len(test_case.actual_output)


@hookimpl
def modelgauge_register_suts(register):
    register("app", FunctionSUT, app, version=1)
    register("judge", FunctionSUT, judge, version=1)
    register("strict", FunctionSUT, strict_judge, version=1)


@hookimpl
def modelgauge_register_metrics(register):
    register("grounded", Grounded)
    register("length", Length)
"""


class Ended:
    """How a command ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        """What stdout holds: exactly one JSON object."""
        return json.loads(self.out)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory with the plugin file, and an environment without settings or secrets."""
    for name in list(os.environ):
        if name.startswith(("MODELGAUGE_", "ACME_", "OTHER_")) or name in (
            "NO_COLOR",
            "COLUMNS",
            "GITHUB_ACTIONS",
        ):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(discovery, "installed_entry_points", list)
    (tmp_path / "plugin.py").write_text(PLUGIN, encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(here):
    """Run a command in this process, with the plugin file and without installed plugins."""

    def run(*args, plugin=True, **options):
        given = ["--plugin", "plugin.py", *args] if plugin else list(args)
        ended = CliRunner().invoke(cli, given, prog_name="modelgauge", **options)
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return Ended(ended.exit_code, ended.stdout, ended.stderr)

    return run


@pytest.fixture
def calls(here):
    """The requests that the plugin's SUTs were sent."""
    return lambda: sys.modules[str(here / "plugin.py")].CALLS


@pytest.fixture
def program(here):
    """Run a command in a process of its own."""

    def program(*args, **options):
        ended = children.run("-m", "modelgauge", *args, cwd=here, **options)
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    return program


@pytest.fixture
def only_run(here):
    """The folder of the only run."""

    def only_run() -> Path:
        (found,) = (here / "run_data" / "runs").iterdir()
        return found

    return only_run


@pytest.fixture
def datasets(here):
    """The working directory, with a plugin `app.py` and data sets: its app answers with the question."""
    (here / "app.py").write_text(DATASET_PLUGIN, encoding="utf-8")
    for name, rows in {
        "good.csv": "a,a\nb,b\n",
        "bad.csv": "a,a\nb,b\nc,x\n",
        "broken.csv": "a,a\nbroken,x\n",
    }.items():
        (here / name).write_text(f"input,expected_output\n{rows}", encoding="utf-8")
    return here


@pytest.fixture
def run_dataset(run, datasets):
    """Run a data set on the app; by default by `exact_match`."""

    def run_dataset(*args, metrics=("exact_match",)):
        named = [part for metric in metrics for part in ("--metric", metric)]
        return run(
            "run-test",
            "--plugin",
            "app.py",
            "--sut",
            "app",
            "--max-retries",
            "0",
            *named,
            *args,
            plugin=False,
        )

    return run_dataset
