"""Holding plugins, and single objects, to the promises of the plugin contract: what authors call.

The rules themselves are in `rules/`. Nothing here imports pytest; `conformance` gives what it can
parametrise.
"""

import sys
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from modelgauge.config.settings import load_settings
from modelgauge.dependencies import DependencyStore
from modelgauge.errors import UsageError
from modelgauge.interfaces.annotator import Annotator
from modelgauge.interfaces.sut import PromptResponseSUT
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.plugins.discovery import Plugins, discover
from modelgauge.plugins.registry import Entry, Kind, Registry, Resolved
from modelgauge.testing.plugin_subject import PluginSubject
from modelgauge.testing.report import Finding, Report, Status
from modelgauge.testing.rule import Rule, Subject
from modelgauge.testing.rules.catalogue import RULES
from modelgauge.testing.subjects import INTERFACES, CallableSubject, ObjectSubject
from modelgauge.testing.test_subject import TestSubject
from modelgauge.wording.articles import a_thing, capitalized

_EXAMPLE_MODEL = "example-model"


@dataclass(frozen=True, slots=True)
class Case:
    """One rule and what it is held against: a test of its own under pytest.

    Args:
        rule: the rule.
        subject: what it is held against.
    """

    rule: Rule[Any]
    subject: Any

    @property
    def id(self) -> str:
        """How pytest calls it."""
        return f"{self.subject.kind}-{self.subject.name}-{self.rule.id}"

    def findings(self) -> list[Finding]:
        """What the rule finds."""
        return self.rule.findings(self.subject)

    def check(self) -> None:
        """Pass, fail with the fix, or be skipped with the reason.

        Raises:
            AssertionError: the promise is broken.
            unittest.SkipTest: the rule does not apply (pytest's own exception, where pytest is running).
        """
        findings = self.findings()
        Report(self.subject.name, findings).raise_for_problems()
        if all(finding.status is Status.not_applicable for finding in findings):
            pytest = sys.modules.get("pytest")
            skip: type[BaseException] = unittest.SkipTest if pytest is None else pytest.skip.Exception
            raise skip(findings[0].message)


def check_plugin(
    name: str,
    *,
    local: Sequence[str] = (),
    examples: Sequence[str] = (),
    call: bool = False,
    data_dir: str | Path | None = None,
) -> Report:
    """Hold a plugin to every promise: in its own tests, or by `modelgauge plugins check`.

    Args:
        name: a distribution, one of its entry points, or the path of a local plugin.
        local: local plugins to load beside what is installed; `name` may be one of them.
        examples: names to check, for providers (`acme/small-model`) and for uids that need options.
        call: ask SUTs and annotators for real, which may cost money: a brief prompt for each, and the
            annotators of tests.
        data_dir: where fetched data is; what the settings say when None. Nothing is fetched.

    Raises:
        UnknownNameError: there is no such plugin.
        UsageError: an example is no name of the plugin.
    """
    subjects = PluginSubjects(name, local=local, examples=examples, call=call, data_dir=data_dir)
    return _report(name, _cases(subjects))


def conformance(
    name: str,
    *,
    local: Sequence[str] = (),
    examples: Sequence[str] = (),
    call: bool = False,
    data_dir: str | Path | None = None,
) -> dict[str, Any]:
    """The same as arguments of `pytest.mark.parametrize`, a test for each rule:

        @pytest.mark.parametrize(**conformance("my-plugin"))
        def test_conformance(case):
            case.check()

    Arguments and errors are those of `check_plugin`. Rules run when their tests do, so that collecting them
    stays quick.
    """
    cases = list(_cases(PluginSubjects(name, local=local, examples=examples, call=call, data_dir=data_dir)))
    return {"argnames": "case", "argvalues": cases, "ids": [case.id for case in cases]}


def check_sut(sut: PromptResponseSUT[Any, Any], *, call: bool = False) -> Report:
    """Hold a SUT to the promises of its interface.

    Args:
        sut: the object, made with any secrets.
        call: ask it one brief prompt, which may cost money.
    """
    return _check_object("sut", sut, call=call)


def check_annotator(annotator: Annotator, *, call: bool = False) -> Report:
    """Hold an annotator, or a metric, to the promises of its interface; arguments as for `check_sut`."""
    return _check_object("annotator", annotator, call=call)


def check_test(
    test: PromptResponseTest,
    *,
    annotators: Mapping[str, Annotator] | None = None,
    call: bool = False,
    data_dir: str | Path | None = None,
) -> Report:
    """Hold a test to the promises of its interface; no SUT is needed.

    Args:
        test: the object.
        annotators: to use instead of its own, such as `FakeAnnotator`; by the test's names.
        call: call its own annotators, which may cost money.
        data_dir: where fetched data is.
    """
    store = _store(data_dir)
    return _check_object("test", test, call=call, store=store, stand_ins=annotators)


