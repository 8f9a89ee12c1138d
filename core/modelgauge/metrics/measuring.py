"""One judgement outside a run: `Metric.measure`, by the engine's own calls, so that it is cached, limited and
retried as in a run; but it leaves no record.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from modelgauge.config.options import RunOptions
from modelgauge.config.secrets import SecretStore
from modelgauge.config.settings import Settings, load_settings
from modelgauge.engine.bookkeeping.tally import Tally, current_tally
from modelgauge.engine.loop.blocking import blocking
from modelgauge.engine.run import Run
from modelgauge.engine.work import Callee
from modelgauge.interfaces.annotator import CompletionAnnotator, current_asker, naming_the_asker
from modelgauge.interfaces.identity import declared
from modelgauge.interfaces.sut import PromptResponseSUT, check_sut
from modelgauge.plugins.discovery import discover

JudgeSUTs = Mapping[str, PromptResponseSUT[Any, Any]]


def judged(annotator: CompletionAnnotator[Any], request: Any) -> Any:
    """An annotator's native response to one request; blocks, also inside a running event loop.

    Raises:
        UsageError: one of the SUTs that it asks is unknown, or lacks a secret.
        Exception: whatever `annotate` raised at last.
    """
    settings = load_settings()
    secrets = SecretStore(file=settings.secrets_file)
    suts = _suts_of(annotator, settings, secrets)
    options = RunOptions(data_dir=settings.data_dir, redactor=secrets.redactor, **settings.of_calls())
    return blocking(lambda: _OneCall(options).response(annotator, suts, request))


class _OneCall(Run):
    """What a run opens, for a single call of an annotator."""

    async def response(self, annotator: CompletionAnnotator[Any], suts: JudgeSUTs, request: Any) -> Any:
        async with AsyncExitStack() as stack:
            stack.callback(current_asker.reset, current_asker.set(self))
            stack.callback(current_tally.reset, current_tally.set(Tally()))
            self._services = await self._open_services(
                stack, [Callee(annotator, suts), *map(Callee, suts.values())]
            )
            target = self._target(annotator, suts)
            self._asked = {(id(annotator), name): self._target(sut) for name, sut in suts.items()}
            for owner in [one.owner for one in self._targets.values()]:
                failure = await self._not_opened(owner)
                if failure is not None:
                    raise failure
                stack.push_async_callback(self._close, owner)
            return (await target.call(request, Tally().annotator_calls)).response


def _suts_of(annotator: CompletionAnnotator[Any], settings: Settings, secrets: SecretStore) -> JudgeSUTs:
    named = declared(annotator, "get_suts")
    made = {name: sut for name, sut in named.items() if isinstance(sut, PromptResponseSUT)}
    uids = {name: sut for name, sut in named.items() if isinstance(sut, str)}
    if uids:
        plugins = discover(settings.plugins)
        for name, uid in uids.items():
            with naming_the_asker(annotator, name):
                made[name] = plugins.suts.make(uid, secrets=secrets)
    for sut in made.values():
        check_sut(sut)
    return made
