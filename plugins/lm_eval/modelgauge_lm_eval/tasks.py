"""lm-eval's tasks, loaded: their documents as prompts, and the scores of answers by their own code.

This is the one module that imports lm-eval.
"""

import json
import logging
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import lm_eval.api.task
import numpy as np
from lm_eval.api.group import Group
from lm_eval.api.instance import Instance
from lm_eval.api.metrics import mean, nanmean
from lm_eval.evaluator_utils import get_sample_size
from lm_eval.models.utils import normalize_gen_kwargs, postprocess_generated_text
from lm_eval.tasks import TaskManager

from modelgauge import (
    ChatMessage,
    ChatPrompt,
    ContinuationPrompt,
    Interaction,
    SUTCompletion,
    SUTOptions,
    TextPrompt,
)
from modelgauge.errors import DefinitionError, DependencyError

log = logging.getLogger(__name__)

Prompt = TextPrompt | ChatPrompt | ContinuationPrompt
Raw = dict[tuple[str, str], Any]
"""Scores of a document, as lm-eval's own values, by metric and filter."""

_LOCK = RLock()
"""Held while code of lm-eval runs: it is written for one thread."""

_UNDERSTOOD = frozenset({
    *("until", "max_gen_toks", "do_sample", "temperature", "top_p", "top_k", "presence_penalty"),
    *("frequency_penalty",),
})  # fmt: skip
_LONGEST = 80  # characters of a field that a document hands on


@dataclass(frozen=True, slots=True)
class Asking:
    """Options of lm-eval for the documents of a task.

    Args:
        shots: the number of examples; None for the task's own.
        limit: the first documents of each task: their number, or a share below 1; None for all.
        chat_template: True for chats.
        multiturn: of chats, True for examples as turns, False for all of them in the user's message.
        system: the system message.
        seed: of the choice of examples.
    """

    shots: int | None
    limit: float | None
    chat_template: bool
    multiturn: bool
    system: str | None
    seed: int


class ChatText(str):
    """A chat in the place where lm-eval wants the text of a template.

    Attributes:
        messages: of the chat.
    """

    __slots__ = ("messages",)

    messages: list[dict[str, str]]

    @classmethod
    def of(cls, messages: list[dict[str, str]], *, add_generation_prompt: bool = True) -> "ChatText":
        """Return the chat; where lm-eval wants no generation prompt, the last message is the assistant's."""
        del add_generation_prompt
        text = cls("\n".join(message["content"] for message in messages))
        text.messages = messages
        return text


class Document(NamedTuple):
    """A document of a task.

    Args:
        number: its place in the task, from 0.
        prompts: what is asked.
        target: the right answer as a text, or several; None if there is none to show.
        fields: short values of the document.
    """

    number: int
    prompts: list[Prompt]
    target: str | list[str] | None
    fields: dict[str, Any]


def load(name: str, folders: set[Path], metadata: Mapping[str, Any] | None) -> "Loaded":
    """Load a task, or the tasks of a group or tag, with their data.

    Args:
        name: of the task, group or tag.
        folders: in which its files are.
        metadata: what the tasks' own code is told.
    """
    log.warning("Loading %s by lm-eval …", name)
    with _LOCK, _seeded(), _explained(name):
        _quiet()
        manager = TaskManager(
            include_path=sorted(str(each) for each in folders if folders.isdisjoint(each.parents)),
            include_defaults=False,
            metadata=dict(metadata or {}),
        )
        found = manager.load([name])
    tasks = {task_name: LoadedTask(task_name, task) for task_name, task in found["tasks"].items()}
    return Loaded(tasks, found.get("groups") or {}, name)


class Loaded(NamedTuple):
    """Loaded tasks and groups.

    Args:
        tasks: by name.
        groups: by name, the one that was asked for included.
        name: that was asked for.
    """

    tasks: dict[str, "LoadedTask"]
    groups: dict[str, Group]
    name: str


