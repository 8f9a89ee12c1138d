"""A Test and a SUT by two strangers, packaged, installed and run by users: no fork, no edit of the core.

The wheels are built by their backend and installed with pip, offline, in a fresh virtual environment. A `.pth` file
shows it the libraries of the environment that runs this test; everything of this repository is installed as a wheel.
"""

import json
import os
import subprocess
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
OFFLINE = ("--no-index", "--no-deps")

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "NAME"
version = "3.2.1"
dependencies = ["modelgauge-framework"]

[project.entry-points.modelgauge]
PACKAGE = "PACKAGE.register"
"""

ACME_SUTS = {
    "acme_suts/__init__.py": "",
    "acme_suts/register.py": """\
from modelgauge import hookimpl


@hookimpl
def modelgauge_register_suts(register):
    register("acme_parrot", "acme_suts.parrot:Parrot")
    register.provider("acme", "acme_suts.parrot:Parrot")
""",
    "acme_suts/parrot.py": """\
from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse


class Parrot(PromptResponseSUT[str, str]):
    def __init__(self, uid: str, model: str = "grey", loud: bool = False):
        super().__init__(uid)
        self.loud = loud

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        return request.upper() if self.loud else request

    def translate_response(self, request, response):
        return SUTResponse(completions=[SUTCompletion(response)])
""",
}

# What pip does for each source in three processes, done for all in one.
BUILD = """\
import os, sys
from hatchling.build import build_wheel

wheels, *sources = sys.argv[1:]
for source in sources:
    os.chdir(source)
    build_wheel(wheels)
"""

UMBRELLA_TESTS = {
    "umbrella_tests/__init__.py": "",
    "umbrella_tests/register.py": """\
from modelgauge import hookimpl


@hookimpl
def modelgauge_register_tests(register):
    register("umbrella_shouting", "umbrella_tests.shouting:ShoutingTest")
""",
    "umbrella_tests/shouting.py": """\
from modelgauge import PackageData, PromptResponseTest, TestItem


class ShoutingTest(PromptResponseTest):
    def get_dependencies(self):
        return {"words": PackageData("umbrella_tests", "words.txt")}

    def make_test_items(self, dependencies):
        for word in dependencies["words"].read_text(encoding="utf-8").split():
            yield TestItem([word], id=word)

    def measure_quality(self, item):
        return {"shouted": item.text.isupper()}
