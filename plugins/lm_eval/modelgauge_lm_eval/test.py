"""The test: a task, group or tag of lm-eval. What it must know before a run comes from YAML files alone."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock, current_thread, main_thread
from typing import TYPE_CHECKING, Any, ClassVar, cast

from modelgauge import (
    AcceptsChatPrompt,
    AcceptsTextPrompt,
    MeasuredItems,
    PromptResponseTest,
    ScoresContinuations,
    TestItem,
    TestItemAnnotations,
)
from modelgauge.errors import (
    DefinitionError,
    IncompatibleError,
    InputFileError,
    InvalidOptionError,
    PluginError,
    UnknownNameError,
)
from modelgauge_lm_eval import names
from modelgauge_lm_eval.configs import Configs, measurement_name, read_directions
from modelgauge_lm_eval.results import compute_results

if TYPE_CHECKING:
    from modelgauge_lm_eval.tasks import Loaded

_LEAST = (0, 4, 13)
LOGLIKELIHOOD = "loglikelihood"
"""The measurement of a document that is one text whose log-likelihood is asked for."""

_RIGHT_OR_WRONG = frozenset({"acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match"})


class LMEvalTest(PromptResponseTest):
    """A task of lm-eval, or all tasks of a group or tag, with its documents, few-shots, templates, filters and metrics.

    Args:
        uid: the name in records.
        model: the name of the task, group or tag.
        shots: the number of examples before a question; by default that of the task.
        limit: the first documents of each task: their number, or a share below 1.
        include: a folder with further tasks. Its YAML files may name Python code, which runs.
        chat_template: true asks with chats, for the model's own template.
        multiturn: of chats, false puts all examples into the user's message.
        system: the system message of chats, and the text before the task's description.
        seed: of the choice of examples.
        metadata: a JSON object for the code of the tasks that want one.

    Raises:
        PluginError: lm-eval is not installed, or too old.
        UnknownNameError: there is no such task.
        IncompatibleError: a task asks with images or sounds.
        InvalidOptionError: an option has no such value.
        InputFileError: there is no such folder, or a file of it cannot be read.
    """

    measure_in_thread = True
    meant_by: ClassVar[Mapping[str, str]] = {
        "num_fewshot": "shots",
        "apply_chat_template": "chat_template",
        "fewshot_as_multiturn": "multiturn",
        "system_instruction": "system",
        "include_path": "include",
    }

    def __init__(
        self,
        uid: str,
        model: str,
        *,
        shots: int | None = None,
        limit: float | None = None,
        include: str | None = None,
        chat_template: bool = False,
        multiturn: bool = True,
        system: str | None = None,
        seed: int = 1234,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(uid)
        _check(shots, limit)
        self._name, self._metadata = model, metadata
        self._roots = _folders(include)
        self._asking = (shots, limit, chat_template, multiturn, system, seed)
        self._configs = _read_configs(model, self._roots)
        self._loading, self._loaded = Lock(), cast("Loaded | None", None)
        self.cache_version = self._version()
        self.executes_answers = self._configs.executes_answers
        self.measure_in_thread = not self._configs.needs_main_thread
        tasks = self._configs.tasks.values()
        named = [pair for task in tasks for pair in read_directions(task)]
        self.measurement_directions = dict([(LOGLIKELIHOOD, "higher"), *named])
        kinds = {task.get("output_type", "generate_until") for task in tasks if "class" not in task}
        generates = AcceptsChatPrompt if chat_template else AcceptsTextPrompt
        self.requires_sut_capabilities = (  # type: ignore[misc]  # it depends on the task
            *([generates] if "generate_until" in kinds else []),
            *([ScoresContinuations] if kinds - {"generate_until"} else []),
        )

    def _version(self) -> str:
        """Return the version of the task and a digest of its configuration: runs with others are not compared."""
        own = self._configs.versions.get(self._name) or "no version"
        return f"{own}, configuration {self._configs.digest(self._roots)}"

    @property
    def record_notes(self) -> Sequence[str]:  # type: ignore[override]  # of what is installed
        """The version of lm-eval, whose code made prompts and scores."""
        return [f"Prompts and scores are made by lm-eval {version('lm_eval')}."]

    def _load(self) -> "Loaded":
        """Return the tasks, loaded when they are first needed, on whatever thread that is."""
        with self._loading:
            if self._loaded is None:
                if self.executes_answers:  # which the run has allowed
                    os.environ.setdefault("HF_ALLOW_CODE_EVAL", "1")
                self._loaded = _tasks().load(self._name, self._configs.folders, self._metadata)
            return self._loaded

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Iterator[TestItem]:
        """Make an item of each document, named by its task and its place there."""
        del dependencies
        asking = _tasks().Asking(*self._asking)
        for name, task in self._load().tasks.items():
            for document in task.documents(asking):
                context = {"task": name, "doc_id": document.number}
                if document.target is not None:
                    context["target"] = document.target
                if document.fields:
                    context["metadata"] = document.fields
                yield TestItem(document.prompts, context=context, id=f"{name}/{document.number}")

    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        """Return the scores whose result is their mean, and the log-likelihood of a text.

        Raises:
            DefinitionError: the task's code runs on the main thread only, and this is another.
        """
        if self._configs.needs_main_thread and current_thread() is not main_thread():
            raise DefinitionError(
                f"'{self.uid}' stops slow comparisons by a signal, so it is scored on the main thread only.",
                fix="Measure it by `modelgauge run-test`; answers that are there: `modelgauge rescore`.",
            )
        context: Any = item.test_item.context
        task = self._load().tasks[context["task"]]
        raw = task.score(context["doc_id"], item.interactions)
        measured = {
            measurement_name(metric, of_filter): _as_measurement(metric, value)
            for (metric, of_filter), value in raw.items()
            if task.has_mean(metric) and _is_number(value)
        }
        if (whole := _log_likelihood(item)) is not None:
            measured[LOGLIKELIHOOD] = whole
        return measured

    def aggregate_measurements(self, items: MeasuredItems) -> Mapping[str, Any]:
        """Return the results of the task; of a group, its own and those of each of its groups and tasks."""
        return compute_results(self._load(), items)


def _log_likelihood(item: TestItemAnnotations) -> float | None:
    """Return the log-likelihood of a document that is one text; None of others."""
    completions = [each for interaction in item.interactions for each in interaction.response.completions]
    return completions[0].completion.logprob if len(completions) == 1 else None


def _as_measurement(metric: str, value: Any) -> float:
    number = float(value)
    return bool(number) if metric in _RIGHT_OR_WRONG and number in (0, 1) else number


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, str) and float(value) == float(value)
    except (TypeError, ValueError):
        return False


def _tasks() -> Any:
    """Return the module that imports lm-eval, which takes seconds."""
    return import_module("modelgauge_lm_eval.tasks")


def _check(shots: int | None, limit: float | None) -> None:
    if shots is not None and shots < 0:
        raise InvalidOptionError(f"shots is {shots}.", fix="Give 0 or more.")
    if limit is not None and (limit <= 0 or (limit > 1 and limit % 1)):
        raise InvalidOptionError(
            f"limit is {limit:g}.", fix="Give a number of documents, or a share of them between 0 and 1."
        )


def _folders(include: str | None) -> list[Path]:
    """Return the folders of tasks: those of lm-eval, and the user's own."""
    installed = names.installed_folder()
    try:
        found = version("lm_eval")
    except PackageNotFoundError:
        found = "0"
    if tuple(map(int, re.findall(r"\d+", found)[:3])) < _LEAST:
        raise PluginError(f"lm-eval {found} is installed.", fix="pip install -U 'lm_eval>=0.4.13'")
    if include is None:
        return [installed]
    folder = Path(include).expanduser().resolve()
    if not folder.is_dir():
        raise InputFileError(
            f"There is no folder {folder}.", fix="Give one with YAML files of tasks: include=DIR."
        )
    return [installed, folder]


def _suggest(name: str, known: Iterable[str]) -> str:
    similar = get_close_matches(name, known, n=3, cutoff=0.7)
    return f"Did you mean {' or '.join(map(repr, similar))}? " if similar else ""


def _read_configs(name: str, roots: list[Path]) -> Configs:
    entries = names.index(roots)
    if name not in entries:
        where = roots[0] if len(roots) == 1 else f"{roots[0]} and {roots[1]}"
        raise UnknownNameError(
            f"There is no task, group or tag '{name}' in {where}.",
            fix=f"{_suggest(name, entries)}`modelgauge list-tests --provider lm_eval --search TEXT` finds one; "
            "include=DIR adds a folder of your own.",
        )
    configs = Configs(entries)
    configs.add(name)
    for task, config in configs.tasks.items():
        if config.get("doc_to_image") or config.get("doc_to_audio"):
            raise IncompatibleError(
                f"The task '{task}' asks with images or sounds, and prompts here are texts.",
                fix="Choose another task.",
            )
    return configs
