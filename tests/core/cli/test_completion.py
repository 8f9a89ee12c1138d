"""Completion at the Tab key: what is offered, how little that takes, and real shells."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modelgauge.cli.main import main

SHELLS = ("bash", "zsh", "fish")
PATIENCE = 60.0


@pytest.fixture
def offered(here, capfd, monkeypatch):
    """Completes a line whose last word is not complete, and returns what is offered."""

    def complete(line: str, plugin: bool = False) -> list[str]:
        words = f"modelgauge {'--plugin plugin.py ' if plugin else ''}{line}"
        with monkeypatch.context() as asked:
            asked.setenv("_MODELGAUGE_COMPLETE", "bash_complete")
            asked.setenv("COMP_WORDS", words)
            asked.setenv("COMP_CWORD", str(words.count(" ")))
            main()
        printed = capfd.readouterr()
        assert printed.err == ""
        return printed.out.splitlines()

    return complete


def values(offered: list[str]) -> list[str]:
    return [line.removeprefix("plain,") for line in offered]


def test_commands_and_options(offered):
    assert values(offered("run-")) == ["run-test", "run-sut", "run-annotator"]
    assert values(offered("cache s")) == ["stats"]
    assert "--max-test-items" in values(offered("run-test --max"))
    assert values(offered("compare a b --format ")) == ["text", "github"]
    assert values(offered("compare a b --test ")) == ["permutation", "wilcoxon", "bootstrap"]
    assert values(offered("test run --display f")) == ["failing"]
    assert values(offered("--version --log-")) == ["--log-level"]


def test_commands_of_plugins(offered):
    assert values(offered("hel", plugin=True)) == ["hello"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run-test --test nu", ["numbers"]),
        ("run-test --json --test=nu", ["numbers"]),
        ("run-test --json --test = nu", ["numbers"]),  # as bash tells it
        ("run-test --json --test =", ["broken", "judged", "numbers", "with_data"]),
        ("run-test --sut ", ["echo", "flaky", "replay/", "secretive", "secretive2", "text_only"]),
        ("run-test --sut echo --judge rep", ["replay/"]),
        ("run-annotator --annotator ", ["yes_no"]),
        ("run-test --metric exact_m", ["exact_match"]),
        ("runs --test nu", ["numbers"]),
        ("hello ", []),
    ],
)
def test_names(offered, line, expected):
    assert values(offered(line, plugin=True)) == expected


def test_names_of_a_plugin_that_a_command_loads(offered):
    assert values(offered("run-test --plugin plugin.py --test nu")) == ["numbers"]


def test_runs_and_paths(offered, run, here, only_run, monkeypatch):
    assert offered("show ") == ["file,"]
    assert run("run-test", "--sut", "echo", "--test", "numbers").code == 0
    run_id = only_run().name
    for command in (
        "show",
        "resume",
        "report latest",
        "compare latest",
        "run-test --baseline",
        "runs delete",
    ):
        assert values(offered(f"{command} ")) == ["latest", "latest~1", run_id], command
    assert values(offered(f"show {run_id[:10]}")) == [run_id]
    assert offered("show both.js") == ["file,both.js"]
    assert offered("show --data-dir elsewhere ") == ["file,"]
    assert values(offered("show --data-dir run_data late")) == ["latest", "latest~1"]
    assert offered("run-test --plugin my") == ["file,my"]
    assert offered("run-test --data-dir ") == ["dir,"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("modelgauge.toml", "nonsense = 1"),
        ("modelgauge.toml", "plugins = ['gone.py']"),
        ("plugin.py", "import sys; print('loud'); sys.stderr.write('loud'); sys.exit(3)"),
    ],
)
def test_what_is_wrong_is_silent(offered, here, file, text):
    (here / file).write_text(text, encoding="utf-8")
    assert offered("run-test --test demo_0", plugin=True) == []


def test_an_unknown_shell_gets_nothing(monkeypatch, capsys):
    monkeypatch.setenv("_MODELGAUGE_COMPLETE", "tcsh_complete")
    main()
    assert capsys.readouterr() == ("", "")


def test_nothing_heavy_is_imported():
    script = (
        "import sys\n"
        "from modelgauge.cli.main import main\n"
        "main()\n"
        "heavy = {'aiohttp', 'diskcache', 'jinja2', 'numpy', 'pydantic', 'tqdm', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    for words in ("modelgauge run-test --test demo_0", "modelgauge ru", "modelgauge show lat"):
        asked = {
            "_MODELGAUGE_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        ran = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, **asked},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.stderr == "[]\n", words


# --- shells -----------------------------------------------------------------------------------------------


@pytest.fixture
def shell(request, tmp_path, monkeypatch):
    """The path of a shell, in an empty home, with modelgauge on its path."""
    found = shutil.which(request.param)
    if found is None:
        pytest.skip(f"{request.param} is not installed.")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return found


def screen_after(arguments: list[str], lines: list[str], expected: str) -> str:
    """What a shell shows on its terminal when lines are typed, until it shows what is expected."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(arguments[0], arguments, {**os.environ, "TERM": "dumb"})
    shown, ends = "", time.monotonic() + PATIENCE
    try:
        os.write(terminal, "\n".join(lines).encode())
        while expected not in shown and time.monotonic() < ends:
            if select.select([terminal], [], [], 0.5)[0]:
                shown += os.read(terminal, 4096).decode(errors="replace")
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(terminal)
    return shown


