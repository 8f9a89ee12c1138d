"""Several completions of a prompt from a SUT that returns one per call: one call for each.

`PromptResponseSUT.completions` declares such SUTs; otherwise the first calls find out, and the cache remembers.
`ask_sut.py` and `call.py` make the calls.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, get_args

from modelgauge.cache.keys import FOUND_OUT, Entry, Key, KeyMaker
from modelgauge.data.prompts import AnyPrompt
from modelgauge.data.responses import SUTResponse, Usage
from modelgauge.engine.calls.lookups import Lookups
from modelgauge.engine.calls.policy import Owner
from modelgauge.engine.run_files.writer import Writer
from modelgauge.errors import DefinitionError, SingleCompletionError
from modelgauge.interfaces.sut import Completions, PromptResponseSUT

_MANY_CALLS = json.dumps("many_calls")
_NOTE = "'%s' gives one completion a call, so a call was made for each that a prompt asks for."


class Split(NamedTuple):
    """Request for several completions, split into calls for one completion each.

    Args:
        request: the native request of the first completion.
        number: of its call among the repeats of that request.
        is_single: whether a response to the whole request has one completion only; both native.
    """

    request: Any
    number: int
    is_single: Callable[[Any, Any], bool]


class Splitting:
    """State of splitting for a SUT: whether a call returns only one completion.

    Args:
        owner: is called; only SUTs give several completions at all.
        lookups: finds in the cache what earlier runs have found out; None if nothing is cached.
        writer: keeps it.

    Attributes:
        error: what is raised instead of asking for several completions at once.

    Raises:
        DefinitionError: `completions` of the SUT says something else than it may.
    """

    def __init__(self, owner: Owner, lookups: Lookups | None, writer: Writer) -> None:
        self._uid, self._lookups, self._writer = owner.uid, lookups, writer
        self._key: Key | None = None
        self._is_needed = self._has_learnt = False
        if isinstance(owner, PromptResponseSUT):
            self._is_needed = always_splits(owner)
            self._key = None if lookups is None or owner.completions != "auto" else note_key(owner)

    async def lease(self, first: Key) -> Key | None:
        """Lease the key of the first completion before all are asked for: the answer may turn out to be that one only.

        Another process may be asking for it. Once its answer is there, so is what that process has found out.

        Returns:
            The key; None if it is not leased.
        """
        await self._look_up()
        if self._is_needed or self._lookups is None:
            return None
        if await self._lookups.get(first.digest) is None:
            return first
        await self._look_up()
        return None

    async def _look_up(self) -> None:
        """Learn what earlier runs have found out, or another process meanwhile."""
        if not self._is_needed and self._lookups is not None and self._key is not None:
            self._is_needed = await self._lookups.peek(self._key.digest) is not None

    def check(self) -> None:
        """Refuse to ask for several completions at once.

        Raises:
            SingleCompletionError: a call is known to give one only.
        """
        if self._is_needed:
            raise self.error

    def learn(self) -> None:
        """Keep that a call gives one completion only."""
        if not self._is_needed and self._key is not None:
            self._writer.put(Entry(self._key, _MANY_CALLS), lambda: None)
        self._is_needed = self._has_learnt = True

    def notes(self) -> Iterator[str]:
        """Return notes for the record about detected splitting."""
        if self._has_learnt:
            yield _NOTE % self._uid

    @property
    def error(self) -> SingleCompletionError:
        return SingleCompletionError(f"'{self._uid}' gives one completion a call.", fix="Ask once for each.")


def always_splits(sut: PromptResponseSUT[Any, Any]) -> bool:
    """Return whether a SUT declares that it returns one completion per call.

    Raises:
        DefinitionError: `completions` says something else than it may.
    """
    if sut.completions in get_args(Completions):
        return sut.completions == "many_calls"
    raise DefinitionError(
        f"completions of '{sut.uid}' is {sut.completions!r}.",
        fix=f"Let {type(sut).__qualname__} say 'one_call', 'many_calls' or 'auto'.",
    )


def note_key(sut: PromptResponseSUT[Any, Any]) -> Key:
    """Return the cache key for the finding that a SUT returns one completion per call."""
    return KeyMaker(FOUND_OUT, sut.identity()).key(None)


def single_prompts(prompt: AnyPrompt, number: int) -> Iterator[tuple[int, AnyPrompt]]:
    """Yield a prompt for each completion, with the number of its call.

    The seed increases by one from completion to completion, as in servers that return several at once. With equal
    seeds, all completions would be equal.

    Args:
        prompt: asks for several completions.
        number: of the repeat.
    """
    options = prompt.options
    several = prompt.num_completions
    for place in range(several):
        seed = options.random
        if seed is not None and place:
            seed = seed + place if isinstance(seed, int) else f"{seed} {place}"
        single = options.replaced(num_completions=None, random=seed)
        yield number * several + place, prompt.replaced(options=single)


def joined(responses: Sequence[SUTResponse]) -> SUTResponse:
    """Join the completions of several responses into one. Usage is summed where all responses report it."""
    usages = [response.usage or Usage() for response in responses]
    sums = {name: [getattr(usage, name) for usage in usages] for name in Usage.model_fields}
    known = {name: sum(values) for name, values in sums.items() if None not in values}
    return SUTResponse(
        completions=[completion for response in responses for completion in response.completions],
        usage=Usage(**known) if known else None,
    )
