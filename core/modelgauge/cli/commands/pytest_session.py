"""`modelgauge test run`: pytest on test files that use `assert_test`, with all cases in one run record."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from signal import strsignal
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import (
    data_dir_option,
    declared_options,
    judge_option,
    no_report_option,
    shared_options,
)
from modelgauge.cli.program import FAILED, INTERNAL, INTERRUPTED, USAGE, LazyGroup, when_terminated
from modelgauge.config.options import options_in
from modelgauge.errors import RunStoppedError, UsageError
from modelgauge.evals.session_options import TestRunOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modelgauge.cli.app import App

_STDERR = 2  # the file descriptor
_STOPPED_BY_PYTEST = 2  # by Ctrl-C; but also by a file that cannot be collected, and by -x with workers
# Its codes, and ours.
_EXIT_CODES = {0: 0, 1: FAILED, _STOPPED_BY_PYTEST: FAILED, 3: INTERNAL, 4: USAGE, 5: USAGE}
_INTERRUPTIONS = (1, 2, 15)  # SIGHUP, which Windows lacks, SIGINT and SIGTERM
_NUMBER_OF_PROCESSES = re.compile(r"-n\d*\Z|-nauto\Z|-nlogical\Z|--numprocesses(=|\Z)")


@click.group("test", cls=LazyGroup)
def test() -> None:
    """Run the tests of your own app: test files for pytest that call `assert_test`."""


@test.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": True})
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED, metavar="FILE... [PYTEST_OPTIONS]")
@declared_options(options_in(TestRunOptions))
@no_report_option
@judge_option
@data_dir_option
@shared_options
def run(app: App, /, *, pytest_args: tuple[str, ...], judge: str | None, **given: Any) -> None:
    """Run test files with pytest, and record the cases of all `assert_test` calls as one run.

    Other options than those below go to pytest: -n 4 (with pytest-xdist), -k, -x, -v, … The exit code is 1 if a test
    failed or a file could not be collected, 2 if there is no test to run.

    \b
    Examples:
      modelgauge test run test_app.py
      modelgauge test run test_app.py -n 4 --display failing --identifier "new prompt"
    """
    if find_spec("pytest") is None:
        raise UsageError("pytest is not installed.", fix="Install it: pip install pytest pytest-xdist")
    if find_spec("xdist") is None and any(_NUMBER_OF_PROCESSES.match(argument) for argument in pytest_args):
        raise UsageError(
            "-n runs tests in several processes, which needs pytest-xdist, and that is not installed.",
            fix="Install it: pip install pytest-xdist; or leave out -n.",
        )
    app.configure(judge=judge)
    _check_names(app)
    _check_identifier(given["identifier"])
    with TemporaryDirectory(prefix="modelgauge-") as folder:
        record_path, command = Path(folder, "run"), Path(folder, "command")
        command.write_text(json.dumps(["modelgauge", *map(app.redact, app.args)]), encoding="utf-8")
        chosen = {name: value for name, value in given.items() if value is not None}
        options = TestRunOptions(folder_file=str(record_path), command_file=str(command), **chosen)
        environment = _environment(app, options)
        app.exit_code = _pytest(pytest_args, environment, _STDERR if app.as_json else None)
        if app.as_json:
            _show_record(app, record_path)


def _check_names(app: App) -> None:
    """Check plugins and judge: a wrong name would fail every test.

    Raises:
        PluginError: a local plugin does not work.
        UnknownNameError: there is no such judge.
    """
    judge = app.settings.judge
    if app.settings.plugins or judge is not None:
        suts = app.plugins.suts
        if judge is not None:
            suts.resolve(judge)


def _check_identifier(identifier: str | None) -> None:
    """Refuse a name that the record could not hold, before the tests run.

    Raises:
        UsageError: its bytes are not UTF-8.
    """
    try:
        (identifier or "").encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(
            f"--identifier {identifier!r} is not valid UTF-8.", fix="Give another name."
        ) from None


def _environment(app: App, options: TestRunOptions) -> dict[str, str]:
    """Return the environment of pytest, which xdist's workers inherit."""
    from modelgauge.evals.pytest_plugin import OPTIONS

    settings = app.settings
    made = {
        **os.environ,
        OPTIONS: options.as_json(),
        "MODELGAUGE_DATA_DIR": str(settings.data_dir.absolute()),
    }
    if not settings.report:
        made["MODELGAUGE_REPORT"] = "false"
    if settings.judge is not None:
        made["MODELGAUGE_JUDGE"] = settings.judge
    if settings.plugins:
        made["MODELGAUGE_PLUGINS"] = os.pathsep.join(settings.plugins)
    return made


def _show_record(app: App, record_path: Path) -> None:
    """Print the record of the session, whose folder pytest wrote to a file; none where no test made a case."""
    from modelgauge.api import load_record

    records = [load_record(record_path.read_text(encoding="utf-8"))] if record_path.exists() else []
    app.show_json({"records": [record.model_dump(mode="json") for record in records]})


def _pytest(args: Sequence[str], environment: dict[str, str], output: int | None) -> int:
    """Run pytest to its end in a process of its own, and return the exit code of the command.

    Raises:
        RunStoppedError: pytest was ended by a signal that is no interruption.
    """
    sys.stdout.flush()
    command = [sys.executable, "-m", "pytest", *_plugin_arguments(), *args]
    process = subprocess.Popen(command, env=environment, stdout=output)  # noqa: S603  the user's own
    interruptions = []

    def pass_on() -> None:
        """Interrupt pytest, whose plugin of ours takes SIGTERM for that."""
        interruptions.append("SIGTERM")
        process.terminate()

    with process, when_terminated(pass_on):
        while True:
            try:
                code = process.wait()
            except KeyboardInterrupt:
                interruptions.append("SIGINT")  # pytest was interrupted too, and says what it did
                continue
            if -code in _INTERRUPTIONS or (interruptions and (code < 0 or code == _STOPPED_BY_PYTEST)):
                return INTERRUPTED
            if code < 0:
                raise RunStoppedError(
                    f"pytest was ended by signal {-code} ({strsignal(-code)}).",
                    fix="A library may have crashed, or the memory was used up. `modelgauge runs` lists the run with "
                    "the test cases that were judged.",
                )
            return _EXIT_CODES.get(code, code)


def _plugin_arguments() -> list[str]:
    """Return arguments that load our pytest plugin if it does not load by itself."""
    from importlib.metadata import entry_points

    from modelgauge.evals import pytest_plugin

    name = pytest_plugin.__name__
    loads = any(entry_point.value == name for entry_point in entry_points(group="pytest11"))
    return [] if loads and not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD") else ["-p", name]