@pytest.mark.skipif(sys.platform == "win32", reason="no terminal of this kind")
@pytest.mark.parametrize(
    ("shell", "arguments", "load"),
    [
        ("bash", ["--norc", "-i"], 'eval "$(modelgauge completion bash)"'),
        ("zsh", ["-f", "-i"], 'autoload -U compinit; compinit -D; eval "$(modelgauge completion zsh)"'),
    ],
    indirect=["shell"],
)
def test_a_shell_completes_what_is_typed(shell, arguments, load):
    lines = [load, "modelgauge run-test --test demo_01 --sut demo_yes\t"]
    assert "demo_yes_no" in screen_after([shell, *arguments], lines, "demo_yes_no")


@pytest.mark.parametrize("shell", ["fish"], indirect=True)
def test_fish_completes_what_is_typed(shell):
    script = "modelgauge completion fish | source; complete -C 'modelgauge run-test --sut demo_yes'"
    ran = subprocess.run(
        [shell, "--no-config", "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert ran.stdout.split() == ["demo_yes_no"]


@pytest.mark.parametrize("name", SHELLS)
def test_the_command_prints_the_script(run, name):
    ended = run("completion", name, plugin=False)
    assert ended.code == 0
    assert "_MODELGAUGE_COMPLETE" in ended.out
    assert run("completion", "tcsh", plugin=False).code == 2


def test_groups_are_offered_beside_their_members(offered, here):
    plugin = (here / "plugin.py").read_text(encoding="utf-8")
    text = plugin.replace(
        'register("numbers", Numbers)', 'register("numbers", Numbers); register.group("nums", ["numbers"])'
    )
    (here / "plugin.py").write_text(text, encoding="utf-8")
    assert values(offered("run-test --test nu", plugin=True)) == ["nums", "numbers"]
    assert values(offered("list-items --test nu", plugin=True)) == ["numbers"]


PROVIDER = """
def words():
    return ["alpha", "beta", "alphabet"]


@mg.hookimpl
def modelgauge_register_tests(register):
    register.provider("words", Numbers, names=words)
    register.provider("others", Numbers)
"""


@pytest.fixture
def provider(here):
    """A plugin file with a provider that knows its names."""
    plugin = (here / "plugin.py").read_text(encoding="utf-8")
    before, hook, after = plugin.partition("@mg.hookimpl\ndef modelgauge_register_tests")
    assert hook
    rest = after.partition("@mg.hookimpl")[2]
    (here / "plugin.py").write_text(f"{before}{PROVIDER}\n\n@mg.hookimpl{rest}", encoding="utf-8")


@pytest.mark.usefixtures("provider")
def test_names_of_a_provider_complete_behind_its_prefix(offered):
    assert values(offered("run-test --test w", plugin=True)) == ["words/"]
    assert values(offered("run-test --test words/al", plugin=True)) == ["words/alpha", "words/alphabet"]
    assert values(offered("run-test --test others/", plugin=True)) == ["others/"]


@pytest.mark.usefixtures("provider")
def test_provider_lists_its_names(run):
    assert (
        run("list-tests", "--provider", "words").out
        == "words/alpha\nwords/beta\nwords/alphabet\n\n3 names.\n"
    )
    assert run("list-tests", "--provider", "words", "--search", "PHAB", "--json").json == {
        "tests": [{"uid": "words/alphabet"}]
    }
    assert "words/…" in run("list-tests", "--search", "wor").out
    assert "others" not in run("list-tests", "--search", "wor").out


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("word", "Did you mean 'words'?"),
        ("others", "does not list its names. Its own documentation does; write others/NAME."),
    ],
)
def test_provider_without_names_is_an_error(run, name, said):
    ended = run("list-tests", "--provider", name)
    assert ended.code == 2
    assert said in " ".join(ended.err.split())
