"""A case is one promise and one subject; running it gives a finding, and findings make a report.

The promises are functions in `plugin_checks`, `object_checks` and `item_checks`: the docstring says the promise. A
check returns a remark or nothing where the promise is kept; else it raises `Problem`, `Caution` or `SkipTest`.
"""

import importlib
import inspect
import os
import re
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from unittest import SkipTest

from modelgauge.config.import_by_name import describe
from modelgauge.errors import ModelGaugeError

_NOT_THE_AUTHORS = (f"{Path(__file__).parents[1]}{os.sep}", f"{Path(importlib.__file__).parent}{os.sep}", "<")
_FRAME = re.compile(r'^ *File "(.+)", line (\d+)', re.MULTILINE)


class Problem(AssertionError):  # noqa: N818  of Finding's words
    """Raised by a rule whose promise is broken.

    Args:
        message: what is wrong.
        fix: what its author can do.
        at: where to look for the author's line, in this order: tracebacks, or names of methods.
    """

    def __init__(self, message: str, fix: str, *at: str) -> None:
        super().__init__(message)
        self.fix, self.at = fix, at


class Caution(Problem):
    """A promise is kept, and something should still be checked."""


def describe_error(error: BaseException) -> str:
    """Describe an error in one line, without its last full stop."""
    return str(error).rstrip(".") if isinstance(error, ModelGaugeError) else describe(error)


def format_traceback(error: BaseException) -> str:
    """Format the traceback of an error and of its causes."""
    return "".join(traceback.format_exception(error))


def author_line(trace: str) -> str:
    """Return where an author's code raised an error, as `file:line`; "" if the traceback does not show it."""
    frames = [frame for frame in _FRAME.findall(trace) if not frame[0].startswith(_NOT_THE_AUTHORS)]
    own = [line for file, line in frames if file == frames[0][0]]  # what the author calls is somebody else's
    return f"{frames[0][0]}:{own[-1]}" if own else ""


def defined_at(code: Any) -> str:
    """Return where an author's class or function is defined, as `file:line`; "" if it is neither, or unknown."""
    try:
        code = inspect.unwrap(code)
        file, line = str(inspect.getsourcefile(code)), inspect.getsourcelines(code)[1]
    except (OSError, TypeError):
        return ""
    return "" if file.startswith(_NOT_THE_AUTHORS) else f"{file}:{line}"


class Status(StrEnum):
    """The outcome of a rule."""

    ok = "ok"
    warning = "warning"
    problem = "problem"
    not_applicable = "not applicable"


