"""`pytest` and `modelgauge test run` in processes of their own: workers, exit codes, wrong usage, interruptions."""

import json
import os
import re
import signal
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from subprocess import Popen

import pytest
from click.testing import CliRunner
from processes import in_process_of_its_own, process_of_its_own
from pytest_sessions import PASSING, TEST_FILE, check_record, records

from modelgauge import load_record
from modelgauge.cli.commands import pytest_session
from modelgauge.cli.main import cli
from modelgauge.engine.run_files.folder import all_runs
from modelgauge.runs.recorded_run import read_state


@pytest.fixture
def project(here):
    """The working directory, with one test file."""
    (here / "test_app.py").write_text(TEST_FILE, encoding="utf-8")
    return here


def test_the_cases_of_all_workers_end_in_one_run_record(project):
    done = in_process_of_its_own(
        "modelgauge", "test", "run", "test_app.py", "-n", "4", "-q", "--identifier", "v2", "--json"
    )
    assert done.returncode == 1, done.stdout + done.stderr
    (record,) = records(project)
    check_record(record, done.stderr)
    assert [one["run_id"] for one in json.loads(done.stdout)["records"]] == [record.run_id]
    assert (record.identifier, record.test_uid) == ("v2", "v2")


@pytest.mark.parametrize(
    "args", [["-n", "4"], ["-n4"], ["-nauto"], ["--numprocesses=2"], ["--numprocesses", "2"]]
)
def test_several_processes_name_the_package_that_they_need(args, project, monkeypatch):
    monkeypatch.setattr(
        pytest_session, "find_spec", lambda name: None if name == "xdist" else find_spec(name)
    )
    done = CliRunner().invoke(cli, ["test", "run", "test_app.py", *args])
    assert done.exit_code == 2
    assert "pip install pytest-xdist" in done.stderr
    assert not (project / "run_data").exists()


def test_a_session_that_does_not_use_modelgauge_imports_and_prints_nothing_more_of_it(project):
    (project / "test_app.py").write_text(
        "import sys\n"
        "def test_nothing():\n"
        "    found = {name for name in sys.modules if name.partition('.')[0] in\n"
        "        ('modelgauge', 'pydantic', 'numpy', 'click', 'rich', 'diskcache', 'tqdm')}\n"
        "    own = {'modelgauge.wording', 'modelgauge.wording.lazy_names'}\n"
        "    assert found - own == {'modelgauge', 'modelgauge.evals', 'modelgauge.evals.pytest_plugin'}\n",
        encoding="utf-8",
    )
    done = in_process_of_its_own("pytest", "-q", "test_app.py", kind=Popen)
    assert done.returncode == 0, done.stdout
    assert "modelgauge" not in done.stdout + done.stderr
    assert not (project / "run_data").exists()


def test_the_run_of_workers_is_called_by_the_time_at_which_its_session_began(project):
    begun = "from modelgauge.engine.run_files.folder import new_id\nPath('begun').write_text(new_id())\n"
    source = WAITING.replace("from pathlib import Path\n", "from pathlib import Path\n" + begun)
    (project / "test_app.py").write_text(source, encoding="utf-8")
    in_process_of_its_own("pytest", "test_app.py::test_a", "-q", "-n", "1")
    (record,) = records(project)
    assert record.run_id < (project / "begun").read_text(encoding="utf-8")
    assert record.run_id.startswith(re.sub(r"[-:]", "", record.run_timestamp[:19]).replace("T", "-"))


def test_cases_are_found_where_a_fixture_has_the_workers_leave_them(project):
    fixture = (
        "import os\n\n"
        "@pytest.fixture(scope='session', autouse=True)\n"
        "def elsewhere(tmp_path_factory):\n"
        "    os.environ['MODELGAUGE_DATA_DIR'] = str(tmp_path_factory.mktemp('data'))\n"
    )
    (project / "test_app.py").write_text(TEST_FILE + fixture, encoding="utf-8")
    done = in_process_of_its_own("pytest", "test_app.py", "-q", "-n", "2", "--basetemp", "temporary")
    (record,) = records(project)
    check_record(record, done.stdout)
    assert [*project.glob("temporary/*/*/runs/*")] == []


@pytest.mark.parametrize(("source", "code"), [("def test_a(): pass", 0), ("x = 1", 2)])
def test_exit_codes(project, source, code):
    (project / "test_app.py").write_text(source, encoding="utf-8")
    done = in_process_of_its_own("modelgauge", "test", "run", "test_app.py", "-q", "--json")
    assert done.returncode == code
    assert json.loads(done.stdout) == {"records": []}


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--plugin", "gone.py"), "gone.py: there is no such file"),
        (("--judge", "nobody"), "There is no SUT 'nobody'"),
        (("--repeat", "0"), "--repeat"),
        (("--display", "nothing"), "'nothing' is not one of"),
        (("--identifier", "a\udcff"), "is not valid UTF-8"),
        (("--nonsense",), "unrecognized arguments: --nonsense"),
        (("gone.py",), "not found: gone.py"),
    ],
)
def test_wrong_usage_is_told_before_any_test(project, args, told):
    done = in_process_of_its_own("modelgauge", "test", "run", "test_app.py", "-q", *args)
    assert done.returncode == 2, done.stdout
    assert told in done.stderr
    assert not (project / "run_data").exists()


