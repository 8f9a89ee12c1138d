"""The plugin that pytest loads, in every session of every project that has ModelGauge installed.

So it imports only the standard library, and does next to nothing: what a session of `assert_test` needs is in
`session.py`, which is imported by the first `assert_test`. It registers no options of its own; `modelgauge
test run` hands its options over in an environment variable, which xdist's workers inherit.
"""

import json
import os
import signal
import tempfile
import threading
import time
import traceback
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from modelgauge.evals.session import Session

VARIABLE = "MODELGAUGE_PYTEST_SESSION"
"""Environment variable with the place and time at which the session began, for xdist's workers, and their folder.

The name of its run consists of its `mark` and the time. The run lies in the folder from the settings."""

OPTIONS = "MODELGAUGE_PYTEST_OPTIONS"
"""The options of `modelgauge test run`, as JSON."""

UNREPEATED = "unrepeated.txt"
"""File in which the processes of a session list the tests that cannot be repeated."""

_STEP = "modelgauge_repeat"
_open: list["_OpenSession"] = []
_lock = threading.Lock()


class Place(NamedTuple):
    """A test among those of the session.

    Args:
        number: its number in the order of the session. Repeats of a test count once.
        test: its id, without the repeat.
        repeat: which of the times that `--repeat` asks for it is, from 0.
        rerun: how often it was begun before: plugins such as pytest-rerunfailures run a test that failed again.
        is_unique: whether it is the only time that the session runs the test with this number.
    """

    number: int
    test: str
    repeat: int = 0
    rerun: int = 0
    is_unique: bool = False


class _OpenSession:
    """A session of pytest in this process, whether it uses ModelGauge or not.

    Args:
        config: pytest's.
    """

    def __init__(self, config: Any) -> None:
        self.is_worker = hasattr(config, "workerinput")
        self.outside = os.environ.get(VARIABLE)
        if not (self.is_worker and self.outside):
            where = {
                "folder": f"{tempfile.gettempdir()}/modelgauge-{os.getpid()}-{os.urandom(8).hex()}",
                "cwd": str(Path.cwd()),
                "begun": time.time(),
                "mark": f"{os.urandom(1)[0] % 16:x}",
                "each": getattr(config.option, "dist", "no") == "each",  # xdist: each worker runs all tests
                "unrepeated": UNREPEATED,
            }
            os.environ[VARIABLE] = json.dumps(where)
        self.where: dict[str, Any] = json.loads(os.environ[VARIABLE])
        of_worker = getattr(config, "workerinput", {}).get("mainargv")
        self.args = [*map(str, of_worker[1:] if of_worker else config.invocation_params.args)]
        self.used: Session | None = None
        self.interrupted = False
        self.failure = ""
        self._items: list[Any] = []
        self._places: dict[str, Place] | None = None
        self._begun: Counter[str] = Counter()
        self._process = os.getpid()

    def collected(self, items: list[Any]) -> None:
        """Keep the tests of the session; there may be cases before."""
        self._items, self._places = items, None

    def place(self, test: str) -> Place:
        """Return the position of a test in the session."""
        if self._places is None:
            numbers: dict[str, int] = {}
            repeats = [(item.nodeid, *_split_repeat(item)) for item in self._items]
            self._places = {
                nodeid: Place(numbers.setdefault(test, len(numbers)), test, repeat)
                for nodeid, test, repeat in repeats
            }
        rerun = max(0, self._begun[test] - 1)
        if test not in self._places:
            return Place(len(self._places), test, rerun=rerun)
        place = self._places[test]
        is_unique = place.repeat == rerun == 0 and self._process == os.getpid() and not self.where["each"]
        return place._replace(rerun=rerun, is_unique=is_unique)

    def begin(self, test: str) -> None:
        """Count that a test begins."""
        self._begun[test] += 1

    def close(self) -> None:
        """Put the environment back: a session may run inside another's test."""
        if self.used is not None:
            self.used.close()
        if self.outside is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = self.outside


def session() -> "Session | None":
    """Return the current session of pytest; None outside a session."""
    if not _open:
        return None
    innermost = _open[-1]
    with _lock:  # several threads of one test may be the first
        if innermost.used is None:
            if innermost.is_worker:
                # By this the process that makes the record knows that there is one to make, and where its cases are.
                Path(innermost.where["folder"]).mkdir(mode=0o700, parents=True, exist_ok=True)
            innermost.used = _session(innermost)
        return innermost.used


def place(test: str) -> Place:
    """Return the position of a test in the order of the current session."""
    return _open[-1].place(test)


