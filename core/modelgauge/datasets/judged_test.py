"""`JudgedTest`: answers that are judged by metrics. What is asked, and who answers, its subclasses know."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from modelgauge.data.annotations import Interaction, TestItemAnnotations
from modelgauge.data.estimates import Score
from modelgauge.data.items import PromptWithContext
from modelgauge.data.json_values import without_tags
from modelgauge.data.results import Threshold
from modelgauge.data.thresholds import PASSED
from modelgauge.errors import InvalidDataError
from modelgauge.interfaces.identity import overrides
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.metrics.base import Metric
from modelgauge.stats.exact import exact_mean

_LONGEST_ARGUMENT = 40


class JudgedTest(PromptResponseTest):
    """Judges answers by metrics, which are its annotators.

    Each metric gives two measurements, its score under the metric's name and `NAME.passed`; an item has
    `passed` where all its metrics passed. A metric whose threshold is None gives its score alone.

    Attributes:
        metrics: by their names.
    """

    metrics: Mapping[str, Metric]

    def _declare(self, scores: Mapping[str, Metric]) -> None:
        """Say what is known of the measurements before there are any.

        Args:
            scores: the metrics, by the names of the measurements that are their scores.
        """
        self.thresholds = {
            name: Threshold(value=metric.threshold, higher_is_better=metric.higher_is_better)
            for name, metric in scores.items()
            if metric.threshold is not None
        }
        ranges = {name: metric.score_range for name, metric in scores.items()}
        self.measurement_ranges = {name: bounds for name, bounds in ranges.items() if bounds is not None}
        self.measurement_directions = {
            name: "higher" if metric.higher_is_better else "lower" for name, metric in scores.items()
        }

    def get_annotators(self) -> Mapping[str, Metric]:
        """Return the metrics by name."""
        return self.metrics

    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        """Return the scores, and whether they pass."""
        measured = self.measure_in_part(item)
        if not measured:
            raise self._nothing_judged(item)
        return measured

    def measure_in_part(self, item: TestItemAnnotations) -> dict[str, float]:
        """Return the scores of the metrics that gave a score, and whether the item passed if all metrics gave a score.

        If a score is missing, there is no verdict, even if another score fails: else only failures would count among
        such items.
        """
        measured: dict[str, float] = {}
        names: set[str] = set()
        is_whole = True
        for interaction in item.interactions:
            component = self.component(interaction.prompt)
            found = _scores(interaction)
            chooses = overrides(type(self), "choose_annotators")
            for key in dict.fromkeys(self.choose_annotators(interaction.prompt)) if chooses else self.metrics:
                metric, scores = self.metrics[key], found[key]
                # One metric has one name in all items; that of a component, numbered only where names meet.
                name = key if component is None else self._name_of_part(component, metric, names)
                names.add(name)
                if len(scores) < len(interaction.response.completions):
                    is_whole = is_whole and metric.threshold is None
                    continue
                measured[name] = exact_mean(score.value for score in scores)
                if metric.threshold is not None:
                    measured[f"{name}.{PASSED}"] = all(metric.is_successful(score) for score in scores)
        verdicts = [measured[key] for name in names if (key := f"{name}.{PASSED}") in measured]
        # Where only others of this test have thresholds, an item has nothing to fail.
        if measured and is_whole and (verdicts or self.thresholds):
            measured[PASSED] = all(verdicts)
        return measured

    def _nothing_judged(self, item: TestItemAnnotations) -> InvalidDataError:
        """Return the error for an item without a score."""
        return InvalidDataError(
            f"Nothing judged '{item.test_item.id}'.", fix="Let choose_annotators choose at least one metric."
        )

    def _name_of_part(self, component: str, metric: Metric, taken: Collection[str] = ()) -> str:
        """Return the name of a component's measurement, distinct from those of the whole."""
        return _free_name(f"{component}.{metric.name}", {*self._of_whole(), *taken})

    def _of_whole(self) -> Collection[str]:
        """Return the names of the metrics that judge an item as a whole."""
        return self.metrics

    def component(self, prompt: PromptWithContext) -> str | None:
        """Return the name of the component that a prompt belongs to; None for the app as a whole."""
        del prompt
        return None


def _scores(interaction: Interaction) -> defaultdict[str, list[Score]]:
    """Return the scores by metric, one for each completion."""
    found: defaultdict[str, list[Score]] = defaultdict(list)
    for completion in interaction.response.completions:
        for key in completion.annotations:
            found[key].append(completion.get_annotation(key, Score))
    return found


def keyed(metrics: Sequence[Metric], parts: Sequence[Metric] = ()) -> dict[str, Metric]:
    """Name metrics uniquely: those with the same name get their differing arguments added, or else a number.

    Args:
        metrics: of cases as a whole.
        parts: those of components, which change no name of the others.

    Raises:
        InvalidDataError: there are no metrics, or a member is not a metric.
    """
    if isinstance(metrics, Metric | str):
        metrics = [metrics]  # a uid is refused below
    if not metrics and not parts:
        raise InvalidDataError(
            "There is no metric, so nothing can pass or fail.", fix="Give at least one: metrics=[…]."
        )
    made: dict[str, Metric] = {}
    for group in filter(None, (metrics, parts)):
        ours = [
            other for other in {id(other): other for other in group}.values() if other not in made.values()
        ]
        for metric in ours:
            _check_metric(metric)
        for name, metric in zip(_names_apart(ours), ours, strict=True):
            made[_free_name(name, made)] = metric
    return made


def _check_metric(metric: object) -> None:
    if isinstance(metric, Metric):
        return
    if isinstance(metric, str):
        raise InvalidDataError(
            f"Among the metrics is the uid {metric!r}, and a DatasetTest looks up no names.",
            fix="Give metrics: [ExactMatchMetric()]; evaluate(…) takes uids, and so does the command line: "
            "modelgauge run-test --dataset FILE --metric UID.",
        )
    if isinstance(metric, type) and issubclass(metric, Metric):
        raise InvalidDataError(
            f"Among the metrics is the class {metric.__name__}.",
            fix=f"Make an object of it: {metric.__name__}().",
        )
    raise InvalidDataError(
        f"Among the metrics is a value of type {type(metric).__name__}.",
        fix="Give metrics: [ExactMatchMetric()]; one of your own is a subclass of Metric with score.",
    )


def _free_name(name: str, taken: Collection[str]) -> str:
    number = 1
    free = name
    while free in taken:
        number += 1
        free = f"{name}~{number}"
    return free


# --- the names of metrics in one run -----------------------------------------------------------------


def _names_apart(metrics: Sequence[Metric]) -> list[str]:
    """Return a name for each metric: its own, or with the arguments that differ if several share it.

    Metrics that differ in nothing keep one name.

    Args:
        metrics: of one run.
    """
    groups: dict[str, list[Metric]] = {}
    for metric in metrics:
        groups.setdefault(metric.name, []).append(metric)
    return [_distinct_name(metric, groups[metric.name]) for metric in metrics]


def _distinct_name(metric: Metric, group: Sequence[Metric]) -> str:
    others = [other.initialization.arguments for other in group if other is not metric]
    own = metric.initialization.arguments if others else {}
    differing = [
        f"{argument}={_argument(value)}"
        for argument, value in own.items()
        if any(argument not in other or other[argument] != value for other in others)
    ]
    return f"{metric.name}({', '.join(differing)})" if differing else metric.name


def _argument(value: Any) -> str:
    """Format an argument for people, without the tags of initializations."""
    text = repr(without_tags(value))
    return text if len(text) <= _LONGEST_ARGUMENT else f"{text[: _LONGEST_ARGUMENT - 1]}…"
