"""What rules are held against: one object, made as the registry makes it, and what it does with the samples.

Secrets are canaries: texts made up for the check, so that a leak can be seen. Whole plugins are
`plugin_subject`'s.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from modelgauge.cache import KeyMaker
from modelgauge.config.secrets import Secret, SecretDescription, SecretStore
from modelgauge.errors import InvalidDataError
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.interfaces.capabilities import AcceptsChatPrompt, AcceptsTextPrompt
from modelgauge.interfaces.identity import Identified
from modelgauge.interfaces.sut import PromptResponseSUT, capabilities_of
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.plugins.discovery import Plugins
from modelgauge.plugins.registry import Entry, Kind, Resolved
from modelgauge.testing.definition import definition_problems
from modelgauge.testing.rule import NotApplicableError, Note
from modelgauge.testing.samples import chat_samples, judged_samples, text_samples

INTERFACES: dict[Kind, type[Identified]] = {
    "test": PromptResponseTest,
    "sut": PromptResponseSUT,
    "annotator": CompletionAnnotator,
    "metric": CompletionAnnotator,
}


class CanaryStore(SecretStore):
    """Finds every secret: a text made of its name, which nobody needs and which must turn up nowhere."""

    def find(self, description: SecretDescription) -> str:
        """The canary of a secret."""
        digest = hashlib.sha256(description.name.encode()).hexdigest()[:24]
        canary = f"canary-{digest}"
        self.redactor.add(description.name, canary)
        return canary


@dataclass(frozen=True, slots=True)
class Attempt:
    """An object, or why it could not be made."""

    made: Any = None
    error: BaseException | None = None


class ObjectSubject:
    """A test, SUT, annotator or metric.

    Args:
        kind: which of them.
        name: its uid, or `provider/model`, with options if any.
        plugins: gives everything that is installed, for the names that it names.
        resolved: where it is registered; None where an author gave the object itself.
        given: that object.
        call: whether `evaluate` and `annotate` may be called, which may cost money.
        is_example: whether the name was made up by the kit, since a provider names no model.
    """

    def __init__(
        self,
        kind: Kind,
        name: str,
        *,
        plugins: Callable[[], Plugins],
        resolved: Resolved | None = None,
        given: Any = None,
        call: bool = False,
        is_example: bool = False,
    ) -> None:
        self.kind = kind
        self.name = name
        self.plugins = plugins
        self.resolved = resolved
        self.given = given
        self.call = call
        self.is_example = is_example
        self.canaries = CanaryStore()
        held = _secrets_in(given) if given is not None else []
        for description, value in held:
            self.canaries.redactor.add(description, value)
        self.asks_for_secrets = bool(held if resolved is None else resolved.entry.injections)

    def redact(self, text: str) -> str:
        """A text without the secrets that it was given."""
        return self.canaries.redact(text)

    @property
    def entry(self) -> Entry:
        """What was registered."""
        if self.resolved is None:
            raise NotApplicableError("the object was given, not registered")
        return self.resolved.entry

    @cached_property
    def target(self) -> Attempt:
        """The class, or another callable, that is registered."""
        if self.resolved is None:
            return Attempt(type(self.given))
        return _attempt(self.resolved.entry.load)

    @cached_property
    def attempt(self) -> Attempt:
        """The object, made with canary secrets."""
        return Attempt(self.given) if self.resolved is None else _attempt(self.make)

    def make(self, secrets: SecretStore | None = None) -> Any:
        """Make the object once more; the given one is the only one of its kind."""
        if self.resolved is None:
            return self.given
        return self.resolved.make(self.canaries if secrets is None else secrets)

    @property
    def interface_class(self) -> type[Identified] | None:
        """The class, if it is of the interface that it is registered for."""
        target = self.target.made
        found = target if isinstance(target, type) else type(self.attempt.made)
        return found if issubclass(found, INTERFACES[self.kind]) else None

    @cached_property
    def definition(self) -> list[Note]:
        """What is wrong with the class as it is defined."""
        cls = self.interface_class
        return [] if cls is None else definition_problems(cls, self.attempt.made)

    @property
    def sound(self) -> Any:
        """The object, where its steps can be called.

        Raises:
            NotApplicableError: they cannot, which another rule reports.
        """
        if self.definition:
            raise NotApplicableError("see methods")
        return self.made

    @property
    def made(self) -> Any:
        """The object.

        Raises:
            NotApplicableError: there is none, which another rule reports.
        """
        if self.attempt.error is not None:
            raise NotApplicableError("it cannot be made")
        if not isinstance(self.attempt.made, INTERFACES[self.kind]):
            raise NotApplicableError(f"it is no {INTERFACES[self.kind].__name__}")
        return self.attempt.made


def _attempt(make: Callable[[], Any]) -> Attempt:
    try:
        return Attempt(made=make())
    except (Exception, SystemExit) as error:  # noqa: BLE001  a constructor is anybody's code
        return Attempt(error=error)


def _secrets_in(given: Any) -> list[tuple[str, str]]:
    found = [part for part in vars(given).values() if isinstance(part, Secret)]
    return [(one.description().name, one.value) for one in found if one.value]


@dataclass(frozen=True, slots=True)
class Translation:
    """A sample and the native request that was made of it.

    Args:
        label: how messages call the sample.
        again: makes the request once more, of an object that is given.
        sample: what was translated.
        request: the native request.
        digest: of its cache key; None where it has none.
        error: why there is no request.
        key_error: why there is no key.
    """

    label: str
    again: Callable[[Any], Any]
    sample: Any
    request: Any = None
    digest: str | None = None
    error: BaseException | None = None
    key_error: InvalidDataError | None = None


class CallableSubject(ObjectSubject):
    """A SUT, an annotator or a metric: something that makes requests."""

    @property
    def role(self) -> str:
        """As in cache keys."""
        return "sut" if self.kind == "sut" else "annotator"

    @cached_property
    def translations(self) -> Sequence[Translation]:
        """The requests that it makes of all samples.

        Raises:
            NotApplicableError: it cannot be made.
        """
        made = self.sound
        keys = KeyMaker(self.role, made.identity())
        return [_translated(made, keys, label, sample, again) for label, sample, again in self._samples(made)]

    def _samples(self, made: Any) -> list[tuple[str, Any, Callable[[Any], Any]]]:
        if self.kind != "sut":
            return [(one.label, one[1:], _judging(*one[1:])) for one in judged_samples()]
        has = capabilities_of(made)
        texts = text_samples() if AcceptsTextPrompt in has else []
        chats = chat_samples() if AcceptsChatPrompt in has else []
        return [(one.label, one.prompt, _asking(one.prompt)) for one in [*texts, *chats]]

    def digest(self, made: Any, request: Any) -> str:
        """The cache key of a request of an object."""
        return KeyMaker(self.role, made.identity()).key(request).digest


def _asking(prompt: Any) -> Callable[[Any], Any]:
    return lambda sut: (
        sut.translate_chat_prompt(prompt)
        if hasattr(prompt, "messages")
        else sut.translate_text_prompt(prompt)
    )


def _judging(prompt: Any, completion: Any) -> Callable[[Any], Any]:
    return lambda annotator: annotator.translate_request(prompt, completion)


def _translated(
    made: Any, keys: KeyMaker, label: str, sample: Any, again: Callable[[Any], Any]
) -> Translation:
    try:
        request = again(made)
    except Exception as error:  # noqa: BLE001  an author's translation can raise anything
        return Translation(label, again, sample, error=error)
    try:
        return Translation(label, again, sample, request, keys.key(request).digest)
    except InvalidDataError as error:
        return Translation(label, again, sample, request, key_error=error)
