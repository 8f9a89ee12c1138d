"""`test run`: what pytest is started with, and its exit code as ours; `tests/sessions` has whole sessions."""

import json
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from modelgauge.cli.commands import pytest_session
from modelgauge.evals import pytest_plugin

INTERRUPTED, TERMINATED = object(), object()


class Session:
    """Stands in for the process of pytest.

    Args:
        endings: what happens while the command waits for it, the exit code last.
        run: the folder of the run that it makes.
    """

    def __init__(self, *endings, run=None):
        self.endings, self.run, self.terminated = list(endings), run, 0

    def __call__(self, command, env, stdout):
        self.command, self.env, self.stdout = command, env, stdout
        self.options = json.loads(env[pytest_plugin.OPTIONS])
        self.told = json.loads(Path(self.options["command_file"]).read_text(encoding="utf-8"))
        if self.run is not None:
            Path(self.options["folder_file"]).write_text(str(self.run), encoding="utf-8")
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert not self.endings

    def wait(self):
        ending = self.endings.pop(0)
        if ending is TERMINATED:
            signal.raise_signal(signal.SIGTERM)
            ending = self.endings.pop(0)
        if ending is INTERRUPTED:
            raise KeyboardInterrupt
        return ending

    def terminate(self):
        self.terminated += 1


@pytest.fixture
def session(run, monkeypatch):
    """Run the command; return how it ended and the session that it started."""

    def session(*args, endings=(0,), made=None, plugin=False):
        started = Session(*endings, run=made)
        monkeypatch.setattr(pytest_session, "subprocess", SimpleNamespace(Popen=started))
        return run("test", "run", *args, plugin=plugin), started

    return session


@pytest.mark.parametrize(
    ("endings", "code"),
    [
        *(((theirs,), ours) for theirs, ours in enumerate((0, 1, 1, 70, 2, 2, 6))),
        ((-15,), 130),
        ((INTERRUPTED, -9), 130),
        ((INTERRUPTED, 2), 130),
        ((INTERRUPTED, INTERRUPTED, 1), 1),
        ((TERMINATED, 2), 130),
    ],
)
def test_the_exit_code_of_pytest_becomes_one_of_ours(session, endings, code):
    ended, started = session("test_app.py", endings=endings)
    assert (ended.code, ended.out, ended.err) == (code, "", "")
    assert started.terminated == (TERMINATED in endings)


def test_all_that_is_given_reaches_pytest(session, datasets):
    given = {
        "--repeat": "2", "--display": "failing", "--identifier": "v2", "--judge": "echo", "--data-dir": "data"
    }  # fmt: skip
    named = [part for pair in given.items() for part in pair]
    flags = ("--no-caching", "--ignore-errors", "--skip-on-missing-params")
    args = ("-k", "one", *named, "--plugin", "app.py", "test_app.py", *flags, "-x")
    ended, started = session(*args, plugin=True)
    assert ended.code == 0
    assert started.command[:3] == [sys.executable, "-m", "pytest"]
    assert started.command[-4:] == ["-k", "one", "test_app.py", "-x"]
    assert started.stdout is None
    assert started.told == ["modelgauge", "--plugin", "plugin.py", "test", "run", *args]
    assert started.options == {
        "repeat": 2,
        "use_cache": False,
        "ignore_errors": True,
        "skip_on_missing_params": True,
        "display": "failing",
        "identifier": "v2",
        "folder_file": started.options["folder_file"],
        "command_file": started.options["command_file"],
    }
    assert not Path(started.options["command_file"]).parent.exists()
    assert started.env["MODELGAUGE_DATA_DIR"] == str(datasets / "data")
    assert started.env["MODELGAUGE_JUDGE"] == "echo"
    assert started.env["MODELGAUGE_PLUGINS"].split(os.pathsep) == ["plugin.py", "app.py"]


def test_what_is_not_given_is_left_to_the_session(session, here, monkeypatch):
    monkeypatch.setenv("ELSEWHERE", "kept")
    _, started = session("test_app.py")
    ours = {name for name in started.env if name.startswith("MODELGAUGE_")}
    assert ours == {pytest_plugin.OPTIONS, "MODELGAUGE_DATA_DIR"}
    assert started.env["MODELGAUGE_DATA_DIR"] == str(here / "run_data")
    assert started.env["ELSEWHERE"] == "kept"
    del started.options["folder_file"], started.options["command_file"]
    assert started.options == {
        "repeat": 1,
        "use_cache": True,
        "ignore_errors": False,
        "skip_on_missing_params": False,
        "display": "all",
        "identifier": None,
    }


@pytest.mark.parametrize("installed", [False, True])
@pytest.mark.parametrize("switched_off", [False, True])
def test_our_plugin_is_named_where_pytest_would_not_load_it(session, monkeypatch, installed, switched_off):
    name = pytest_plugin.__name__
    others = [SimpleNamespace(value="another"), SimpleNamespace(value=name)][: 1 + installed]
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: others if group == "pytest11" else []
    )
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)
    if switched_off:
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    _, started = session("test_app.py")
    loads = installed and not switched_off
    assert started.command[3:] == [*([] if loads else ["-p", name]), "test_app.py"]


def test_json_is_the_record_of_the_session_and_nothing_else(session, run, only_run):
    assert run("run-test", "--sut", "echo", "--test", "judged").code == 0
    ended, started = session("test_app.py", "--json", made=only_run())
    assert started.stdout == 2
    assert [one["run_id"] for one in ended.json["records"]] == [only_run().name]
    ended, _ = session("test_app.py", "--json", endings=(1,))
    assert (ended.code, ended.json) == (1, {"records": []})


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--judge", "ecko"), "Did you mean 'echo'?"),
        (("--plugin", "gone.py"), "gone.py: there is no such file"),
        (("--identifier", "a\udcff"), "--identifier 'a\\udcff' is not valid UTF-8. Give another name."),
        (("--repeat", "0"), "--repeat"),
        (("--display", "some"), "--display"),
    ],
)
def test_wrong_usage_starts_no_session(session, args, told):
    ended, started = session("test_app.py", *args, plugin=True)
    assert ended.code == 2
    assert told in " ".join(ended.err.split())
    assert started.endings


@pytest.mark.parametrize(
    ("lacking", "args", "fix"),
    [("pytest", (), "pip install pytest pytest-xdist"), ("xdist", ("-n2",), "pip install pytest-xdist;")],
)
def test_a_package_that_is_not_installed_is_told(session, monkeypatch, lacking, args, fix):
    monkeypatch.setattr(
        pytest_session, "find_spec", lambda name: None if name == lacking else find_spec(name)
    )
    ended, started = session("test_app.py", *args)
    assert (ended.code, bool(started.endings)) == (2, True)
    assert fix in ended.err
    if lacking == "xdist":
        assert session("test_app.py", "-no", "-nx2")[0].code == 0
