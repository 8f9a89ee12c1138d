"""The program around the commands: help, unknown names, plugins' commands, imports, real processes."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

import modelgauge
from modelgauge.cli.main import COMMANDS, cli
from modelgauge.cli.reference import markdown

HEAVY = ("pydantic", "numpy", "aiohttp", "rich", "asyncio", "diskcache", "tqdm", "jinja2")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name):
    command = cli.get_command(click.Context(cli), name)
    assert command.name == name
    for each in [command, *_children(command)]:
        assert len(each.help) > 40
        options = {option for parameter in each.params for option in parameter.opts}
        if not _children(each):
            assert "Example" in each.help
            assert {"--json", "--plugin", "--debug"} <= options


def _children(command):
    if not isinstance(command, click.Group):
        return []
    ctx = click.Context(command)
    return [command.get_command(ctx, name) for name in command.list_commands(ctx)]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_exits_with_0(run, name):
    ended = run(name, "--help", plugin=False)
    assert ended.code == 0
    assert f"modelgauge {name}" in ended.out


def test_an_unknown_command_is_answered_with_the_nearest(run):
    ended = run("run-tests", plugin=False)
    assert ended.code == 2
    assert "Did you mean 'run-test'" in ended.err
    assert run("cache", "stat", plugin=False).code == 2


def test_a_plugin_adds_a_command(run):
    assert run("hello").out == "hello from a plugin\n"
    assert "Say hello." in run("--help").out
    assert "hello" not in run("--help", plugin=False).out
    assert run("hello", plugin=False).code == 2


def test_a_plugin_cannot_take_the_name_of_a_command(run, here):
    (here / "thief.py").write_text(
        "import click, modelgauge\n"
        "@modelgauge.hookimpl\n"
        "def modelgauge_register_commands(cli):\n"
        "    cli.add_command(click.Command('list', callback=lambda: click.echo('stolen')))\n",
        encoding="utf-8",
    )
    assert "stolen" not in run("list", "--plugin", "thief.py").out
    assert run("--plugin", "thief.py", "nothing").code == 2


def test_help_is_shown_though_a_setting_is_wrong(run, here):
    (here / "modelgauge.toml").write_text("no_such_setting = 1", encoding="utf-8")
    ended = run("--help", plugin=False)
    assert ended.code == 0
    assert "run-test" in ended.out
    assert "no_such_setting" in ended.err
    assert run("list", plugin=False).code == 2


def test_an_unexpected_error_exits_with_70_and_keeps_its_traceback_for_debug(run, here):
    (here / "odd.py").write_text(
        "import click, modelgauge\n"
        "@modelgauge.hookimpl\n"
        "def modelgauge_register_commands(cli):\n"
        "    @cli.command('odd')\n"
        "    def odd():\n"
        "        raise KeyError('unexpected')\n",
        encoding="utf-8",
    )
    ended = run("--plugin", "odd.py", "odd", plugin=False)
    assert ended.code == 70
    assert "KeyError: 'unexpected'" in ended.err
    assert "report" in ended.err
    assert "Traceback" not in ended.err
    assert "Traceback" in run("--debug", "--plugin", "odd.py", "odd", plugin=False).err


def test_control_characters_of_answers_are_shown_and_not_obeyed(run):
    ended = run("run-sut", "--sut", "echo?answer=%1b[31mred%1b[0m", "--prompt", "x")
    assert "\\x1b[31mred" in ended.out
    assert "\x1b" not in ended.out


def test_the_reference_names_every_command_and_no_plugin(run):
    text = markdown()
    for name in COMMANDS:
        assert f"modelgauge {name}" in text
    assert "modelgauge cache clear" in text
    assert "hello" not in text
    assert text == markdown()
    assert "```\nmodelgauge run-test --test demo_01 --sut demo_yes_no\n" in text
    assert "\b" not in text
    assert not re.search(r"[ \t]$", text, re.MULTILINE)


# --- real processes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [("--help",), ("list",), ("list-tests", "--json"), ("--version",)])
def test_what_only_looks_imports_nothing_heavy(here, args):
    code = (
        "import sys\n"
        "from modelgauge.cli.main import cli\n"
        f"code = cli.main({list(args)!r}, standalone_mode=False)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], code, file=sys.stderr)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=here, check=True, timeout=60
    )
    assert ended.stderr.strip() == "[] 0"


def test_a_process_ends_with_the_exit_code_and_pure_json(program, here):
    ended = program(
        "run-test",
        "--plugin",
        "plugin.py",
        "--sut",
        "flaky",
        "--test",
        "numbers",
        "--max-retries",
        "0",
        "--json",
    )
    assert ended.code == 3
    assert ended.json["records"][0]["counts"]["sut_errors"] == 2
    assert "2 of 10 items failed" in ended.err
    assert modelgauge.load_record(ended.json["records"][0]["run_id"], here / "run_data").counts.failed == 2


def test_what_plugins_write_to_the_file_descriptor_does_not_get_into_the_json(program, here):
    (here / "noisy.py").write_text(
        "import os, subprocess, sys\n"
        "from modelgauge import FunctionSUT, hookimpl\n"
        "os.write(1, b'at import\\n')\n"
        "def answer(text):\n"
        "    os.write(1, b'by number\\n')\n"
        "    print('printed', flush=True)\n"
        "    subprocess.run([sys.executable, '-c', 'print(\"of a child\")'], check=True)\n"
        "    return 'yes'\n"
        "@hookimpl\n"
        "def modelgauge_register_suts(register):\n"
        "    register('noisy', FunctionSUT, answer)\n",
        encoding="utf-8",
    )
    command = ("run-test", "--plugin", "plugin.py", "--plugin", "noisy.py", "--sut", "noisy")
    ended = program(*command, "--test", "numbers", "-m", "2", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["records"][0]["counts"]["scored"] == 2
    for noise in ("at import", "by number", "printed", "of a child"):
        assert noise in ended.err


def test_version(program):
    ended = program("--version")
    assert ended.code == 0
    assert re.fullmatch(r"modelgauge \d+\.\d+\.\d+ \(Python 3\.\d+\.\d+\)\n", ended.out)


def test_an_encoding_without_our_characters_does_no_harm(program):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ended = program(
        "run-test", "--plugin", "plugin.py", "--sut", "echo", "--test", "numbers", env=environment
    )
    assert ended.code == 0
    assert ended.out.isascii()
    assert "+/-" in ended.out


@pytest.mark.skipif(sys.platform == "win32", reason="no shell pipes of this kind")
def test_a_reader_that_leaves_is_no_error(here):
    command = [sys.executable, "-m", "modelgauge", "list-items", "--plugin", "plugin.py", "--test", "many"]
    (here / "plugin.py").write_text(
        (here / "plugin.py").read_text(encoding="utf-8")
        + "\nclass Many(Numbers):\n    items = 20000\n"
        + "\n@mg.hookimpl\ndef modelgauge_register_tests(register):\n    register('many', Many)\n",
        encoding="utf-8",
    )
    process = subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(10)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert errors == b""


FULL = Path("/dev/full")
needs_a_full_disk = pytest.mark.skipif(not FULL.exists(), reason="a file that never has room is Linux's")


@needs_a_full_disk
@pytest.mark.parametrize("args", [("list",), ("list-items", "--test", "numbers"), ("list", "--json")])
def test_an_output_that_takes_no_more_is_said_without_a_guess_at_a_defect(here, args):
    with FULL.open("w") as full:
        ended = _into(full, here, *args)
    assert ended.returncode == 4
    assert "No space left on device" in ended.stderr
    assert "Make room" in ended.stderr
    assert "should not have happened" not in ended.stderr
    assert "Exception ignored" not in ended.stderr


@needs_a_full_disk
def test_a_run_whose_report_has_no_room_still_says_how_to_go_on(here):
    with FULL.open("w") as full:
        ended = _into(full, here, "run-test", "--test", "numbers", "--sut", "echo", "--max-calls", "2")
    assert ended.returncode == 4
    (run,) = (here / "run_data" / "runs").iterdir()
    assert f"To go on: modelgauge resume {run.name} --max-calls N\n" in ended.stderr
    assert "Make room" in ended.stderr


def _into(stdout, folder, *args):
    command = [sys.executable, "-m", "modelgauge", "--plugin", "plugin.py", *args]
    return subprocess.run(
        command, cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )


SLOW = """
import asyncio
import modelgauge as mg


