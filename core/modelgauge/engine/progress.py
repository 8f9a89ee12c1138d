"""The progress bar of a run: a line on a terminal, and silence elsewhere. It looks at the run now and then; no call
waits for it."""

import asyncio
import importlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

_PERIOD = 0.25


class Standing(NamedTuple):
    """How far a run is.

    Args:
        done: items that have a record.
        known: items that there are; None while a test still makes some.
        cached: answers that were not paid.
        errors: items that failed.
        cost: US dollars that SUTs reported.
        oldest: seconds that the oldest call under way has taken; None where there is none.
    """

    done: int
    known: int | None
    cached: int
    errors: int
    cost: float
    oldest: float | None


async def show_progress(standing: Callable[[], Standing]) -> None:
    """Show a bar until cancelled.

    Args:
        standing: asked now and then.
    """
    # tqdm takes as long to import as all the rest of a small run; nobody waits for what ends at once.
    begun = time.monotonic()
    await asyncio.sleep(_PERIOD)
    bar = importlib.import_module("tqdm").tqdm(
        total=None, unit=" items", dynamic_ncols=True, disable=None, smoothing=0.1, leave=False
    )
    if bar.disable:  # no terminal
        return
    bar.start_t -= time.monotonic() - begun
    bar.last_print_t = bar.start_t
    try:
        while True:
            _draw(bar, standing())
            await asyncio.sleep(_PERIOD)
    finally:
        bar.close()


def _draw(bar: Any, now: Standing) -> None:
    bar.total = now.known
    told = [f"errors={now.errors}", f"cached={now.cached}"]
    if now.oldest is not None and now.oldest >= 1:
        told.insert(1, f"oldest call={now.oldest:.0f} s")
    if now.cost:
        told.append(f"cost=${now.cost:.2f}")
    if now.done > bar.n:  # an update by nothing would leave the time that it took out of the rate
        bar.update(now.done - bar.n)
    while told and not _fits(bar, ", ".join(told)):  # what matters least stands last
        told.pop()
    bar.set_postfix_str(", ".join(told), refresh=False)
    bar.refresh()


def _fits(bar: Any, told: str) -> bool:
    """Whether a text leaves room for the bar, which is ten characters long where no width is given."""
    line = bar.format_dict
    return (
        line["ncols"] is None
        or len(bar.format_meter(**{**line, "ncols": None, "postfix": told})) <= line["ncols"]
    )