def _session(opened: _OpenSession) -> "Session":
    module = import_module("modelgauge.evals.session")  # here, since only those who use it shall pay
    made: Session = module.Session(opened.where, os.environ.get(OPTIONS, "{}"), opened.args, place)
    return made


# --- pytest's hooks -------------------------------------------------------------------------------------


def pytest_configure(config: Any) -> None:
    """Open the session, with its place in an environment variable."""
    if OPTIONS in os.environ and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupt)
    _open.append(_OpenSession(config))


def _interrupt(number: int, _: object) -> None:
    """End the session as Ctrl-C does, once: SIGTERM may come from `modelgauge test run`, and to all its processes."""
    signal.signal(number, signal.SIG_IGN)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job in the background
        import_module("modelgauge.engine.loop.blocking").interrupt_main()
    else:
        signal.raise_signal(signal.SIGINT)


def pytest_unconfigure(config: Any) -> None:
    """Close the session of this process, and restore the environment."""
    del config
    if _open:
        _open.pop().close()


def pytest_generate_tests(metafunc: Any) -> None:
    """Run each test several times, where `modelgauge test run --repeat` says so."""
    repeat = _repeats()
    if repeat > 1:
        metafunc.fixturenames.append(_STEP)
        metafunc.parametrize(_STEP, range(repeat), ids=[f"run{step + 1}" for step in range(repeat)])


def pytest_collection_finish(session: Any) -> None:
    """Keep the order of the tests, and say which are not run several times: methods of unittest have no parameters."""
    if not _open:
        return
    opened = _open[-1]
    opened.collected(session.items)
    left = [item.nodeid for item in session.items if not _is_repeated(item)]
    if _repeats() > 1 and left:
        folder = Path(opened.where["folder"])
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / UNREPEATED).write_text("\n".join(left), encoding="utf-8")


def _is_repeated(item: Any) -> bool:
    return _STEP in getattr(getattr(item, "callspec", None), "params", ())


def _split_repeat(item: Any) -> tuple[str, int]:
    """Split the id of a test into the id without its repeat, and the repeat."""
    if not _is_repeated(item):
        return item.nodeid, 0
    params = list(item.callspec.params)
    step = item.callspec.params[_STEP]
    ours, given = f"run{step + 1}", item.callspec.id  # the ids of all parameters, in the order of these
    if given == ours:
        rest = ""
    elif params[0] == _STEP:
        rest = given.removeprefix(f"{ours}-")
    elif params[-1] == _STEP:
        rest = given.removesuffix(f"-{ours}")
    else:
        rest = given.replace(f"-{ours}-", "-", 1)
    named = item.nodeid.removesuffix(f"[{given}]")
    return (f"{named}[{rest}]" if rest else named), step


def _repeats() -> int:
    return int(json.loads(os.environ.get(OPTIONS, "{}")).get("repeat", 1))


def pytest_runtest_setup(item: Any) -> None:
    """Count how often each test is begun."""
    if _open:
        _open[-1].begin(item.nodeid)


def pytest_keyboard_interrupt(excinfo: Any) -> None:
    """Note that the session ends before its time; what pytest calls Interrupted it does itself: errors, -x, …"""
    if _open:
        _open[-1].interrupted = excinfo.typename != "Interrupted"


def pytest_sessionfinish(session: Any) -> None:
    """Make one run record of all cases; the workers of xdist leave that to the process that started them."""
    opened = _open[-1] if _open else None
    if opened is None or opened.is_worker:
        return
    if opened.used is None and not Path(opened.where["folder"]).is_dir():
        return
    try:
        opened.used = opened.used or _session(opened)
        opened.used.finish(session.testscollected if opened.interrupted else None)
    except Exception as error:  # noqa: BLE001  what pytest has to say is not lost for it
        left = opened.where["folder"] if opened.used is None else opened.used.folder
        opened.failure = _without_record(error, str(left))
        session.exitstatus = session.exitstatus or 1


def _without_record(error: Exception, folder: str) -> str:
    """Return the message if no record could be made; with the traceback unless the error was raised on purpose."""
    is_expected = hasattr(error, "fix") or isinstance(error, OSError)
    why = str(error) if is_expected else "".join(traceback.format_exception(error))
    left = f"\nWhat its test cases left is in {folder}" if Path(folder).is_dir() else ""
    return f"There is no record of this session: {why}{left}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Show the cases of the session, or why there is no record."""
    opened = _open[-1] if _open else None
    if opened is None:
        return
    text = opened.failure or ("" if opened.used is None else opened.used.summary)
    if text:
        terminalreporter.section("modelgauge")
        terminalreporter.write_line(text)
