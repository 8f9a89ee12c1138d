"""Subject of a check: one object, which can be created again, and the results of its code for samples.

Secrets are canaries: texts made up for the check, so that leaks become visible. Whole plugins are in
`plugin_checks`.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from unittest import SkipTest

from modelgauge.api import Runner
from modelgauge.cache.keys import KeyMaker
from modelgauge.config.secrets import SecretDescription, SecretStore
from modelgauge.config.settings import Settings
from modelgauge.data.items import TestItem, hex_digest
from modelgauge.dependencies.store import DependencyStore
from modelgauge.engine.items.item_ids import Ids
from modelgauge.engine.items.source import numbered
from modelgauge.errors import (
    DefinitionError,
    DependencyError,
    InvalidOptionError,
    ModelGaugeError,
    PluginError,
)
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.interfaces.arguments import signature_line, unfit_signature
from modelgauge.interfaces.identity import CALLED_BY_THE_ENGINE, Identified, list_secrets, overrides
from modelgauge.interfaces.sut import PromptResponseSUT, check_sut
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.plugins.construction import Kind, Registration, ResolvedName
from modelgauge.plugins.discovery import Plugins
from modelgauge.testing.report import Problem, author_line, defined_at, describe_error, format_traceback
from modelgauge.testing.samples import SAMPLES, SampleInput
from modelgauge.wording.phrases import with_article

INTERFACES: dict[Kind, type[Identified]] = {
    "test": PromptResponseTest,
    "sut": PromptResponseSUT,
    "annotator": CompletionAnnotator,
    "metric": CompletionAnnotator,
}
MOST_ITEMS = 1_000
_PATIENCE = 3.0  # seconds

_STAGES = ("class", "uid", "methods", "made", "")
"""Stages at which creating an object can fail, and the end."""


# --- what a subject is made of --------------------------------------------------------------------


class CanaryStore(SecretStore):
    """Finds a canary for every secret: a text made of its name, which must turn up nowhere."""

    def find(self, description: SecretDescription) -> str:
        """Return the canary for a secret."""
        canary = f"canary-{hex_digest(description.name)[:24]}"
        self.redactor.add(description.name, canary)
        return canary


class Attempt(NamedTuple):
    """Return value or exception of an author's code."""

    value: Any = None
    error: BaseException | None = None


def attempt(make: Callable[[], Any]) -> Attempt:
    """Call code of an author, which can raise anything."""
    try:
        return Attempt(make())
    except (Exception, SystemExit) as error:  # noqa: BLE001  as the docstring says
        return Attempt(error=error)


class Translation(NamedTuple):
    """The native request that an object made of a sample, or the error.

    Args:
        sample: what was translated.
        request: the native request; None if translating raised the error.
        digest: of its cache key; None if making the key raised the error.
        error: which of the two raised.
    """

    sample: SampleInput
    request: Any
    digest: str | None = None
    error: BaseException | None = None


class FirstItems(NamedTuple):
    """The first items of a test.

    Args:
        items: with their ids, at most `MOST_ITEMS`.
        texts: the JSON of each, as it was when the item was made.
        error: what ended `make_test_items` early.
    """

    items: list[TestItem]
    texts: list[str]
    error: BaseException | None

    @property
    def digests(self) -> list[str]:
        """The id of each item, and a digest of its content."""
        return [f"{item.id} {hex_digest(text)}" for item, text in zip(self.items, self.texts, strict=True)]


def make_items(test: PromptResponseTest, dependencies: Mapping[str, Path]) -> FirstItems:
    """Make the items of a test as the engine does, up to `MOST_ITEMS`."""
    made: list[tuple[TestItem, str]] = []

    def collect() -> None:
        items = numbered(test.make_test_items(dependencies), Ids(test.uid), test.uid)
        made.extend((item.item, item.item.model_dump_json()) for item in islice(items, MOST_ITEMS))

    error = attempt(collect).error
    return FirstItems([item for item, _ in made], [text for _, text in made], error)


def quiet_runner(folder: str, plugins: Plugins, **options: Any) -> Runner:
    """Make a runner that stays in a folder, without observing plugins, and with a short wait for servers."""
    without_hooks = Plugins()
    for registry, filled in zip(without_hooks.registries, plugins.registries, strict=True):
        registry.add(filled)
    settings = Settings(data_dir=Path(folder))
    runner = Runner(folder, plugins=without_hooks, settings=settings, **options)
    runner.options = replace(runner.options, first_patience=_PATIENCE)
    return runner


