"""Policy for the calls of a SUT or an annotator, as declared by its author: caching, batches, concurrency.

Also whether a secret prevents storing a call, and the declared type of responses.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from modelgauge.cache.keys import Key, KeyMaker, was_redacted
from modelgauge.config.redaction import Redactor
from modelgauge.config.run_options import RunOptions
from modelgauge.engine.calls.limits import CEILING, START, AdaptiveLimiter, Limiter
from modelgauge.engine.loop.deadlines import never_waits
from modelgauge.errors import DefinitionError
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.interfaces.codec import response_type
from modelgauge.interfaces.identity import Identified, list_secrets, overrides
from modelgauge.interfaces.sut import PromptResponseSUT

Owner: TypeAlias = PromptResponseSUT[Any, Any] | CompletionAnnotator[Any]
"""An object that the engine calls."""

JudgeSUTs: TypeAlias = Mapping[str, PromptResponseSUT[Any, Any]]
"""The SUTs that a judge asks, by its own names."""


_LOOKED_UP = 32
"""The maximum number of a judge's annotations looked up in the cache at once, however low its concurrency."""


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """Policy for the calls of one object, with its current settings.

    Args:
        owner: is called.
        judge_suts: the SUTs that it asks, by its own names; empty if it is no judge.
        is_sut: whether it is a SUT, and not an annotator.
        is_cached: whether its calls are cached, if there is a cache: they cost something, and can be.
        is_sent: whether its calls are sent to somebody. What a judge asks is sent by its SUTs, and a cheap metric
            computes.
        is_batched: whether it answers several requests at once.
        waits: whether a call may wait for something, as far as can be seen.
        is_immediate: whether it is an annotator that only computes, and has no `classify_error` of its own: it needs no
            limits and no further attempts.
    """

    owner: Owner
    judge_suts: JudgeSUTs
    is_sut: bool
    is_cached: bool
    is_sent: bool
    is_batched: bool
    waits: bool
    is_immediate: bool

    @property
    def leaves_spans(self) -> bool:
        """True if the spans of a call belong to a single item, which is not the case in a batch."""
        return self.is_sut and not self.is_batched

    @classmethod
    def of(cls, owner: Owner, judge_suts: JudgeSUTs | None = None) -> Self:
        """Return the policy for an object.

        Args:
            owner: is called.
            judge_suts: the SUTs that it asks, by its own names.
        """
        is_sut = isinstance(owner, PromptResponseSUT)
        waits = not never_waits(get_method(owner))
        classifies = type(owner).classify_error is not CompletionAnnotator.classify_error
        return cls(
            owner,
            judge_suts or {},
            is_sut=is_sut,
            is_cached=not owner.is_cheap and owner.why_uncacheable(judge_suts) is None,
            is_sent=is_sut or not (owner.is_cheap or judge_suts),
            is_batched=is_batched(owner),
            waits=waits,
            is_immediate=not (is_sut or waits or classifies) and owner.is_cheap,
        )

    def make_keys(self) -> KeyMaker | None:
        """Return the maker of cache keys; None if the calls are not cached."""
        if not self.is_cached:
            return None
        return KeyMaker("sut" if self.is_sut else "annotator", self.owner.identity(self.judge_suts))

    def make_limiter(self, options: RunOptions) -> Limiter:
        """Return the limiter of concurrent calls.

        Raises:
            DefinitionError: the author allows no calls.
        """
        owner = self.owner
        if isinstance(owner, CompletionAnnotator):
            if owner.get_suts():
                return Limiter(_LOOKED_UP)  # its questions are limited where they are asked, and count there
            if not self.waits:
                return Limiter(1)  # alone anyhow
        own = _places(owner, "max_concurrency")
        ceiling = min(own or options.concurrency or CEILING, options.concurrency or 2**31)
        start = options.concurrency or START
        if not (self.waits or self.is_batched) and options.executor == "local":
            return Limiter(ceiling)  # each call ends before the next begins
        if self.is_batched:
            start = ceiling = 2 * (_places(owner, "batch_size") or 1)  # one batch at work, one that fills
        return AdaptiveLimiter(start, ceiling, asyncio.get_running_loop().time, options.attempt_timeout)


def get_method(owner: Owner) -> Any:
    """Return the method that makes a call."""
    return owner.evaluate if isinstance(owner, PromptResponseSUT) else owner.annotate


def is_batched(owner: object) -> bool:
    """Return whether an object answers several requests at once."""
    return isinstance(owner, PromptResponseSUT) and overrides(type(owner), "evaluate_batch")


def _places(owner: Any, name: str) -> int | None:
    """Validate an author's limit on concurrency or batch size.

    Raises:
        DefinitionError: no such number; a run with no place for calls would wait for ever.
    """
    value = getattr(owner, name)
    if value is None and name == "max_concurrency":
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise DefinitionError(
            f"{name} of '{owner.uid}' is {value!r}.",
            fix=f"Let {type(owner).__qualname__} say a whole number, 1 or more.",
        )
    return value


def learn_secrets(made: Identified, redactor: Redactor) -> None:
    """Have the secrets that an object was made with taken out of all texts, as a store does with those it found."""
    for secret in list_secrets(made):
        redactor.add(secret.description().name, secret.value or "")


def why_unkept(owner: Owner, keys: KeyMaker, key: Key, response: str, redactor: Redactor) -> str | None:
    """Say why a call is used and never stored: it contains a secret; None if it contains none.

    Args:
        owner: was called.
        keys: of its calls.
        key: of the call, with what was asked.
        response: as it would be stored.
        redactor: knows the secrets.
    """
    for place, text in (("request", key.parts), ("response", response)):
        names = redactor.names_in(text)
        if not names and was_redacted(text):
            return f"a text like '[secret SCOPE.KEY]' in the {place}, as if a secret had been taken out"
        if not names:
            continue
        held = f"the secret {' and '.join(names)} in the"
        if place == "request" and redactor.names_in(keys.key(None).parts):
            return f"{held} arguments of '{owner.uid}'. Let its constructor take a secret, by InjectSecret, not a text"
        if place == "request" and {secret.description().name for secret in list_secrets(owner)} & {*names}:
            method = "evaluate" if isinstance(owner, PromptResponseSUT) else "annotate"
            return f"{held} request. Add the key in `{method}`, not in a method that translates"
        return f"{held} {place}"
    return None


def declared_response(owner: Owner) -> Any:
    """Return the type of an object's native responses, as declared by its author."""
    if isinstance(owner, PromptResponseSUT):
        if not is_batched(owner):
            return response_type(owner.evaluate, type(owner))
        kind = response_type(owner.evaluate_batch, type(owner))
        # Else it is the class's generic argument.
        one_of = "return" in type(owner).evaluate_batch.__annotations__
        return next(iter(getattr(kind, "__args__", ())), Any) if one_of else kind
    return response_type(owner.annotate, type(owner))
