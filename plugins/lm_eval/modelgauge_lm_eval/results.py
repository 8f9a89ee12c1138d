"""The results of a run: means with their error bars, and what only all documents together have."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from modelgauge import Estimate, Interaction, MeasuredItems, stats
from modelgauge_lm_eval.configs import measurement_name

if TYPE_CHECKING:
    from modelgauge_lm_eval.tasks import Loaded, LoadedTask

_SLOW = frozenset({"bleu", "chrf", "chrf++", "ter"})
"""Metrics of which lm-eval too draws no more than 100 resamples."""

Results = dict[str, Any]


def compute_results(loaded: "Loaded", items: MeasuredItems) -> Results:
    """Return the results of a task; of a group, its own, then those of each group and task in it by name.

    Args:
        loaded: the tasks and groups.
        items: of all tasks.
    """
    by_task = items.group_by("task")
    of_tasks = {
        name: _aggregate_task(task, by_task[name]) for name, task in loaded.tasks.items() if name in by_task
    }
    if loaded.name in loaded.tasks:
        return of_tasks.get(loaded.name, {})
    of_groups = {name: _aggregate_group(group, of_tasks) for name, group in loaded.groups.items()}
    own = of_groups.pop(loaded.name, {})
    return {**own, **{name: results for name, results in {**of_groups, **of_tasks}.items() if results}}


def _aggregate_task(task: "LoadedTask", items: MeasuredItems) -> Results:
    results: Results = stats.mean_of_each(items)
    return results if task.has_means_only else {**results, **_aggregate_corpus(task, items)}


def _aggregate_corpus(task: "LoadedTask", items: MeasuredItems) -> Results:
    """Return the results of metrics that need all documents, by lm-eval's own functions.

    Documents whose answer failed are left out. Repeats of a document count as documents, drawn together.
    """
    values: dict[tuple[str, str], list[Any]] = {}
    drawn: dict[tuple[str, str], list[Any]] = {}
    for place, item in enumerate(items):
        context: Any = item.test_item.context
        label = place if items.shared is None else items.shared[place]
        for _, interactions in groupby(item.interactions, _repeat):
            for key, value in task.score(context["doc_id"], list(interactions)).items():
                values.setdefault(key, []).append(value)
                drawn.setdefault(key, []).append(label)
    found = {
        measurement_name(*key): _bootstrap(task.aggregation(key[0]), key[0], values[key], drawn[key])
        for key in values
        if not task.has_mean(key[0])
    }
    return {name: estimate for name, estimate in found.items() if estimate is not None}


def _repeat(interaction: Interaction) -> int:
    return interaction.repeat


def _bootstrap(
    function: Callable[[Sequence[Any]], Any], metric: str, values: Sequence[Any], labels: Sequence[Any]
) -> Estimate | None:
    """Return a metric of all documents with its bootstrap interval; None if it has no number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of resamples that lack a class
        value = function(values)
        if metric == "bypass" or not math.isfinite(float(value)):
            return None
        resamples = 100 if metric in _SLOW else 1_000
        return stats.bootstrap_estimate(values, function, clusters=labels, resamples=resamples)


def _aggregate_group(group: Any, of_tasks: Mapping[str, Mapping[str, Estimate]]) -> Results:
    """Return the results of a group by lm-eval's own function and weights."""
    metrics: dict[str, dict[str, Any]] = {
        task: {
            "sample_len": max((estimate.n for estimate in results.values()), default=0),
            **{_lm_eval_key(name): estimate.value for name, estimate in results.items()},
        }
        for task, results in of_tasks.items()
    }
    aggregated = group.aggregate(metrics)
    found: Results = {}
    for each in group.aggregate_metric_list or ():
        for key, value in aggregated.items():
            metric, _, of_filter = key.partition(",")
            if metric != each.metric or not of_filter:
                continue
            members = [
                (results[name], metrics[task]["sample_len"])
                for task in (member.task_name for member in group.get_all_tasks())
                if (name := measurement_name(metric, of_filter)) in (results := of_tasks.get(task, {}))
            ]
            found[measurement_name(metric, of_filter)] = _weigh(value, members, by_size=each.weight_by_size)
    return found


def _lm_eval_key(name: str) -> str:
    return name if "," in name else f"{name},none"


def _weigh(value: float, members: Sequence[tuple[Estimate, int]], *, by_size: bool) -> Estimate:
    """Return a group's result with the error bar of its tasks'."""
    estimates = [estimate for estimate, _ in members]
    mean = stats.macro_mean(
        [estimate.value for estimate in estimates],
        [estimate.stderr for estimate in estimates],
        weights=[size for _, size in members] if by_size else None,
    )
    return Estimate(
        value=float(value),
        n=sum(estimate.n for estimate in estimates),
        stderr=mean.stderr,
        interval=mean.interval,
        interval_kind=None if mean.interval is None else "normal",
    )
