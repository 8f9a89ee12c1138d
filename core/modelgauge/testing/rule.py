"""What a rule is: a stable id, the promise that it holds an author to, and a function that looks.

A rule's function yields what it found; where it yields nothing that is wrong, the promise is kept.
"""

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

from modelgauge.config.targets import describe
from modelgauge.errors import ModelGaugeError
from modelgauge.testing.report import Finding, Status

_PACKAGE = Path(__file__).resolve().parents[1]


class Subject(Protocol):
    """What rules are held against."""

    @property
    def kind(self) -> str:
        """plugin, test, sut, annotator or metric."""

    @property
    def name(self) -> str:
        """How it is called in the report."""

    def redact(self, text: str) -> str:
        """A text without the secrets that it was given."""


S = TypeVar("S", bound=Subject)


class Note(NamedTuple):
    """One thing that a rule has to say."""

    status: Status
    message: str
    fix: str = ""


def problem(message: str, *, fix: str) -> Note:
    """The promise is broken."""
    return Note(Status.problem, message, fix)


def warning(message: str, *, fix: str) -> Note:
    """The promise is kept, and something should be looked at."""
    return Note(Status.warning, message, fix)


def remark(message: str) -> Note:
    """The promise is kept, and this is worth knowing."""
    return Note(Status.ok, message)


class NotApplicableError(Exception):
    """The rule cannot be held against this subject, for the reason given; never leaves the kit."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[S]):
    """A promise, and how it is checked.

    Args:
        id: stable; what reports and `--json` name.
        promise: what is promised, one sentence.
        check: yields what it finds; raises `NotApplicableError` where there is nothing to check.
    """

    id: str
    promise: str
    check: Callable[[S], Iterator[Note]]

    def findings(self, subject: S) -> list[Finding]:
        """Hold the rule against a subject; whatever the subject's code raises is a finding too."""
        try:
            notes = list(self.check(subject))
        except NotApplicableError as reason:
            notes = [Note(Status.not_applicable, str(reason))]
        except (Exception, SystemExit) as error:  # noqa: BLE001  what is checked is anybody's code
            notes = [problem(f"It raised {told(error)}.", fix="Mend what raises.")]
        return [
            Finding(
                self.id, self.promise, subject.kind, subject.name, note.status, *map(subject.redact, note[1:])
            )
            for note in notes or [Note(Status.ok, "")]
        ]


def rule(identifier: str, promise: str) -> Callable[[Callable[[S], Iterator[Note]]], Rule[S]]:
    """Make a rule of the function below."""
    return lambda check: Rule(identifier, promise, check)


def told(error: BaseException) -> str:
    """An error in one line, with the line of its author's code that raised it."""
    what = str(error).rstrip(".") if isinstance(error, ModelGaugeError) else describe(error)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if _PACKAGE not in Path(frame.filename).resolve().parents
    ]
    return f"{what} ({frames[-1].filename}, line {frames[-1].lineno})" if frames else what
