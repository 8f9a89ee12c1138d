"""The program around the commands: help, unknown names, plugins' commands, imports, real processes."""

import errno
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading

import click
import pytest

import modelgauge
from modelgauge.cli.app import App
from modelgauge.cli.main import COMMANDS, cli
from modelgauge.cli.program import report_error, when_terminated

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


def test_json_is_ascii_where_the_stdout_that_was_kept_for_it_holds_no_more():
    app = App()
    app.stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    app.show_json({"text": "ä😀"})
    app.stdout.seek(0)
    assert json.load(app.stdout) == {"text": "ä😀"}


# --- what goes wrong around the program, and is not an error of its own -------------------------------


@pytest.fixture
def shell(here):
    """Run a line of shell in the folder of the test; `modelgauge` is ours."""

    def shell(line):
        ours = f"{shlex.quote(sys.executable)} -m modelgauge --plugin {shlex.quote(str(here / 'plugin.py'))}"
        return subprocess.run(
            ["sh", "-c", line.replace("modelgauge", ours)],
            cwd=here,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    return shell


@pytest.mark.skipif(os.name == "nt", reason="a shell closes streams")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_as_if_nobody_looked(shell, only_run, closed):
    ended = shell(f"modelgauge run-test --sut echo --test numbers {closed}")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert modelgauge.load_record(only_run()).counts.scored == 10
    assert shell(f"modelgauge run-test --sut echo --test no_such_test {closed}").returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
def test_a_terminal_that_is_gone_is_as_if_nobody_looked(here):
    """A command goes on to its end after SIGHUP; what it shows then reaches nobody."""
    outside, terminal = os.openpty()
    os.close(outside)
    try:
        for refused, code in (((), 0), (("--sut", "no_such_sut"), 2)):
            line = [
                "--plugin",
                str(here / "plugin.py"),
                "run-test",
                "--sut",
                "echo",
                "--test",
                "numbers",
                *refused,
            ]
            ended = subprocess.run(
                [sys.executable, "-m", "modelgauge", *line], stdout=terminal, cwd=here, check=False
            )
            assert ended.returncode == code
    finally:
        os.close(terminal)


@pytest.fixture
def heeded_signals():
    """SIGTERM and SIGHUP as they are in a terminal: `nohup`, say of all these tests, has SIGHUP ignored."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.usefixtures("heeded_signals")
def test_a_second_hangup_is_the_same_hangup():
    """A shell and the kernel send one each; a second SIGTERM or Ctrl-C is somebody in a hurry."""
    heard = []
    with when_terminated(lambda: heard.append(1)):
        for name in ("SIGHUP", "SIGHUP", "SIGTERM", "SIGTERM"):
            signal.raise_signal(signal.Signals[name])
    assert len(heard) == 3


@pytest.mark.skipif(os.name == "nt", reason="Windows deletes no folder that is in use")
def test_a_working_directory_that_was_deleted(shell):
    ended = shell("mkdir gone && cd gone && rmdir ../gone && modelgauge run-test --sut echo --test numbers")
    assert ended.returncode == 2
    assert "The working directory no longer exists." in ended.stderr


@pytest.mark.skipif(os.name == "nt", reason="a shell opens the stream")
def test_what_the_operating_system_refuses_is_no_internal_error(shell):
    ended = shell("modelgauge list </dev/null 1</dev/null")
    assert ended.returncode == 4
    assert "Error: the operating system refused an operation" in ended.stderr


def test_ctrl_c_while_modules_are_imported_leaves_no_traceback(here):
    interrupted = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *args):\n"
        "        if name == 'click': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from modelgauge.cli.entry import main\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", interrupted], cwd=here, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")


@pytest.mark.skipif(os.name == "nt", reason="Windows says that there is no such file")
@pytest.mark.parametrize(
    "command",
    ["show {}", "compare {} {}", "runs --data-dir {}", "datasets show {}", "--plugin {} list-suts"],
)
def test_a_name_that_no_file_can_have(run, command):
    ended = run(*command.replace("{}", "x" * 300).split())
    assert (ended.code, ended.out) == (2, "")
    assert f"Error: '{'x' * 300}" in ended.err
    assert "is too long for a name.\nGive the name of a run" in ended.err


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="this user may look everywhere")
@pytest.mark.parametrize(
    "command",
    [
        "runs --data-dir {}/data",
        "show latest --data-dir {}/data",
        "show {}/run",
        "compare {}/one {}/two",
        "check {}/file",
        "--plugin {}/plugin.py list-suts",
    ],
)
def test_a_folder_that_may_not_be_looked_into_is_not_called_empty(run, here, command):
    (here / "locked").mkdir(mode=0)
    ended = run(*command.replace("{}", "locked").split())
    assert (ended.code, ended.out) == (4, "")
    assert "Permission denied: " in ended.err


@pytest.mark.parametrize("folder", [".", "..", "/", "./"])
def test_an_output_file_that_is_a_folder(run, here, folder):
    ended = run("run-test", "--sut", "echo", "--test", "numbers", "--output-file", folder)
    assert ended.code == 2
    assert f"--output-file {os.path.normpath(folder)} is a folder." in ended.err
    assert not (here / "run_data").exists()


def test_an_output_file_makes_the_folders_of_its_real_path_only(run, here):
    given = ("run-test", "--sut", "echo", "--test", "numbers", "--output-file")
    assert run(*given, "x/../made/all.json").code == 0
    assert ((here / "made" / "all.json").is_file(), (here / "x").exists()) == (True, False)
    ended = run(*given, "x/..")
    assert (ended.code, "--output-file x/.. is a folder." in ended.err) == (2, True)


def test_sut_that_cancels_all_tasks_fails_its_items_alone(run, here):
    (here / "cancels.py").write_text(
        "import asyncio\n"
        "from modelgauge import FunctionSUT, hookimpl\n"
        "async def answer(text):\n"
        "    for task in asyncio.all_tasks():\n"
        "        task.cancel()\n"
        "    await asyncio.sleep(0)\n"
        "@hookimpl\n"
        "def modelgauge_register_suts(register):\n"
        "    register('cancels', FunctionSUT, answer)\n",
        encoding="utf-8",
    )
    ended = run("--plugin", "cancels.py", "run-test", "--sut", "cancels", "--test", "numbers")
    assert ended.code == 3
    assert "10 of 10 items failed in numbers on cancels" in ended.err


def test_a_number_that_cannot_be_in_the_files_of_a_run_is_damage(run, only_run):
    assert run("run-test", "--sut", "echo", "--test", "numbers").code == 0
    record, journal, manifest = (only_run() / name for name in ("record.json", "items.jsonl", "run.json"))
    whole = {file: file.read_text(encoding="utf-8") for file in (record, journal, manifest)}
    for file, number, instead, command, code in (
        (record, r'"seconds": [\d.e-]+', '"seconds": 1e999', "show", 2),
        (record, r'"scored": \d+', f'"scored": {2**63}', "show", 2),
        (record, r'"interval": \[[^]]*\]', '"interval": "x"', "show", 2),
        (record, r'"value": [\d.]+', '"value": NaN', "show", 2),
        (journal, r'"index":3', f'"index":{2**63}', "rescore", 2),
        (journal, r'"index":3', '"index":-1', "rescore", 2),
        (manifest, r'"sut_uid": "echo"', '"sut_uid": 7', "runs", 0),
    ):
        damaged, count = re.subn(number, instead, whole[file], count=1)
        assert count == 1
        file.write_text(damaged, encoding="utf-8")
        ended = run(command, *([] if command == "runs" else [str(only_run())]))
        assert ended.code == code, (instead, ended.err)
        if file is journal:
            assert ended.err == run("show", "--items", str(only_run())).err
        file.write_text(whole[file], encoding="utf-8")


def test_a_disk_without_room_is_told_with_how_to_go_on(capsys):
    assert report_error(App(), OSError(errno.ENOSPC, "No space left on device")) == 4
    assert "the disk refused to write more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
        (click.Abort(), 130, "Interrupted.\n"),
        (EOFError(), 130, "Interrupted.\n"),
        (click.BadParameter("no"), 2, "Error: Invalid value: no\n"),
        (click.FileError("x", "no"), 2, "Error: Could not open file 'x': no\n"),
        (
            PermissionError(errno.EACCES, "Permission denied"),
            4,
            (
                "Error: the operating system refused an operation: [Errno 13] Permission denied\n"
                "Correct what it names; `modelgauge --debug ...` shows where it happened.\n"
            ),
        ),
        (
            ZeroDivisionError(),
            70,
            (
                "Error: this should not have happened: ZeroDivisionError\n"
                "Run it again as `modelgauge --debug ...` for the traceback, and please report it.\n"
            ),
        ),
    ],
)
def test_each_kind_of_ending_has_a_code_and_words(capsys, error, code, told):
    assert report_error(App(), error) == code
    assert capsys.readouterr() == ("", told)


def test_the_program_has_its_name_without_being_told(capsys):
    assert cli.main(["list", "--nothing"], standalone_mode=False) == 2
    assert capsys.readouterr().err.startswith("Usage: modelgauge list ")


@pytest.fixture
def ending(run, here):
    """Run a command of a plugin that does what is given."""

    def ending(*lines):
        body = "".join(f"        {line}\n" for line in lines)
        (here / "ends.py").write_text(
            "import click, errno, os, signal, modelgauge\n"
            "@modelgauge.hookimpl\n"
            "def modelgauge_register_commands(cli):\n"
            "    @cli.command('end')\n"
            f"    def end():\n{body}",
            encoding="utf-8",
        )
        return run("--plugin", "ends.py", "end", plugin=False)

    return ending


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.parametrize(("name", "background"), [("SIGTERM", False), ("SIGTERM", True), ("SIGHUP", False)])
def test_signals_that_end_interrupt_a_command_and_are_left_as_they_were(ending, name, background):
    """A closed terminal sends SIGHUP; `nohup` has it ignored."""
    number = signal.Signals[name]
    kill = f"signal.raise_signal(signal.{name})"
    before = signal.getsignal(number)
    keyboard = signal.signal(signal.SIGINT, signal.SIG_IGN if background else signal.default_int_handler)
    try:
        ended = ending(kill, "click.echo('went on')")
    finally:
        signal.signal(signal.SIGINT, keyboard)
    assert (ended.code, ended.out, ended.err) == (130, "", "Interrupted.\n")
    assert signal.getsignal(number) is before
    signal.signal(number, signal.SIG_IGN)
    try:
        assert ending(kill, "click.echo('went on')").out == "went on\n"
    finally:
        signal.signal(number, before)


def test_in_another_thread_signals_are_left_alone():
    seen = []

    def work():
        with when_terminated(print):
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]


@pytest.mark.skipif(os.name == "nt", reason="Windows says nothing of the other end of a pipe")
@pytest.mark.parametrize(
    ("error", "read", "code"),
    [
        ("Broken pipe", False, 0),
        ("Broken pipe", True, 4),
        ("Input/output error", False, 4),
    ],  # of a damaged disk
)
def test_a_broken_pipe_is_no_error_where_it_is_stdout(here, monkeypatch, capsys, error, read, code):
    reader, writer = os.pipe()
    with open(writer, "w") as stdout:  # noqa: PTH123  a number
        if not read:
            os.close(reader)
        monkeypatch.setattr(sys, "stdout", stdout)
        (here / "pipes.py").write_text(
            "import modelgauge\n"
            "@modelgauge.hookimpl\n"
            "def modelgauge_register_commands(cli):\n"
            "    @cli.command('end')\n"
            f"    def end():\n        raise OSError({32 if error == 'Broken pipe' else 5}, '{error}')\n",
            encoding="utf-8",
        )
        assert cli.main(["--plugin", "pipes.py", "end"], standalone_mode=False) == code
    assert (error in capsys.readouterr().err) == (code == 4)
    if read:
        os.close(reader)