""",
    "umbrella_tests/words.txt": "HELLO\nthere\nyou\nALL\n",
}


@dataclass(frozen=True)
class Environment:
    """A virtual environment and a working directory for its commands."""

    scripts: Path
    directory: Path

    def python(self, *arguments: object) -> str:
        return self._run(next(self.scripts.glob("python*")), *arguments)

    def modelgauge(self, *arguments: object) -> str:
        return self._run(next(self.scripts.glob("modelgauge*")), *arguments)

    def _run(self, *command: object) -> str:
        line = [*map(str, command)]
        done = subprocess.run(
            line, cwd=self.directory, env=_environ(), capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, f"{line} exited with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def _environ() -> dict[str, str]:
    """The environment without what would lead pip, Python or modelgauge astray."""
    astray = ("PIP_", "PYTHON", "MODELGAUGE_", "VIRTUAL_ENV")
    clean = {
        name: value
        for name, value in os.environ.items()
        if name == "PYTHONPYCACHEPREFIX" or not name.upper().startswith(astray)
    }
    return {**clean, "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUTF8": "1"}


def _write_distribution(folder: Path, name: str, files: dict[str, str]) -> Path:
    pyproject = PYPROJECT.replace("NAME", name).replace("PACKAGE", name.replace("-", "_"))
    for path, text in {"pyproject.toml": pyproject, **files}.items():
        file = folder / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder / name


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    root = tmp_path_factory.mktemp("third_party")
    venv.create(root / "venv")
    paths = sysconfig.get_paths("venv", {"base": str(root / "venv"), "platbase": str(root / "venv")})
    seen = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    Path(paths["purelib"], "seen.pth").write_text("\n".join(sorted(seen)), encoding="utf-8")
    directory = root / "work"
    directory.mkdir()
    environment = Environment(Path(paths["scripts"]), directory)
    sources = [
        REPOSITORY,
        *(file.parent for file in sorted(REPOSITORY.glob("*plugins/*/pyproject.toml"))),
        _write_distribution(root / "src", "acme-suts", ACME_SUTS),
        _write_distribution(root / "src", "umbrella-tests", UMBRELLA_TESTS),
    ]
    environment.python("-c", BUILD, root / "wheels", *sources)
    wheels = sorted((root / "wheels").glob("*.whl"))
    assert len(wheels) == len(sources)
    # Installed here whatever the `.pth` file shows.
    environment.python("-m", "pip", "install", "--ignore-installed", "--no-compile", *OFFLINE, *wheels)
    return environment


def test_all_of_it_is_installed_not_borrowed(environment: Environment) -> None:
    code = "import acme_suts, modelgauge, modelgauge_demo_tests as demo; print(acme_suts, modelgauge, demo)"
    shown = environment.python("-c", code)
    assert shown.count(str(environment.scripts.parent)) == 3


def test_plugins_are_found(environment: Environment) -> None:
    assert "umbrella_shouting" in environment.modelgauge("list-tests")
    assert "acme_parrot" in environment.modelgauge("list-suts")
    everything = environment.modelgauge("list")
    assert {"umbrella_shouting", "acme_parrot", "demo_01", "demo_word_list"} <= set(everything.split())
    plugins = json.loads(environment.modelgauge("plugins", "--json"))
    versions = {plugin["distribution"]: plugin["version"] for plugin in plugins["plugins"]}
    assert (versions["acme-suts"], versions["umbrella-tests"]) == ("3.2.1", "3.2.1")
    assert plugins["failures"] == []


@pytest.mark.parametrize(("sut", "shouted"), [("acme_parrot", 0.5), ("acme/macaw?loud=yes", 1.0)])
def test_strangers_meet(environment: Environment, sut: str, shouted: float, tmp_path: Path) -> None:
    command = ("run-test", "--test", "umbrella_shouting", "--sut", sut, "--data-dir", tmp_path, "--json")
    (record,) = json.loads(environment.modelgauge(*command))["records"]
    assert (record["test_uid"], record["sut_uid"]) == ("umbrella_shouting", sut)
    assert record["result"]["shouted"]["value"] == shouted
    assert record["counts"]["scored"] == record["counts"]["items"] == 4
    assert record["counts"]["sut_calls"] == {"paid": 4, "cached": 0}
    run = tmp_path / "runs" / record["run_id"]
    written = json.loads((run / "record.json").read_text(encoding="utf-8"))
    assert written["result"] == record["result"]
    items = [json.loads(line) for line in (run / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted(item["test_item"]["id"] for item in items) == ["ALL", "HELLO", "there", "you"]
    manifest = (run / "run.json").read_text(encoding="utf-8")
    assert "acme-suts" in manifest
    assert "umbrella-tests" in manifest
    (again,) = json.loads(environment.modelgauge(*command))["records"]
    assert again["result"] == record["result"]
    assert again["counts"]["sut_calls"] == {"paid": 0, "cached": 4}


def test_shown_to_a_person(environment: Environment, tmp_path: Path) -> None:
    shown = environment.modelgauge(
        "run-test", "--test", "umbrella_shouting", "--sut", "acme_parrot", "--data-dir", tmp_path
    )
    assert "shouted" in shown
    assert "0.5" in shown


def test_demo_wheels_hold_their_data(environment: Environment, tmp_path: Path) -> None:
    tests = [argument for number in range(1, 7) for argument in ("--test", f"demo_0{number}")]
    command = ("run-test", *tests, "--sut", "demo_yes_no", "--data-dir", tmp_path, "--json")
    records = json.loads(environment.modelgauge(*command))["records"]
    assert [record["counts"]["scored"] for record in records] == [10, 8, 4, 5, 9, 8]
    found = environment.python(
        "-c", "from modelgauge_demo_annotators.word_list import shipped_words as s; print(*s())"
    )
    assert "silly" in found.split()
