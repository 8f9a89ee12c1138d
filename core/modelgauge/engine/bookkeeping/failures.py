"""Failures as data: the error of an item, its stage, and the record of it."""

import asyncio
import os
import re
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar, TypeVarTuple

from modelgauge.data.annotations import Interaction
from modelgauge.data.item_records import Failure, Stage, TestItemExceptionRecord
from modelgauge.data.items import TestItem
from modelgauge.data.results import RunFailure, RunStage
from modelgauge.engine.bookkeeping.app_trace import get_traces
from modelgauge.errors import ModelGaugeError, RedactedAnswerError, RunStoppedError
from modelgauge.wording.phrases import ends

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_RESUME = re.compile(r",? ?(and continue with|then run|Run)? ?`modelgauge resume.*", re.DOTALL)
_OPTION = re.compile(r"--([a-z-]+)")  # of the command line; in Python it is an argument
_LONGEST_MESSAGE = 10_000
_LONGEST_TRACEBACK = 40_000

_NOT_OF_AUTHORS = {__name__.partition(".")[0], *sys.stdlib_module_names}

NOT_OF_THE_ITEM = (KeyboardInterrupt, asyncio.CancelledError, GeneratorExit)
"""Exceptions that come from outside while an author's code runs, and are passed on."""


def is_from_outside(error: BaseException) -> bool:
    """Return whether an exception raised in an author's code came from outside and must be passed on.

    A cancellation that nobody asked for (some clients raise one when a connection is lost) is an error like any other.
    """
    if not isinstance(error, asyncio.CancelledError):
        return isinstance(error, NOT_OF_THE_ITEM)
    try:
        task = asyncio.current_task()
    except RuntimeError:  # in a thread, where nobody cancels
        return False
    return task is None or task.cancelling() > 0


_forks = 0  # between this process and the first; a number costs less than the id of the process


def _count_fork() -> None:
    global _forks  # noqa: PLW0603  of this process
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def of_author(function: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call an author's code; a child process that it forks ends there, and is no second engine."""
    forks = _forks
    try:
        result = function(*args)
    except BaseException as error:
        if _forks != forks:
            _leave(error)
        if isinstance(error, GeneratorExit):  # in a plain function nothing but its own code raises it
            raise as_exception(error) from error
        raise
    if _forks != forks:
        _leave()
    return result


async def awaited_of_author(awaitable: Awaitable[T]) -> T:
    """Await an author's code; a child process that it forks ends there, and is no second engine."""
    forks = _forks
    try:
        result = await awaitable
    except BaseException as error:
        if _forks != forks:
            _leave(error)
        raise
    if _forks != forks:
        _leave()
    return result


def _leave(error: BaseException | None = None) -> None:
    """End a forked child as its program would end: with the code of `sys.exit`, or the traceback of another error.

    Args:
        error: that the author's code raised.
    """
    code = error.code if isinstance(error, SystemExit) else error
    if isinstance(code, BaseException):
        traceback.print_exception(code)
    elif not isinstance(code, int | None):
        sys.stderr.write(f"{code}\n")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code & 0xFF if isinstance(code, int) else int(code is not None))