# --- the subject ----------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)  # pytest shows it, and an object may tell secrets
class Subject:
    """A test, SUT, annotator or metric.

    Args:
        kind: which of them.
        name: its uid, or `provider/model`, with options if any.
        resolved: what was registered; without a distribution where an author gave the object itself.
        plugins: everything that is installed, for the names that it names.
        store: where external data is; nothing is fetched.
        call: whether `evaluate` and `annotate` may be called, which may cost money.
        annotators: used instead of a test's own.
        items_elsewhere: gives the digests of the items of a test as another process makes them, or its error.
        is_example: whether the kit made the name up, since a provider names no model.
    """

    kind: Kind
    name: str
    resolved: ResolvedName
    plugins: Plugins
    store: DependencyStore
    call: bool = False
    annotators: Mapping[str, Any] = field(default_factory=dict)
    items_elsewhere: Callable[[str], list[str] | str | None] = lambda _: None
    is_example: bool = False

    def __post_init__(self) -> None:
        self.interface = INTERFACES[self.kind]
        self.step = "evaluate" if self.kind == "sut" else "annotate"
        self.canaries = CanaryStore()
        self._keys: dict[int, tuple[Any, Callable[[Any], str]]] = {}

    def redact(self, text: str) -> str:
        """Remove the given secrets from a text."""
        return self.canaries.redact(text)

    def where(self, *at: str) -> str:
        """Return the author's line: of a traceback or a method, else of the class, else of the hook that registers
        it.
        """
        cls = self.target.value if isinstance(self.target.value, type) else type(self.attempt.value)
        places = [author_line(method) or defined_at(getattr(cls, method, None)) for method in at]
        classes = [] if "hook" in at else [defined_at(cls), defined_at(self.target.value)]
        return next(filter(None, [*places, *classes, *self._hooks()]), "")

    def _hooks(self) -> Iterator[str]:
        own = f"{self.resolved.entry.distribution}\0"  # as `Plugins` names it in its manager
        hooks = getattr(self.plugins.manager.hook, f"modelgauge_register_{self.kind}s").get_hookimpls()
        yield from (defined_at(hook.function) for hook in hooks if hook.plugin_name.startswith(own))

    @property
    def entry(self) -> Registration:
        """The registration of the subject; a subject that was given as an object has none."""
        if not self.resolved.entry.distribution:
            raise SkipTest("the object was given, not registered")
        return self.resolved.entry

    @cached_property
    def target(self) -> Attempt:
        """The class, or another callable, that is registered."""
        return attempt(self.resolved.entry.load)

    @cached_property
    def attempt(self) -> Attempt:
        """The object, made with canaries for secrets; the secrets of an object that was given are learned."""
        found = attempt(self.make)
        for secret in list_secrets(found.value) if isinstance(found.value, Identified) else ():
            self.canaries.redactor.add(secret.description().name, secret.value or "")
        return found

    def make(self, secrets: SecretStore | None = None) -> Any:
        """Make the object once more; an object that was given is the only one of its kind."""
        return self.resolved.make(self.canaries if secrets is None else secrets)

    @property
    def object(self) -> Any:
        """The object. If it cannot be made, the rule is skipped: the rule of the failed stage reports why."""
        self.pass_stage("")
        return self.attempt.value

    def pass_stage(self, stage: str) -> None:
        """Raise what is wrong at this stage of making the object, and skip after an earlier problem."""
        if self._defect is not None and self._defect[0] == stage:
            raise self._defect[1]
        if self._defect is not None and self._defect[0] in _STAGES[: _STAGES.index(stage)]:
            raise SkipTest(f"see {self._defect[0]}")

    @cached_property
    def _defect(self) -> tuple[str, Problem | SkipTest] | None:
        """The first stage at which making the object breaks, and how."""
        return next(self._defects(), None)

    def _defects(self) -> Iterator[tuple[str, Problem | SkipTest]]:
        target, error = self.target
        if error is not None:
            refused = _definition_error(error)
            stage = "class" if refused is None else "methods"
            yield stage, _make_problem(refused or error, "Correct the target.")
        if isinstance(target, type):
            yield from _defects_of_class(target, self.interface)
        fix = "Write def __init__(self, uid: str, …), and call super().__init__(uid)."
        if not _takes_uid_first(target):
            name = getattr(target, "__qualname__", repr(target))
            yield "uid", Problem(f"The first parameter of {name} is not `uid`.", fix, "__init__")
        made, error = self.attempt
        is_choosy = self.is_example and not isinstance(error, PluginError)
        if error is not None and (is_choosy or isinstance(error, InvalidOptionError)):
            why = f"it needs a better example: {describe_error(error)}. Give one by --example NAME"
            yield "made", SkipTest(why)
        if error is not None:
            yield "made", _make_problem(error, "Make the constructor work with what the hook registers.")
        yield from _defects_of_class(type(made), self.interface)
        if made.uid != self.name:
            yield "uid", Problem(f"Made as {self.name!r}, it calls itself {made.uid!r}.", fix, "__init__")

    @cached_property
    def translations(self) -> list[Translation]:
        """The requests that a SUT or annotator makes of all samples."""
        made, key_of = self.object, self.key_maker(self.object)
        found = []
        for sample in SAMPLES:
            if hasattr(self.interface, sample.method) and overrides(type(made), sample.method):
                request, error = attempt(partial(getattr(made, sample.method), *sample.arguments))
                digest, key_error = (None, error) if error else attempt(partial(key_of, request))
                found.append(Translation(sample, request, digest, key_error))
        return found

    def key_maker(self, made: Any) -> Callable[[Any], str]:
        """Return a function that computes the digest of a request's cache key."""
        if id(made) not in self._keys:  # state left by checks must not count as settings
            keys = KeyMaker("sut" if self.kind == "sut" else "annotator", made.identity())
            self._keys[id(made)] = made, lambda request: keys.key(request).digest
        return self._keys[id(made)][1]

    @cached_property
    def data(self) -> Attempt:
        """Return the paths of a test's data on this machine, or why data for its first items is missing."""
        test = self.object
        found = attempt(lambda: self.store.paths(test.uid, test.get_dependencies()))
        if found.error is None and len(found.value.there) < len(found.value):
            # Some data is fetched only when used.
            error = make_items(test, found.value).error
            return Attempt(found.value, error if isinstance(error, DependencyError) else None)
        return found

    @cached_property
    def items(self) -> FirstItems:
        """The items of a test."""
        if self.data.error is not None:
            raise SkipTest("its data is missing: see items")
        return make_items(self.object, self.data.value)


