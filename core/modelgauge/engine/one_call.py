"""One call of an annotator outside a run: cached, limited and retried as in a run; it leaves no record."""

from contextlib import AsyncExitStack
from typing import Any

from modelgauge.engine.bookkeeping.tally import Tally, current_tally
from modelgauge.engine.calls.callee import Asked
from modelgauge.engine.run import Run
from modelgauge.engine.work import Callee
from modelgauge.interfaces.annotator import CompletionAnnotator, current_asker


class OneCall(Run):
    """What a run opens, for a single call of an annotator."""

    async def response(self, annotator: CompletionAnnotator[Any], suts: Asked, request: Any) -> Any:
        """An annotator's native response to one request.

        Args:
            annotator: judges.
            suts: those that it asks, by its own names.
            request: the native one.

        Raises:
            Exception: whatever `annotate` raised at last, or what kept one of the objects from being opened.
        """
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
