"""A work in JSON, as `run.json` has it: another process can do the work, or a part of it, by this."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from modelgauge.config.run_options import OPTIONS, Group, RunOptions, list_options
from modelgauge.data.base import Frozen
from modelgauge.data.prompts import SUTOptions
from modelgauge.data.records import RunIdentity
from modelgauge.data.results import recorded_ranges
from modelgauge.data.thresholds import known_directions
from modelgauge.engine.work import Work
from modelgauge.interfaces.test import PromptResponseTest

_METHODS = ("choose_annotators", "aggregate_measurements")


class Inputs(Frozen):
    """Sources of the objects of a work, other than registered plugins.

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
    """Return the recorded options known to this version.

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
    """Description of a work: test, answerer and options by name, and the arguments of its objects.

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
        test, answer_source = work.test, work.answer_source
        return cls(
            test_uid=test.uid,
            test_initialization=_construction(test),
            sut_uid=answer_source.uid,
            sut_initialization=_construction(answer_source),
            sut_label=answer_source.label,
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
            **describe_annotators(work),
        )

    def identity(self) -> dict[str, Any]:
        """Return the fields of the identity, which a record of the work has too."""
        return {name: getattr(self, name) for name in RunIdentity.model_fields}

    def run_options(self) -> RunOptions:
        """Return the options in the form that a run takes."""
        return _run_options(self.options)

    def chosen(self, *groups: Group) -> dict[str, Any]:
        """Return the options given in these groups, as JSON."""
        found = {name: self.options.get(name) for name in list_options(*groups)}
        return {name: value for name, value in found.items() if value is not None}

    def objects(self) -> dict[str, dict[str, Any]]:
        """Return the initializations of annotators by name, and of the SUTs that they ask by `ANNOTATOR / SUT`."""
        asked = {
            f"{name} / {key}": judge
            for name, own in (self.judges or {}).items()
            for key, judge in own.items()
        }
        return {**self.annotators, **asked}


def describe_annotators(work: Work) -> dict[str, Any]:
    """Return the initializations of a work's annotators and of the SUTs that they ask."""
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