class LoadedTask:
    """A task with its documents.

    Args:
        name: of the task.
        task: of lm-eval.
    """

    def __init__(self, name: str, task: Any) -> None:
        self.name, self._task = name, task
        self._docs: dict[int, Any] = {}

    def documents(self, asking: Asking) -> Iterator[Document]:
        """Yield the documents, in the order of the task."""
        with _LOCK, _seeded():
            self._set_shots(asking.shots)
            self._task.set_fewshot_seed(seed=asking.seed)
            self._task.build_all_requests(
                limit=get_sample_size(self._task, asking.limit),
                rank=0,
                world_size=1,
                system_instruction=asking.system,
                apply_chat_template=asking.chat_template,
                fewshot_as_multiturn=asking.chat_template and asking.multiturn,
                chat_template=ChatText.of if asking.chat_template else None,
            )
            by_doc = groupby(self._task.instances, lambda instance: instance.doc_id)
            documents = [self._document(number, list(instances), asking) for number, instances in by_doc]
        yield from documents

    def _set_shots(self, shots: int | None) -> None:
        own = self._task.get_config("num_fewshot")
        if own == 0 and shots:
            log.warning("%s is to be asked without examples, as its configuration says.", self.name)
        elif own != 0 and shots is not None:
            self._task.set_config(key="num_fewshot", value=shots)
        elif own is None:
            self._task.set_config(key="num_fewshot", value=0)

    def _document(self, number: int, instances: list[Instance], asking: Asking) -> Document:
        instances.sort(key=lambda instance: instance.idx)
        self._docs[number] = instances[0].doc
        if asking.chat_template and not all(_is_chat(each) for each in instances):
            raise DefinitionError(
                f"The task '{self.name}' makes no chats of its own.", fix="Leave out chat_template."
            )
        doc = instances[0].doc
        fields = (
            {key: value for key, value in doc.items() if _is_short(value)} if isinstance(doc, dict) else {}
        )
        try:
            return Document(number, list(self._prompts(instances)), self._target(doc), fields)
        except ValueError as error:
            problem = f"Document {number} of '{self.name}' cannot be asked: {error}"
            raise DefinitionError(problem, fix="Look at what the task makes of it.") from error

    def _prompts(self, instances: Iterable[Instance]) -> Iterator[Prompt]:
        """Yield a prompt for each generation, and one for all continuations of a context."""
        for key, several in groupby(instances, lambda each: (each.request_type, each.args[0])):
            kind, context = key
            if kind == "loglikelihood_rolling":
                yield from (ContinuationPrompt("", [each.args[0]]) for each in several)
            elif kind == "loglikelihood":
                yield ContinuationPrompt(_messages(context), [each.args[1] for each in several])
            else:
                for each in several:
                    options = make_options(each.args[1], each.repeats)
                    messages = _messages(context)
                    is_text = isinstance(messages, str)
                    yield TextPrompt(messages, options) if is_text else ChatPrompt(messages, options)

    def _target(self, doc: Any) -> str | list[str] | None:
        task = self._task
        if task.OUTPUT_TYPE == "loglikelihood_rolling" or getattr(task, "multiple_input", 0):
            return None
        target = task.doc_to_target(doc)
        choices = task.doc_to_choice(doc) if task.get_config("doc_to_choice") is not None else None
        texts = [
            _describe_target(each, choices) for each in (target if isinstance(target, list) else [target])
        ]
        return texts if isinstance(target, list) else texts[0]

    def score(self, number: int, interactions: Sequence[Interaction]) -> Raw:
        """Return what a document scores by the task's own filters and `process_results`.

        Args:
            number: of the document.
            interactions: its prompts with their responses.
        """
        with _LOCK, _seeded():
            if number not in self._docs:  # the answers are recorded ones
                self._docs = dict(self._task.doc_iterator())
            doc = self._docs[number]
            instances = [
                Instance("", doc, (), at, (self.name, number, len(answers)), resps=answers)
                for at, answers in enumerate(self._answers(interactions))
            ]
            found: Raw = {}
            for ensemble in self._task._filters:  # noqa: SLF001  apply_filters takes all documents at once
                ensemble.apply(instances)
                filtered = [instance.filtered_resps[ensemble.name] for instance in instances]
                scores = self._task.process_results(doc, filtered)
                found |= {(metric, ensemble.name): value for metric, value in scores.items()}
            return found

    def _answers(self, interactions: Iterable[Interaction]) -> Iterator[list[Any]]:
        """Yield the answers to each request of a document, as lm-eval's models give them."""
        is_rolling = self._task.OUTPUT_TYPE == "loglikelihood_rolling"
        for interaction in interactions:
            prompt = interaction.prompt.prompt
            completions = [annotated.completion for annotated in interaction.response.completions]
            if not isinstance(prompt, ContinuationPrompt):
                stops = list(prompt.options.stop_sequences or ())
                yield [postprocess_generated_text(each.text, stops, None) for each in completions]
                continue
            for completion in completions:
                logprob, is_greedy = _read_score(completion)
                yield [logprob if is_rolling else (logprob, is_greedy)]

    def aggregation(self, metric: str) -> Any:
        """Return the function from the values of all documents to the result; lm-eval's mean if the task has none."""
        return self._task.aggregation().get(metric, mean)

    def has_mean(self, metric: str) -> bool:
        """Return whether the result of a metric is the mean over the documents that have it."""
        return self.aggregation(metric) in (mean, nanmean)

    @property
    def has_means_only(self) -> bool:
        """True if no metric needs all documents at once."""
        return all(map(self.has_mean, self._task.aggregation()))

    @property
    def data(self) -> str:
        """The data set, for people."""
        path, name = (self._task.get_config(key) for key in ("dataset_path", "dataset_name"))
        return f"{path} {name}" if path and name else str(path or self.name)


