"""A run that is going on: how far it is, and a stream of events while it goes on."""

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.totals import Totals, read_totals
from modelgauge.wording.figures import dollars, duration
from modelgauge_workbench.index.item_queries import failures_of, states_of
from modelgauge_workbench.index.scan import folder_of
from modelgauge_workbench.workbench import Workbench

_PAUSE = 1.0  # seconds between two looks
_REST = 3  # length of the pause, in looks
_QUIET = 15  # seconds without an item after which a page says so


def progress_of(workbench: Workbench, row: sqlite3.Row) -> dict[str, Any]:
    """How far a run is: items, failures by kind, what it used and may use, and whether anything moves.

    Args:
        workbench: has the run.
        row: of the run in the index.
    """
    folder = folder_of(workbench.index, row)
    totals = read_totals(folder)
    with workbench.index.reading() as db:
        states, failures = states_of(db, row["number"]), failures_of(db, row["number"])
    return {
        "done": sum(states.values()),
        "known": None if totals is None else totals.known,
        "failures": [
            (count, f"{error_type} at {stage} {uid}", message, number)
            for number, (failure, count) in enumerate(failures, start=1)
            for stage, uid, error_type, message in [json.loads(failure)]
        ],
        "facts": [*_facts(totals, folder.read_manifest().get("options") or {})],
        "quiet": " ".join(filter(None, (_quiet(folder), totals.waiting if totals else ""))),
    }


def _facts(totals: Totals | None, options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What the run used, with the limits that it was given."""
    if totals is None:
        return

    def of(cap: Any, shown: Callable[[Any], str]) -> str:
        return "" if cap is None else f" of at most {shown(cap)}"

    used = totals.used
    yield (
        "calls",
        f"{used.attempts:,}{of(options.get('max_calls'), '{:,}'.format)} made, {used.cached:,} cached",
    )
    if used.tokens:
        yield "tokens", f"{used.tokens:,}{of(options.get('max_tokens_total'), '{:,}'.format)}"
    if used.cost_usd or options.get("max_cost") is not None:
        yield "cost", f"{dollars(used.cost_usd)}{of(options.get('max_cost'), dollars)}"
    yield "time", duration(used.seconds)


def _quiet(folder: RunFolder) -> str:
    """A sentence where no item has finished for a while."""
    try:
        since = time.time() - folder.journal.stat().st_mtime
    except OSError:
        return "No item has finished yet."
    return f"No item has finished for {duration(since)}." if since > _QUIET else ""


class Looks:
    """Looks at runs in progress, for streams of events. All streams of an address share one look.

    One look is made at a time, followed by a pause, so that pages stay as quick as without streams.

    Args:
        is_stopping: returns whether the server stops; then the streams end.
    """

    def __init__(self, is_stopping: Callable[[], bool]) -> None:
        self._is_stopping = is_stopping
        self._turn = asyncio.Lock()
        self._latest: dict[str, tuple[float, tuple[str, bool]]] = {}

    def events(self, address: str, look: Callable[[], tuple[str, bool]]) -> StreamingResponse:
        """Answer with server-sent events of what changed, until a run has ended.

        Args:
            address: the address of the stream. Streams of one address share their looks.
            look: called for the current content of the page, as JSON, and whether the run is still running.
        """

        async def stream() -> AsyncIterator[str]:
            before = ""
            while not self._is_stopping():
                now, going_on = await self._look(address, look)
                if not going_on:
                    yield "event: ended\ndata: {}\n\n"
                    return
                yield f"data: {now}\n\n" if now != before else ": nothing new\n\n"
                before = now
                await asyncio.sleep(_PAUSE)

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def _look(self, address: str, look: Callable[[], tuple[str, bool]]) -> tuple[str, bool]:
        async with self._turn:
            began = time.monotonic()
            self._latest = {key: seen for key, seen in self._latest.items() if began - seen[0] < _PAUSE}
            if address not in self._latest:
                seen = await run_in_threadpool(look)
                ended = time.monotonic()
                self._latest[address] = ended, seen
                await asyncio.sleep(_REST * (ended - began))
            return self._latest[address][1]