_WORDS = {Status.warning: "warnings", Status.problem: "problems"}
_MARKS = {Status.problem: "PROBLEM", Status.not_applicable: "n/a"}


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one rule for one plugin, test, SUT, annotator or metric.

    Args:
        rule: the rule's id.
        promise: what the rule promises, one sentence.
        kind: plugin, test, sut, annotator or metric.
        subject: its name: a distribution, a file, or a uid.
        status: the outcome.
        message: what was found; for "not applicable" the reason; "" where there is nothing to say.
        fix: for a problem or a warning, what its author can do.
        where: for a problem or a warning, the line of its author's code, as `file:line`; "" where it is unknown.
    """

    rule: str
    promise: str
    kind: str
    subject: str
    status: Status
    message: str = ""
    fix: str = ""
    where: str = ""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        text = " ".join([f"{self.status}:", self.message, self.fix]).rstrip(" :")
        return f"{place}{self.kind} {self.subject}: {self.rule}: {text}"


class Report:
    """All findings of one check.

    Args:
        name: what was checked.
        findings: of every rule, in the order of the rules.
    """

    def __init__(self, name: str, findings: list[Finding]) -> None:
        self.name = name
        self.findings = tuple(findings)

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The broken promises."""
        return tuple(finding for finding in self.findings if finding.status is Status.problem)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Findings that break no promise and should still be checked."""
        return tuple(finding for finding in self.findings if finding.status is Status.warning)

    @property
    def passed(self) -> bool:
        """True if no promise is broken."""
        return not self.problems

    def raise_for_problems(self) -> None:
        """Fail a test, where a promise is broken.

        Raises:
            AssertionError: with every problem and how to fix it.
        """
        if self.problems:
            raise AssertionError("\n".join([f"{self.name}: {self.summary()}", *map(str, self.problems)]))

    def summary(self) -> str:
        """Return the counts in one line."""
        counts = Counter(finding.status for finding in self.findings)
        return ", ".join(
            f"{counts[status]} {status if counts[status] == 1 else _WORDS.get(status, status)}"
            for status in Status
        )

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON value: `name`, `passed`, and the fields of every finding."""
        findings = [{**asdict(finding), "status": str(finding.status)} for finding in self.findings]
        return {"name": self.name, "passed": self.passed, "findings": findings}

    def to_text(self, *, quiet: bool = False) -> str:
        """Format the report for people: the findings of each object, and the counts.

        Args:
            quiet: show problems and warnings only.
        """
        lines: list[str] = []
        head = None
        for finding in [*self.problems, *self.warnings] if quiet else self.findings:
            if head != (head := f"{finding.kind} {finding.subject}"):
                lines.append(head)
            mark, text = _MARKS.get(finding.status, finding.status), finding.message or finding.promise
            lines.append(f"  {mark:<7} {finding.rule:<15} {text}")
            details = (("Fix", finding.fix), ("At", finding.where))
            lines.extend(f"{'':<26}{label}: {text}" for label, text in details if text)
        return "\n".join([*lines, *([""] if lines else []), f"{self.name}: {self.summary()}."])

    def __str__(self) -> str:
        return self.to_text()


@dataclass(frozen=True, slots=True)
class Case:
    """A rule and the object that it checks: a separate test under pytest.

    Args:
        rule: a function of the subject; its name is the rule's id, its docstring the promise.
        subject: a plugin, or an object that it registers.
    """

    rule: Callable[[Any], str | None]
    subject: Any

    @property
    def id(self) -> str:
        """The name of the test under pytest."""
        return f"{self.subject.kind}-{self.subject.name}-{rule_id(self.rule)}"

    def finding(self) -> Finding:
        """Run the rule; what the subject's code raises is a finding too."""
        status, texts = Status.ok, [""]
        at: tuple[str, ...] = ()
        try:
            texts = [self.rule(self.subject) or ""]
        except SkipTest as reason:
            status, texts = Status.not_applicable, [str(reason)]
        except Problem as error:
            status = Status.warning if isinstance(error, Caution) else Status.problem
            texts, at = [str(error), error.fix], error.at
        except (Exception, SystemExit) as error:  # noqa: BLE001  what is checked is anybody's code
            status = Status.problem
            texts, at = (
                [f"It raised {describe_error(error)}.", "Fix what raises."],
                (format_traceback(error),),
            )
        if status in (Status.problem, Status.warning):
            texts.append(self.subject.where(*at))
        texts = [self.subject.redact(text) for text in texts]
        promise = str(self.rule.__doc__)
        return Finding(rule_id(self.rule), promise, self.subject.kind, self.subject.name, status, *texts)

    def check(self) -> None:
        """Pass, fail with the fix, or be skipped with the reason.

        Raises:
            AssertionError: the promise is broken; the message begins with the line of the author's code.
            SkipTest: the rule does not apply (unittest's exception, which pytest knows too).
        """
        __tracebackhide__ = True
        finding = self.finding()
        if finding.status is Status.problem:
            raise AssertionError(str(finding))
        if finding.status is Status.not_applicable:
            raise SkipTest(finding.message)


def rule_id(rule: Callable[..., Any]) -> str:
    """Return the id of a rule: import-cost for `test_import_cost`."""
    return rule.__name__.removeprefix("test_").replace("_", "-")