class PluginSubjects:
    """A plugin and everything that it registers, as subjects of rules; arguments as for `conformance`."""

    def __init__(
        self,
        name: str,
        *,
        local: Sequence[str] = (),
        examples: Sequence[str] = (),
        call: bool = False,
        data_dir: str | Path | None = None,
    ) -> None:
        self.plugin = PluginSubject(name, local)
        self._examples = tuple(examples)
        self._call = call
        self._store = _store(data_dir)
        self._elsewhere: dict[str, Any] | None = None
        self.objects = [
            subject for registry in self.plugin.plugins.registries for subject in self._of_kind(registry)
        ]
        self._refuse_unused_examples()

    def _of_kind(self, registry: Registry) -> Iterator[ObjectSubject]:
        for entry in self.plugin.entries(registry):
            given = [one for one in self._examples if _is_named_by(entry, one)]
            names = given or [f"{entry.uid}/{_EXAMPLE_MODEL}" if entry.is_provider else entry.uid]
            for name in names:
                resolved = _resolved(entry, registry, name)
                yield self._subject(registry.kind, name, resolved, is_example=entry.is_provider and not given)

    def _subject(self, kind: Kind, name: str, resolved: Resolved, *, is_example: bool) -> ObjectSubject:
        options: dict[str, Any] = {
            "plugins": lambda: self.plugin.plugins,
            "resolved": resolved,
            "call": self._call,
            "is_example": is_example,
        }
        if kind == "test":
            return TestSubject(kind, name, store=self._store, elsewhere=self._made_elsewhere, **options)
        return CallableSubject(kind, name, **options)

    def _made_elsewhere(self, name: str) -> Mapping[str, Any] | None:
        """The items of a test as another process makes them: one process for all tests of the plugin."""
        if self._elsewhere is None:
            tests = [one for one in self.objects if isinstance(one, TestSubject)]
            data = {one.name: one.data_if_ready() for one in tests}
            ready = {name: paths for name, paths in data.items() if paths is not None}
            self._elsewhere = self.plugin.digests_elsewhere(ready)
        return self._elsewhere.get(name)

    def _refuse_unused_examples(self) -> None:
        names = {one.name for one in self.objects}
        for example in self._examples:
            if example not in names:
                raise UsageError(
                    f"{example!r} is no name of {self.plugin.name}.",
                    fix="Give PROVIDER/MODEL or UID?key=value of what it registers.",
                )


def _is_named_by(entry: Entry, example: str) -> bool:
    base = example.partition("?")[0]
    return base.startswith(f"{entry.uid}/") if entry.is_provider else base == entry.uid


def _resolved(entry: Entry, registry: Registry, name: str) -> Resolved:
    """The name as the registry resolves it, were the plugin the only one that claims it."""
    alone = Registry(registry.kind)
    alone.add([entry])
    return alone.resolve(name)


def _cases(subjects: PluginSubjects) -> Iterator[Case]:
    everything: list[Subject] = [subjects.plugin, *subjects.objects]
    for subject in everything:
        yield from (Case(rule, subject) for rule in RULES[subject.kind])


def _report(name: str, cases: Iterator[Case]) -> Report:
    return Report(name, [finding for case in cases for finding in case.findings()])


def _check_object(kind: Kind, given: Any, **options: Any) -> Report:
    if not isinstance(given, INTERFACES[kind]):
        raise UsageError(
            f"{capitalized(a_thing(given))} is no {INTERFACES[kind].__name__}.",
            fix="Give the object, not its class or uid.",
        )
    subject_class: Callable[..., ObjectSubject] = TestSubject if kind == "test" else CallableSubject
    subject = subject_class(kind, given.uid, plugins=_installed, given=given, **options)
    return _report(given.uid, (Case(rule, subject) for rule in RULES[kind]))


@cache
def _installed() -> Plugins:
    return discover()


def _store(data_dir: str | Path | None) -> DependencyStore:
    """The store of fetched data; where there is none yet, a folder that is gone when the process ends."""
    folder = Path(data_dir) if data_dir is not None else load_settings().data_dir
    if data_dir is not None or folder.is_dir():
        return DependencyStore(folder / "dependencies", offline=True)
    return DependencyStore(Path(_scratch().name), offline=True)


@cache
def _scratch() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="modelgauge-check-", ignore_cleanup_errors=True)