def _takes_uid_first(target: Any) -> bool:
    # From the class, as `construct` reads it: the interfaces have a `__new__` that takes anything.
    is_class = isinstance(target, type)
    function = inspect.getattr_static(target, "__init__") if is_class else target
    first = list(inspect.signature(function).parameters.values())[is_class:][:1]
    return any(
        parameter.name == "uid" or parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in first
    )


def _definition_error(error: BaseException | None) -> DefinitionError | None:
    """Return the error in a class's own definition behind a failed import."""
    while error is not None and not isinstance(error, DefinitionError):
        error = error.__cause__
    return error


def _make_problem(error: BaseException, fix: str) -> Problem:
    if isinstance(error, ModelGaugeError):
        return Problem(error.problem, error.fix, format_traceback(error), "__init__")
    return Problem(f"It raised {describe_error(error)}.", fix, format_traceback(error), "__init__")


def _defects_of_class(cls: type, interface: type[Identified]) -> Iterator[tuple[str, Problem]]:
    if issubclass(cls, interface):
        yield from (("methods", problem) for problem in _wrong_methods(cls, interface))
    else:
        fix = f"Derive it from modelgauge.{interface.__name__}, or register it by the hook of its own kind."
        yield "class", Problem(f"{cls.__qualname__} is not {with_article(interface.__name__)}.", fix)


def _wrong_methods(cls: type[Identified], interface: type) -> Iterator[Problem]:
    for name in cls.required_methods:
        if not overrides(cls, name):
            yield Problem(
                f"{cls.__qualname__} does not define {name}.", f"Add {signature_line(getattr(cls, name))}."
            )
    if issubclass(cls, PromptResponseSUT):
        try:
            check_sut(cls)
        except DefinitionError as error:
            yield Problem(error.problem, error.fix)
    for name in (name for name in CALLED_BY_THE_ENGINE if hasattr(interface, name)):
        function, wanted = getattr(cls, name), getattr(interface, name)
        is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        if is_async and name not in ("evaluate", "annotate"):
            fix = "Write a plain def: only evaluate and annotate may be async def."
            yield Problem(f"{name} is async.", fix, name)
        if unfit := unfit_signature(cls, name, wanted):
            yield Problem(*unfit, name)