def make_options(generation: Mapping[str, Any], repeats: int) -> SUTOptions:
    """Return the options that stand for lm-eval's `generation_kwargs`.

    Args:
        generation: lm-eval's.
        repeats: the number of answers that the task wants.
    """
    asked: dict[str, Any] = dict(normalize_gen_kwargs(dict(generation)))
    if ignored := sorted(key for key in asked.keys() - _UNDERSTOOD if _means_something(asked[key])):
        log.warning("Ignored: %s in the task's generation_kwargs.", ", ".join(ignored))
    stops = [text for text in asked["until"] if text]
    is_sampled = bool(asked["do_sample"])
    return SUTOptions(
        num_completions=repeats if repeats > 1 else None,
        max_tokens=asked["max_gen_toks"],
        temperature=float(asked.get("temperature", 1.0)) if is_sampled else 0.0,
        top_p=asked.get("top_p") if is_sampled else None,
        top_k_per_token=asked.get("top_k") if is_sampled else None,
        stop_sequences=tuple(stops) or None,
        presence_penalty=asked.get("presence_penalty"),
        frequency_penalty=asked.get("frequency_penalty"),
    )


def _means_something(value: Any) -> bool:
    return value not in (None, False, 1, 1.0)  # num_beams: 1, repetition_penalty: 1.0


def _read_score(completion: SUTCompletion) -> tuple[float, bool]:
    if completion.logprob is None or completion.is_greedy is None:
        raise DefinitionError(
            "A continuation has no log-likelihood.", fix="Use a SUT that declares ScoresContinuations."
        )
    return completion.logprob, completion.is_greedy


def _messages(context: Any) -> Any:
    if not isinstance(context, ChatText):
        return context
    return [ChatMessage(message["role"], message["content"]) for message in context.messages]


def _is_chat(instance: Instance) -> bool:
    is_alone = instance.request_type == "loglikelihood_rolling" or instance.args[0] == ""
    return is_alone or isinstance(instance.args[0], ChatText)


def _describe_target(target: Any, choices: Sequence[str] | None) -> str:
    is_place = isinstance(target, int) and choices is not None and 0 <= target < len(choices)
    return choices[target] if is_place and choices is not None else str(target)


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST
    return value is not None and isinstance(value, int | float) and value == json.loads(json.dumps(value))


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Say what lm-eval could not load."""
    try:
        yield
    except Exception as error:  # whatever its code and that of its tasks raises
        fix = "Look at the task's YAML file, and at its README in lm-eval."
        if isinstance(error, OSError):
            fix = "Check the connection to huggingface.co, or the paths of the task's local files."
        elif isinstance(error, ImportError):
            fix = "Install what it names; some tasks have an extra of lm-eval: pip install 'lm_eval[math]'."
        raise DependencyError(
            f"lm-eval cannot load '{name}': {type(error).__name__}: {error}.", fix=fix
        ) from error


@contextmanager
def _seeded() -> Iterator[None]:
    """Seed Python's and numpy's random numbers as lm-eval does, since tasks draw from them; restore them then."""
    states = random.getstate(), np.random.get_state()
    random.seed(0)
    np.random.seed(1234)
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


def _quiet() -> None:
    """Hide lm-eval's warnings of defaults, and the progress bars, which would cut up that of the run."""
    logger = logging.getLogger("lm_eval")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.ERROR)
    lm_eval.api.task.datasets.disable_progress_bars()
    lm_eval.api.task.tqdm = lambda docs, **_: docs
