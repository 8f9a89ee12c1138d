"""A work in JSON, as `run.json` has it: another process can do the work, or a part of it, by this."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from modelgauge.config.run_options import OPTIONS, Group, RunOptions, options_of
from modelgauge.data.base import Frozen
from modelgauge.data.prompts import SUTOptions
from modelgauge.data.records import RunIdentity
from modelgauge.data.results import recorded_ranges
from modelgauge.data.thresholds import known_directions
from modelgauge.engine.work import Work
from modelgauge.interfaces.test import PromptResponseTest

_METHODS = ("choose_annotators", "aggregate_measurements")


class Inputs(Frozen):
    """What the objects of a work were made of, beside what is registered.

    Args:
        plugins: files and modules.
        dependencies: local files, by the keys of declared data.
        datasets: files of goldens, by the uids of their tests.
        columns: what these files call the fields, by field.
        delimiter: between the cells of a CSV file.
        encoding: of these files.
        metrics: uids of those that judge goldens.
        judge: the uid of the SUT that metrics ask by default.
    """

    model_config = ConfigDict(extra="ignore", strict=True)

    plugins: tuple[str, ...] = Field((), strict=False)
    dependencies: dict[str, str] = Field(default_factory=dict)
    datasets: dict[str, str] = Field(default_factory=dict)
    columns: dict[str, str] = Field(default_factory=dict)
    delimiter: str | None = None
    encoding: str | None = None
    metrics: tuple[str, ...] = Field((), strict=False)
    judge: str | None = None


def _checked_options(recorded: dict[str, Any]) -> dict[str, Any]:
    """The recorded options that this version knows.

    Raises:
        ValueError: a field is missing, or has no such value.
    """
    lacking = {"max_test_items", "seed", "repeats", "reduce", "caching", "sut_options"} - recorded.keys()
    if lacking:
        raise ValueError(f"The options lack {', '.join(sorted(lacking))}.")
    known = {name: recorded[name] for name in OPTIONS if name in recorded}
    _run_options(known)
    return known


def _run_options(recorded: Mapping[str, Any]) -> RunOptions:
    return RunOptions(**{**recorded, "sut_options": SUTOptions.load(recorded["sut_options"])})


class WorkDescription(RunIdentity):
    """Which test on which respondent, with which options: names, and how the objects were made.

    Args:
        dependency_versions: content hashes of the test's data. No manifest lacks them.
        own_methods: those of `choose_annotators` and `aggregate_measurements` that the test defines itself; None where
            an older version wrote it.
        options: of the run, as `RunOptions.recorded` gives them.
        inputs: what the objects were made of.
    """

    model_config = ConfigDict(extra="ignore", strict=True)

    dependency_versions: dict[str, str]
    own_methods: Annotated[tuple[str, ...] | None, Field(strict=False)] = None
    options: Annotated[dict[str, Any], AfterValidator(_checked_options)]
    inputs: Inputs = Inputs()

    @classmethod
    def of(cls, work: Work, options: RunOptions) -> "WorkDescription":
        """Describe a work; its inputs are known to whoever made its objects."""
        test, respondent = work.test, work.respondent
        return cls(
            test_uid=test.uid,
            test_initialization=_construction(test),
            sut_uid=respondent.uid,
            sut_initialization=_construction(respondent),
            sut_label=respondent.label,
            groups=dict(work.groups),
            dependency_versions=dict(work.dependency_versions),
            dataset=test.dataset,
            thresholds=dict(test.thresholds),
            ranges=recorded_ranges(test.measurement_ranges),
            directions=known_directions(test.measurement_directions, test.thresholds),
            own_methods=tuple(
                [
                    method
                    for method in _METHODS
                    if getattr(type(test), method) is not getattr(PromptResponseTest, method)
                ]
            ),
            options=options.recorded(),
            **annotators_of(work),
        )

    def identity(self) -> dict[str, Any]:
        """Return the fields of the identity, which a record of the work has too."""
        return {name: getattr(self, name) for name in RunIdentity.model_fields}

    def run_options(self) -> RunOptions:
        """The options as a run takes them."""
        return _run_options(self.options)

    def chosen(self, *groups: Group) -> dict[str, Any]:
        """The options of some groups that the run was given, in JSON."""
        found = {name: self.options.get(name) for name in options_of(*groups)}
        return {name: value for name, value in found.items() if value is not None}

    def objects(self) -> dict[str, dict[str, Any]]:
        """How the annotators were made, by their names, and the SUTs that they ask, by `ANNOTATOR / SUT`."""
        asked = {
            f"{name} / {key}": judge
            for name, own in (self.judges or {}).items()
            for key, judge in own.items()
        }
        return {**self.annotators, **asked}


def annotators_of(work: Work) -> dict[str, Any]:
    """How the annotators of a work, and the SUTs that they ask, were made."""
    return {
        "annotators": {name: _construction(annotator) for name, annotator in work.annotators.items()},
        "judges": {
            name: {key: _construction(judge) for key, judge in judges.items()}
            for name, judges in work.judge_suts.items()
            if judges
        },
    }


def _construction(owner: Any) -> dict[str, Any]:
    made: dict[str, Any] = owner.initialization.model_dump(mode="json")
    if not made["settings"]:
        del made["settings"]
    return made
