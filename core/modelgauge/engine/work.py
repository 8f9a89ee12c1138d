"""A work: one test, who answers its prompts, and all objects that are needed. Names are resolved before."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from modelgauge.config.run_options import RunOptions
from modelgauge.data.items import PromptWithContext
from modelgauge.data.responses import SUTResponse
from modelgauge.engine.bookkeeping.failures import printable
from modelgauge.engine.calls.policy import JudgeSUTs, Owner
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import DefinitionError, IncompatibleError, UsageError
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.interfaces.identity import Initialization
from modelgauge.interfaces.sut import PromptResponseSUT, capabilities_of, check_sut, fix_for_missing
from modelgauge.interfaces.test import PromptResponseTest


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSource:
    """Source of answers: a SUT, cases with given answers, or the journal of an earlier run.

    Exactly one of `sut`, `given` and `journal` is there.

    Args:
        uid: its name in records.
        initialization: how it was made.
        sut: is asked, by calls.
        given: returns the answer to a prompt.
        journal: the run whose recorded answers are measured.
        label: what tables call it; None for its uid.
        again: the advice for a run that stopped, where `modelgauge resume` cannot continue it.
        left_out: how many further answers `max_test_items` left out before the run.
    """

    uid: str
    initialization: Initialization
    sut: PromptResponseSUT[Any, Any] | None = None
    given: Callable[[PromptWithContext], SUTResponse] | None = None
    journal: RunFolder | None = None
    label: str | None = None
    again: str | None = None
    left_out: int = 0

    @classmethod
    def of(cls, sut: PromptResponseSUT[Any, Any], label: str | None = None) -> "AnswerSource":
        """Make the answer_source that is a SUT."""
        return cls(uid=sut.uid, initialization=sut.initialization, sut=sut, label=label)


class Callee(NamedTuple):
    """An object that is called, and the SUTs that it asks itself, by its own names."""

    owner: Owner
    judge_suts: JudgeSUTs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One test on one answer_source, with all that the test needs.

    Args:
        test: asks and measures.
        answer_source: answers.
        annotators: by the test's own names.
        judge_suts: for each of these names, the SUTs that the annotator asks.
        dependencies: where the test's data is.
        dependency_versions: content hashes of the data; those of data that is fetched when it is used come then.
        groups: the groups of tests that were chosen and have this test: how many members each has, by name.
        continues: the folder of a run that is done in part; None for a new run.
    """

    test: PromptResponseTest
    answer_source: AnswerSource
    annotators: Mapping[str, CompletionAnnotator[Any]] = field(default_factory=dict)
    judge_suts: Mapping[str, JudgeSUTs] = field(default_factory=dict)
    dependencies: Mapping[str, Path] = field(default_factory=dict)
    dependency_versions: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, int] = field(default_factory=dict)
    continues: RunFolder | None = None

    def notes_on_data(self) -> Iterator[str]:
        """Name the data, given by the user, that is not what the test declares."""
        for key, data in self.test.get_dependencies().items():
            declared, version = getattr(data, "sha256", None), self.dependency_versions.get(key)
            if declared and version and version != declared.lower():
                yield (
                    f"The data '{key}' was given by the user and is not what the test declares: its digest is "
                    f"{version[:12]}…, not {declared[:12]}…."
                )

    def called(self) -> list[Callee]:
        """Return the objects to call: the SUT, the annotators, and the SUTs that they ask."""
        suts = [] if self.answer_source.sut is None else [Callee(self.answer_source.sut)]
        annotators = [
            Callee(annotator, self.judge_suts.get(name)) for name, annotator in self.annotators.items()
        ]
        judges = [Callee(sut) for suts in self.judge_suts.values() for sut in suts.values()]
        return [*suts, *annotators, *judges]


def check_code(work: Work, options: RunOptions) -> None:
    """Refuse a test that runs what a SUT writes, unless that is allowed.

    Raises:
        UsageError: it is not.
    """
    if work.test.executes_answers and not options.allow_code:
        raise UsageError(
            f"Test '{work.test.uid}' runs the code that the SUT writes, on this machine and with your rights.",
            fix="To allow that, best in a container: --allow-code, in Python allow_code=True.",
        )


def check_work(work: Work) -> None:
    """Refuse a work that cannot be done, before any call.

    Raises:
        DefinitionError: the SUT lacks a step, or an annotator has no name that can be recorded.
        IncompatibleError: the SUT lacks a capability that the test asks for.
    """
    for name in work.annotators:
        if type(name) is not str or not name or printable(name) != name:
            raise DefinitionError(
                f"get_annotators of test '{work.test.uid}' names an annotator {name!r}.",
                fix="Name it with a plain text, which stands in the records.",
            )
    sut = work.answer_source.sut
    if sut is None:
        return
    check_sut(sut)
    has = capabilities_of(sut)
    missing = [capability for capability in work.test.requires_sut_capabilities if capability not in has]
    if missing:
        names = ", ".join(capability.__name__ for capability in missing)
        raise IncompatibleError(
            f"Test '{work.test.uid}' needs {names}, which SUT '{sut.uid}' does not have.",
            fix=fix_for_missing(sut, missing),
        )


def numbered_owners(works: Sequence[Work]) -> list[Owner]:
    """Return the objects to call for several works, without duplicates, in the same order in all processes."""
    return list({id(callee.owner): callee.owner for work in works for callee in work.called()}.values())