def test_a_file_that_cannot_be_collected_fails_and_is_no_interruption(project):
    (project / "test_app.py").write_text("def test_a(:\n", encoding="utf-8")
    done = in_process_of_its_own("modelgauge", "test", "run", "test_app.py", "-q")
    assert done.returncode == 1
    assert "SyntaxError" in done.stdout


def test_workers_that_stop_at_the_first_failure_fail_and_leave_their_cases(project):
    done = in_process_of_its_own("modelgauge", "test", "run", "test_app.py", "-n", "2", "-x", "-q")
    assert done.returncode == 1, done.stdout
    (record,) = records(project)
    assert record.run_id in done.stdout
    assert record.result["passed"].value < 1


WAITING = (
    PASSING
    + """
import time
from pathlib import Path

def test_a():
    assert_test(LLMTestCase("q", "a"), [Always()])

def test_b():
    Path("waiting").touch()
    time.sleep(60)
"""
)


def wait_for(file, process):
    while not file.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups to interrupt")
@pytest.mark.parametrize(
    ("send", "number", "workers"),
    [
        (os.killpg, signal.SIGINT, ()),
        (os.killpg, signal.SIGINT, ("-n", "1")),
        (os.kill, signal.SIGTERM, ()),
        (os.kill, signal.SIGTERM, ("-n", "1")),
        (os.killpg, signal.SIGTERM, ("-n", "1")),
    ]
    if sys.platform != "win32"
    else [],
)
def test_an_interrupted_session_keeps_the_cases_that_were_judged(project, send, number, workers):
    (project / "test_app.py").write_text(WAITING, encoding="utf-8")
    with process_of_its_own("modelgauge", "test", "run", "test_app.py", "-q", *workers) as process:
        wait_for(project / "waiting", process)
        (run,) = all_runs(project / "run_data")
        assert read_state(run) == ("running", None)
        send(process.pid, number)
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, output + errors
    (record,) = records(project)
    assert record.counts.scored == 1
    assert "1 of 1 test case passed." in output
    assert (record.cancelled, read_state(run)[0]) == (True, "interrupted")
    assert record.notes == (
        "The session was interrupted: pytest had collected 2 tests. There are cases of 1 here.",
    )


@pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups to end")
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
def test_a_killed_session_leaves_a_run_with_the_cases_that_were_judged(project, workers):
    (project / "test_app.py").write_text(WAITING, encoding="utf-8")
    with process_of_its_own("pytest", "test_app.py", "-q", *workers) as process:
        wait_for(project / "waiting", process)
        other = in_process_of_its_own("pytest", "test_app.py::test_a", "-q")
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=120)
    killed, finished = all_runs(project / "run_data")
    assert other.returncode == 0
    assert [read_state(one)[0] for one in (killed, finished)] == ["killed", "finished"]
    (item,) = killed.items()
    assert (item.test_item.id, item.measurements["passed"]) == ("test_app.py::test_a", 1)
    command = killed.command_line()
    assert (command[0], set(command[1:])) == ("pytest", {"-q", "test_app.py", *workers})
    shown = in_process_of_its_own("modelgauge", "show", killed.run_id)
    assert "1 scored, 0 failed so far" in shown.stdout
    refused = in_process_of_its_own("modelgauge", "resume", killed.run_id)
    assert "Run the tests again: pytest" in refused.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_session_that_crashes_was_not_interrupted(project):
    (project / "test_app.py").write_text(
        "import os, signal\ndef test_a():\n    os.kill(os.getpid(), signal.SIGKILL)\n", encoding="utf-8"
    )
    done = in_process_of_its_own("modelgauge", "test", "run", "test_app.py", "-q")
    assert done.returncode == 4, done.stdout
    assert "pytest was ended by signal 9 (Killed)" in done.stderr


def test_plugins_judge_and_data_folder_reach_the_workers(project):
    (project / "plugin.py").write_text(
        "from modelgauge import FunctionSUT, hookimpl\n"
        "def judge(question):\n"
        '    return \'{"verdicts": [{"verdict": "yes"}], "statements": ["a"], "reason": "ok"}\'\n'
        "@hookimpl\n"
        "def modelgauge_register_suts(register):\n"
        "    register('judge', FunctionSUT, judge, version=1)\n",
        encoding="utf-8",
    )
    (project / "test_app.py").write_text(
        "from modelgauge.evals import Golden, assert_test, observe\n"
        "@observe\n"
        "def app(question):\n"
        "    return 'an answer'\n"
        "def test_app():\n"
        "    assert_test(golden=Golden('q'), observed_callback=app)\n",
        encoding="utf-8",
    )
    given = ("--plugin", "plugin.py", "--judge", "judge", "--data-dir", "data", "-n", "2", "-q")
    done = in_process_of_its_own("modelgauge", "test", "run", "test_app.py", *given)
    assert done.returncode == 0, done.stdout
    (run,) = (project / "data" / "runs").iterdir()
    assert load_record(run).result["AnswerRelevancyMetric"].value == 1
    manifest = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert manifest["command"] == ["modelgauge", "test", "run", "test_app.py", *given]
    assert manifest["annotators"].keys() == {"AnswerRelevancyMetric"}
    assert manifest["judges"]["AnswerRelevancyMetric"]["judge"]["uid"] == "judge"
    assert manifest["inputs"]["judge"] == "judge"
    assert [Path(one).name for one in manifest["inputs"]["plugins"]] == ["plugin.py"]
    assert not (project / "run_data").exists()
