"""From names to objects: makes the tests, SUTs and annotators of a run, finds their data, lists what is missing.

Everything that the user must correct is reported at once, before the first call.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from modelgauge.config.secrets import SecretStore
from modelgauge.dependencies.paths import DependencyPaths
from modelgauge.dependencies.request import ResolvedDependency
from modelgauge.dependencies.store import DependencyStore
from modelgauge.engine.work import AnswerSource, Work, check_work
from modelgauge.errors import (
    DefinitionError,
    DependencyError,
    IncompatibleError,
    InputFileError,
    ModelGaugeError,
    UnknownNameError,
    UsageError,
)
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.interfaces.identity import declared
from modelgauge.interfaces.sut import PromptResponseSUT, check_sut
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.interfaces.watched import in_use
from modelgauge.plugins.discovery import Plugins
from modelgauge.plugins.name_matches import check_labels, match_names, raise_together, resolve_each
from modelgauge.plugins.registry import Registry
from modelgauge.wording.phrases import a_class, a_thing, capitalized, counted, with_article

TestName = PromptResponseTest | str
SUTName = PromptResponseSUT[Any, Any] | str
AnnotatorName = CompletionAnnotator[Any] | str
T = TypeVar("T")

_MOST_TESTS = 2  # whose missing data one error describes; further ones are named


class LeftOut(NamedTuple):
    """A pair that does not fit, and that only a group or a pattern named.

    Args:
        test_uid: the test.
        sut_uid: the SUT.
        sut_label: what tables call it.
        reason: why they do not fit.
    """

    test_uid: str
    sut_uid: str
    sut_label: str | None
    reason: str

    def __str__(self) -> str:
        return f"{self.test_uid} on {self.sut_label or self.sut_uid}"


@dataclass(slots=True)
class Resolver:
    """Makes each named object once.

    Args:
        plugins: gives the plugins; called when the first name needs them.
        secrets: where secrets come from.
        dependencies: where the tests' data comes from.
        distributions: of those plugins that made something.
        objects: the uids of what was given as an object, not by its name.
        left_out: pairs that do not fit, of the last `works`.
    """

    plugins: Callable[[], Plugins]
    secrets: SecretStore
    dependencies: DependencyStore
    distributions: set[str] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)
    left_out: list[LeftOut] = field(default_factory=list)
    _named_objects: dict[tuple[str, str], Any] = field(default_factory=dict)

    def works(self, tests: Sequence[TestName], suts: Sequence[SUTName]) -> list[Work]:
        """Return every test with every SUT, ready to run. Names may be groups, patterns and labels (see
        `match_names`).

        Pairs that do not fit are left out, with a warning, where a group or a pattern named one of the two.

        Raises:
            UsageError: a name is unknown, a secret or data is missing, a test and a SUT do not fit.
        """
        if not tests or not suts:
            raise UsageError("There is nothing to run.", fix="Name at least one test and one SUT.")
        test_matches = match_names(self.plugins().tests, tests)
        sut_matches = match_names(self.plugins().suts, suts)
        made_tests = self._tests(
            [match.name for match in test_matches], [match.name for match in sut_matches]
        )
        made_suts = [self.sut(match.name) for match in sut_matches]
        check_labels([(sut.uid, match.label) for sut, match in zip(made_suts, sut_matches, strict=True)])
        data = self._data([test for test, _ in made_tests])
        works: list[Work] = []
        failures: list[ModelGaugeError] = []
        misfits: list[ModelGaugeError] = []
        self.left_out = []
        for (test, names), of_test in zip(made_tests, test_matches, strict=True):
            annotators = self._annotators(names)  # one object for all SUTs, with one limit
            for sut, of_sut in zip(made_suts, sut_matches, strict=True):
                answer_source = AnswerSource.of(sut, of_sut.label)
                work = self._work(test, answer_source, data[_owner(test)], annotators)
                try:
                    check_work(work)
                    works.append(replace(work, groups=of_test.groups))
                except UsageError as error:
                    named = of_test.is_named and of_sut.is_named
                    if named or not isinstance(error, IncompatibleError):
                        failures.append(error)
                    else:
                        misfits.append(error)
                        self.left_out.append(LeftOut(test.uid, sut.uid, of_sut.label, error.problem))
        raise_together(failures or ([] if works else misfits))
        _warn_about(self.left_out)
        return works

    def answered(self, test: TestName, answer_source: AnswerSource) -> Work:
        """Return a test and recorded answers, ready to run; no SUT is created."""
        ((made, names),) = self._tests([test], [])
        return self._work(made, answer_source, self.data(made), self._annotators(names))

    def test(self, test: TestName) -> PromptResponseTest:
        """Return a test by object or uid."""
        return self._object(test, lambda plugins: plugins.tests, PromptResponseTest, "test")

    def sut(self, sut: SUTName) -> PromptResponseSUT[Any, Any]:
        """Return a SUT by object or uid."""
        return self._object(sut, lambda plugins: plugins.suts, PromptResponseSUT, "SUT")

    def annotator(self, annotator: AnnotatorName) -> CompletionAnnotator[Any]:
        """Return an annotator by object or uid."""
        return self._object(
            annotator, lambda plugins: plugins.of_annotator(str(annotator)), CompletionAnnotator, "annotator"
        )

    def data(self, test: PromptResponseTest) -> DependencyPaths:
        """Return the data of one test."""
        return self._data([test])[_owner(test)]

    def all_data(self, test: PromptResponseTest) -> dict[str, ResolvedDependency]:
        """Return the data of one test, including data that would be fetched when used."""
        return self.dependencies.resolve_all(_owner(test), declared(test, "get_dependencies"))

    # --- names -------------------------------------------------------------------------------------------------------

    def _object(self, name: Any, registry: Callable[[Plugins], Registry], kind: type[T], word: str) -> T:
        if not isinstance(name, str):
            if not isinstance(name, kind):
                raise _wrong_kind(name, kind, word)
            self.objects.add(str(getattr(name, "uid", "")))
            return name
        if (word, name) not in self._named_objects:
            resolved = registry(self.plugins()).resolve(name)
            self.distributions.add(resolved.entry.distribution)
            made = resolved.make(self.secrets)
            if not isinstance(made, kind):
                raise DefinitionError(
                    f"'{name}' of {resolved.entry.distribution} is {a_thing(made)}, not {a_class(kind)}.",
                    fix=f"Its plugin should register a subclass of {kind.__name__}.",
                )
            self._named_objects[word, name] = made
        named_object: T = self._named_objects[word, name]
        return named_object

    def _tests(
        self, tests: Sequence[TestName], suts: Sequence[SUTName]
    ) -> list[tuple[PromptResponseTest, dict[str, AnnotatorName]]]:
        """Make the tests, once all secrets of the run are known to be there; with what their `get_annotators` names."""
        failures: list[ModelGaugeError] = []
        resolved_tests = dict(resolve_each(self.plugins().tests, tests, failures))
        resolved_suts = [resolved for _, resolved in resolve_each(self.plugins().suts, suts, failures)]
        raise_together(failures)
        entries = [resolved.entry for resolved in (*resolved_suts, *resolved_tests.values())]
        injections = [injection for entry in entries for injection in entry.injections]
        made_tests: list[PromptResponseTest] = []
        for test in tests:
            own = resolved_tests[test].entry.injections if isinstance(test, str) else []
            if not self.secrets.missing(secret.secret_class() for secret in own):
                made_tests.append(self.test(test))
        named = [(test, declared(test, "get_annotators")) for test in made_tests]
        for name in (name for _, names in named for name in names.values()):
            if isinstance(name, str):
                injections.extend(self.plugins().of_annotator(name).resolve(name).entry.injections)
        try:
            self.secrets.require(injections)
        except ModelGaugeError as error:
            raise self._with_missing_data(error, made_tests) from None
        return named

    # --- data --------------------------------------------------------------------------------------------------------

    def _with_missing_data(
        self, error: ModelGaugeError, tests: Sequence[PromptResponseTest]
    ) -> ModelGaugeError:
        """Add data that is missing, and would not be fetched, to the error of missing secrets."""
        sources = {_owner(test): declared(test, "get_dependencies") for test in tests}
        missing = {
            uid: lines
            for uid, wanted in (sources.items() if self.dependencies.offline else ())
            if (lines := self.dependencies.missing(uid, self.dependencies.needed_first(uid, wanted)))
        }
        if not missing:
            return error
        listed, more = list(missing)[:_MOST_TESTS], list(missing)[_MOST_TESTS:]
        lines = [line for uid in listed for line in missing[uid]]
        problem = "\n".join([error.problem, "Data is missing too:", *lines, *_also_without_data(more)])
        return UsageError(problem, fix=error.fix)

    def _data(self, tests: Iterable[PromptResponseTest]) -> dict[str, DependencyPaths]:
        wanted = {_owner(test): declared(test, "get_dependencies") for test in tests}
        self.dependencies.check_names(wanted)
        found: dict[str, DependencyPaths] = {}
        failures: dict[str, ModelGaugeError] = {}
        for uid, sources in wanted.items():
            try:
                found[uid] = self.dependencies.paths(uid, sources)
            except (DependencyError, InputFileError) as error:
                failures[uid] = error
        raise_together([*failures.values()][:_MOST_TESTS], _also_without_data([*failures][_MOST_TESTS:]))
        return found

    def _annotators(self, names: Mapping[str, AnnotatorName]) -> dict[str, CompletionAnnotator[Any]]:
        return {name: self.annotator(annotator) for name, annotator in names.items()}

    def _work(
        self,
        test: PromptResponseTest,
        answer_source: AnswerSource,
        data: DependencyPaths,
        annotators: Mapping[str, CompletionAnnotator[Any]],
    ) -> Work:
        paths = data.for_a_run()
        return Work(
            test=test,
            answer_source=answer_source,
            annotators=annotators,
            judge_suts={name: self.judges(annotator) for name, annotator in annotators.items()},
            dependencies=paths,
            dependency_versions=paths.versions,
        )

    def judges(self, annotator: CompletionAnnotator[Any]) -> dict[str, PromptResponseSUT[Any, Any]]:
        """Return the SUTs that an annotator asks."""
        judges: dict[str, PromptResponseSUT[Any, Any]] = {}
        with in_use([annotator]):  # which may make them now
            named = declared(annotator, "get_suts")
        for name, sut in named.items():
            try:
                judges[name] = self.sut(sut)
            except UnknownNameError as error:
                asked = annotator._sut_in_messages(name)  # noqa: SLF001  says who asks, and where the name stands
                raise UnknownNameError(f"{asked}: {error.problem}", fix=error.fix) from None
            check_sut(judges[name])
        return judges


def _warn_about(left_out: Sequence[LeftOut]) -> None:
    """Warn of pairs that do not fit."""
    if left_out:
        many = counted(len(left_out), "pair that does not fit is", "pairs that do not fit are")
        warnings.warn(f"{many} left out: {', '.join(map(str, left_out))}. {left_out[0].reason}", stacklevel=3)


def _also_without_data(uids: Sequence[str]) -> list[str]:
    """Return a line that names further tests without data, and the command that lists their needs; "" for none."""
    if not uids:
        return []
    command = f"modelgauge dependencies list --test {uids[0]}"
    tests = counted(len(uids), "more test lacks", "more tests lack")
    return [f"{tests} data: {', '.join(uids)}. See what a test needs: {command}"]


def _owner(test: PromptResponseTest) -> str:
    """Return the owner of a test's data: its uid without options, so that variants of a test share their data."""
    return test.uid.partition("?")[0]


def _wrong_kind(value: object, kind: type, word: str) -> DefinitionError:
    """Make the error of a value that is neither a name nor an object of its kind."""
    if isinstance(value, type) and issubclass(value, kind):
        made = f'{value.__name__}("my_{word.lower()}")'
        return DefinitionError(
            f"{value.__name__} is a class, and no {word} yet.", fix=f"Make one of it: {made}."
        )
    fix = f"Give a uid, or an object of {a_class(kind)} subclass."
    if kind is PromptResponseSUT and callable(value):
        fix = 'Make a SUT of it: FunctionSUT("my_sut", function).'
    return DefinitionError(f"{capitalized(a_thing(value))} is not {with_article(word)}.", fix=fix)