class Slow(mg.PromptResponseSUT[str, str]):
    def translate_text_prompt(self, prompt):
        return prompt.text

    async def evaluate(self, request):
        if request != "number 0":
            await asyncio.sleep(0.2)
        return "yes"

    def translate_response(self, request, response):
        return mg.SUTResponse(completions=[mg.SUTCompletion(text=response)])


class Numbers(mg.PromptResponseTest):
    def make_test_items(self, dependencies):
        return [mg.TestItem([f"number {n}"]) for n in range(200)]

    def measure_quality(self, item):
        return {"accuracy": item.text == "yes"}


@mg.hookimpl
def modelgauge_register_suts(register):
    register("slow", Slow)


@mg.hookimpl
def modelgauge_register_tests(register):
    register("slow_numbers", Numbers)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT to one process is POSIX")
def test_an_interrupted_run_says_how_to_go_on_and_does_go_on(here, program):
    (here / "slow.py").write_text(SLOW, encoding="utf-8")
    command = [sys.executable, "-m", "modelgauge", "run-test", "--plugin", "slow.py", "--sut", "slow"]
    process = subprocess.Popen(
        [*command, "--test", "slow_numbers", "--concurrency", "1", "--output-file", "out.json"],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    _wait_for_a_line(here / "run_data" / "runs", process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in out
    record = modelgauge.load_record(here / "out.json")
    assert f"To go on: modelgauge resume {record.run_id}\n" in err
    assert record.cancelled
    assert 0 < record.counts.scored < 200
    assert len(record.test_item_records) == record.counts.scored
    ended = program("resume", record.run_id, "--concurrency", "200", "--json")
    assert ended.code == 0
    (resumed,) = ended.json["records"]
    assert resumed["run_id"] == record.run_id
    assert resumed["counts"]["scored"] == 200
    paid, before = resumed["counts"]["sut_calls"]["paid"], record.counts.sut_calls.paid
    assert 200 <= paid <= before + 200 - record.counts.scored
    assert resumed["seconds"] > record.seconds
    assert resumed["run_timestamp"] == record.run_timestamp


def _wait_for_a_line(runs, process):
    for _ in range(600):
        if any(journal.stat().st_size for journal in runs.glob("*/items.jsonl")):
            return
        assert process.poll() is None
        time.sleep(0.05)
    raise AssertionError("no item was finished")