def as_exception(error: BaseException) -> Exception:
    """Return an exception that a future can carry: an author's SystemExit, say, becomes a plain error."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"{type(error).__name__}: {describe_error(error)}")
    wrapped.__cause__ = error
    return wrapped


class StageError(Exception):
    """A failure of an item, with the stage and the object that it came from; never leaves the engine.

    Attributes:
        traces: what an observed app did until it failed.
    """

    def __init__(self, stage: Stage, source_uid: str, error: BaseException) -> None:
        self.stage: Stage = stage
        self.source_uid = source_uid
        self.error = error
        self.traces = get_traces(error)
        super().__init__(stage, source_uid, error)


class AtStage:
    """Context manager around author's code for an item: its exceptions become a StageError, others pass through.

    Args:
        stage: of the item.
        source_uid: the object whose code it is.
    """

    __slots__ = ("_source_uid", "_stage")

    def __init__(self, stage: Stage, source_uid: str) -> None:
        self._stage: Stage = stage
        self._source_uid = source_uid

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, StageError) or is_from_outside(error):
            return
        raise StageError(self._stage, self._source_uid, as_exception(error)) from error


def exception_record(
    index: int, item: TestItem, interactions: Sequence[Interaction], failure: StageError
) -> TestItemExceptionRecord:
    """Return the record of a failed item, including everything that was paid for."""
    return TestItemExceptionRecord(
        index=index,
        test_item=item,
        interactions=tuple(interactions),
        failures=(described(failure),),
        redacted=isinstance(failure.error, RedactedAnswerError),
    )


def described(failure: StageError, repeat: int | None = None) -> Failure:
    """Describe a failure as data.

    Args:
        failure: what was raised.
        repeat: the repeat that failed, of an item that is scored by its others; None if the whole item failed.
    """
    error = failure.error
    return Failure(
        repeat=repeat,
        stage=failure.stage,
        source_uid=failure.source_uid,
        error_type=type(error).__name__,
        message=describe_error(error),
        traceback=_traceback(error),
        traces=failure.traces,
    )


def run_failure(stage: RunStage, error: Exception, again: str | None = None) -> RunFailure:
    """Describe as data why a pair ended early.

    Args:
        stage: where.
        error: what was raised.
        again: what goes on with the run; None if `modelgauge resume` does, as the errors advise.
    """
    message = describe_error(error)
    if again is not None and isinstance(error, RunStoppedError):
        fix = _OPTION.sub(lambda option: option[1].replace("-", "_"), _RESUME.sub("", error.fix)).rstrip(" .")
        message = printable(" ".join([error.problem, *([f"{fix}."] if fix else []), again]))
    return RunFailure(
        stage=stage,
        error_type=type(error).__name__,
        message=message if stage == "run" else f"{message.rstrip(' .')}{locate_error(error)}",
        traceback=_traceback(error),
    )


def add_note(error: Exception, text: str) -> None:
    """Say more about an error, once, also where one object is raised again and again.

    Not by its own `add_note`, since some classes of exceptions refuse to be changed.
    """
    notes = error.__dict__.setdefault("__notes__", [])
    if text not in notes:
        notes.append(text)


def describe_error(error: BaseException) -> str:
    """Describe an author's exception by its message and notes, even if its `__str__` raises."""
    try:
        text = str(error)
    except NOT_OF_THE_ITEM:
        raise
    except BaseException as second:  # noqa: BLE001  likewise the author's
        text = f"(no message: its __str__ raised {type(second).__name__})"
    text = ends(text, _LONGEST_MESSAGE)
    notes = [note for note in getattr(error, "__notes__", ()) if isinstance(note, str)]
    if notes:
        text = " ".join([f"{text.rstrip(' .')}." if text.strip() else "", *notes]).strip()
    return printable(ends(text, _LONGEST_MESSAGE))


def locate_error(error: BaseException) -> str:
    """Return the place in the author's file where an error was raised, as ` (my_test.py, line 12)`, or "" for our
    own code.
    """
    places = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in _NOT_OF_AUTHORS
    ]
    own = [place for place in places if place[0] == places[0][0]]  # what it called may be anybody's
    return f" ({own[-1][0]}, line {own[-1][1]})" if own else ""


@contextmanager
def explaining(kind: type[ModelGaugeError], problem: str, fix: str) -> Iterator[None]:
    """Report what an author's code raises as an error of the library: its problem, then the exception and its place.

    Args:
        kind: the class of the error.
        problem: the beginning of its message.
        fix: of the error.
    """
    try:
        yield
    except (ModelGaugeError, *NOT_OF_THE_ITEM):
        raise
    except BaseException as error:
        why = f"{type(error).__name__}: {describe_error(error).rstrip('.')}{locate_error(error)}"
        raise kind(f"{problem}: {why}.", fix=fix) from error


def printable(text: str) -> str:
    """Escape lone surrogates so that the text can be encoded as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _traceback(error: BaseException) -> str:
    return printable(ends("".join(traceback.format_exception(error)), _LONGEST_TRACEBACK))
