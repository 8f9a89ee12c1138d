"""The reference is complete: each hook, command and setting has its text, each field of a file its row.

The pages that Sphinx makes are tested in test_site.py.
"""

import inspect
import json
import re
import shlex
import sys
import textwrap
from importlib import import_module
from itertools import takewhile
from types import ModuleType

import click
import pytest
from doc_pages import REPOSITORY

from modelgauge import (
    Counts,
    Estimate,
    Interaction,
    RunFailure,
    SUTCompletion,
    TestItem,
    TestItemExceptionRecord,
    TestItemRecord,
    TestRecord,
    run_test,
)
from modelgauge.cli.main import cli
from modelgauge.config.settings import list_settings
from modelgauge.data.item_records import Failure, json_fields
from modelgauge.engine.totals import Totals
from modelgauge.interfaces.identity import Initialization
from modelgauge.plugins import hookspecs
from modelgauge.plugins.discovery import Plugins

REFERENCE = REPOSITORY / "docs" / "reference"


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


@pytest.fixture
def generate(monkeypatch) -> ModuleType:
    """docs/generate.py, which lies in no package."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(REPOSITORY / "docs")])
    return import_module("generate")


def test_no_generated_file_is_stale(generate) -> None:
    assert [file.name for file in generate.stale_files()] == []


def test_stale_files_are_noticed(generate, monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(generate, "FOLDER", tmp_path / "reference")
    monkeypatch.setattr(generate, "CORE", tmp_path / "core")
    assert len(generate.stale_files()) == len(generate.PAGES) + len(generate.MODULES)
    monkeypatch.setattr(sys, "argv", ["generate.py", "--check"])
    assert generate.main() == 1
    assert "python docs/generate.py" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
    monkeypatch.setattr(sys, "argv", ["generate.py"])
    assert generate.main() == 0
    assert generate.stale_files() == {}


# --- hooks --------------------------------------------------------------------------------------------------

HOOKS = [name for name in vars(hookspecs) if name.startswith("modelgauge_")]


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_a_valid_example(hook: str) -> None:
    manual = inspect.getdoc(getattr(hookspecs, hook)) or ""
    example = textwrap.dedent(manual.partition("\nExample:\n")[2])
    module = ModuleType(f"example_of_{hook}")
    exec(f"import sys\nfrom modelgauge import InjectSecret, hookimpl\n{example}", vars(module))
    plugins = Plugins()
    plugins.add(module, "example", "example-distribution", started=0.0)
    assert plugins.loaded[0].hooks == (hook,)


def test_there_are_hooks() -> None:
    assert len(HOOKS) >= 8


# --- commands -----------------------------------------------------------------------------------------------


def commands() -> dict[str, click.Command]:
    """Every command of modelgauge itself by its path: `modelgauge cache clear`."""
    found: dict[str, click.Command] = {}

    def walk(command: click.Command, path: str) -> None:
        found[path] = command
        if isinstance(command, click.Group):
            ctx = click.Context(command, info_name=path)
            for name in [*getattr(command, "lazy", ()), *command.commands]:
                child = command.get_command(ctx, name)
                assert child is not None, name
                walk(child, f"{path} {name}")

    walk(cli, "modelgauge")
    return found


COMMANDS = commands()


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_has_help(path: str) -> None:
    command = COMMANDS[path]
    assert (command.help or "").strip(), f"{path} has no help"
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help, f"{path} {parameter.name} has no help"


EXAMPLES = [
    (path, line.strip())
    for path, command in COMMANDS.items()
    for line in (command.help or "").splitlines()
    if line.strip().startswith("modelgauge ")
]


@pytest.mark.parametrize(("path", "example"), EXAMPLES)
def test_examples_in_the_help_parse(path: str, example: str, tmp_path, monkeypatch) -> None:
    """They are commands of that name, and their options exist; files that they name are there."""
    monkeypatch.chdir(tmp_path)
    words = [*takewhile(lambda word: word not in ("<", ">"), shlex.split(example))]
    for word in words:
        if re.fullmatch(r"[\w./-]+\.(json|jsonl|py|csv|txt|toml)", word):
            (tmp_path / word).parent.mkdir(parents=True, exist_ok=True)
            text = {"json": "[]", "toml": 'suts = "demo"'}.get(word.rpartition(".")[2], "")
            (tmp_path / word).write_text(text, encoding="utf-8")
    named = max((one for one in COMMANDS if f"{' '.join(words)} ".startswith(f"{one} ")), key=len)
    assert named.startswith(path) or path == "modelgauge"
    rest = words[len(named.split()) :]
    # Under the program's own settings: a command keeps the help option that it was first asked for.
    COMMANDS[named].make_context(
        named, rest, parent=click.Context(cli, **cli.context_settings), resilient_parsing=False
    )


# --- settings and names -------------------------------------------------------------------------------------


def test_every_setting_has_its_row() -> None:
    text = page("settings.md")
    for setting in list_settings():
        assert f"| `{setting.key}` | `{setting.variable}` |" in text


# --- record.md ----------------------------------------------------------------------------------------------

TABLES = {
    "record.json: TestRecord": TestRecord,
    "Counts": Counts,
    "Estimate": Estimate,
    "RunFailure": RunFailure,
    "Initialization": Initialization,
}


@pytest.mark.parametrize("heading", TABLES)
def test_every_field_of_a_record_has_its_row(heading: str) -> None:
    section = page("record.md").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    assert sorted(fields_of(section)) == sorted(TABLES[heading].model_fields)


def test_rows_of_record_have_order_of_file(tmp_path) -> None:
    record = run_test("demo_01", "demo_yes_no", data_dir=tmp_path)
    written = json.loads((tmp_path / "runs" / record.run_id / "record.json").read_text(encoding="utf-8"))
    section = page("record.md").partition("## record.json: TestRecord\n")[2].partition("\n## ")[0]
    assert list(written) == [name for name in fields_of(section) if name in written]
    assert list(written["counts"]) == [name for name in Counts.model_fields if name in written["counts"]]


def test_every_field_of_the_journal_has_its_row() -> None:
    section = page("record.md").partition("## items.jsonl: the journal\n")[2].partition("\n## ")[0]
    tables = re.split(r"\n\n(?=[A-Z])", section)
    found = [fields_of(table) for table in tables if fields_of(table)]
    item = {"index": 0, "test_item": TestItem("?"), "replaces": (1,)}
    failure = Failure(repeat=0, stage="sut", source_uid="s", error_type="E", message="m", traceback="t")
    scored = TestItemRecord(**item, interactions=(), measurements={}, failures=(failure,))
    failed = TestItemExceptionRecord(**item, failures=(failure.replaced(repeat=None),))
    lines = [list(json_fields(scored)), list(json_fields(failed))]
    assert found == [*lines, list(SUTCompletion.model_fields)]


def test_every_part_of_an_interaction_is_described() -> None:
    (row,) = [
        line for line in page("record.md").splitlines() if line.startswith("| `interactions` | one for")
    ]
    assert set(Interaction.model_fields) - {*re.findall(r"`(\w+)`", row), "prompt"} == set()


def test_every_total_has_its_row() -> None:
    section = page("record.md").partition("## totals.json\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| ([^|]*) \|", section, re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(cells)) == list(Totals().model_dump())


def test_every_part_of_the_manifest_has_its_row(tmp_path) -> None:
    record = run_test("demo_01", "demo_yes_no", data_dir=tmp_path)
    manifest = json.loads((tmp_path / "runs" / record.run_id / "run.json").read_text(encoding="utf-8"))
    section = page("record.md").partition("## run.json: the manifest\n")[2]
    known = {*re.findall(r"`(\w+)`", section), *TestRecord.model_fields}
    assert set(manifest) - known == set()


def fields_of(text: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
