"""The progress bar: what it tells on a terminal, and that it is silent elsewhere. Its clock is ours."""

import asyncio
import re
import sys
from types import SimpleNamespace

import pytest
from tqdm import tqdm

from modelgauge.data.results import CallCounts, TotalUsage
from modelgauge.engine import observers
from modelgauge.engine.observers import Progress, show_progress

END = 60.0


def used(cached, cost):
    """Calls of which some came from the cache."""
    return TotalUsage(sut_calls=CallCounts(paid=1, cached=cached), cost_usd=cost)


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on while the bar sleeps, until the run ends."""
    clock = SimpleNamespace(now=0.0)

    async def sleep(seconds):
        clock.now += seconds
        if clock.now > END:
            raise asyncio.CancelledError

    monkeypatch.setattr(observers, "asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(observers, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr("tqdm.std.time", lambda: clock.now)
    tqdm.get_lock()  # imports more than a loop should wait for, once in a process
    return clock


@pytest.fixture
def shown(clock, monkeypatch, capsys):
    """What a terminal shows of a run."""

    def shown(progress):
        with monkeypatch.context() as here:
            here.setattr(sys.stderr, "isatty", lambda: True)
            with pytest.raises(asyncio.CancelledError):
                asyncio.run(show_progress(progress))
        return capsys.readouterr().err

    return shown


def test_the_rate_is_right_where_answers_come_in_bursts(shown, clock):
    err = shown(lambda: Progress(20 * int(clock.now / 10), 1000, 0))
    rates = [float(rate) for rate in re.findall(r"([\d.]+) ?items/s", err)]
    assert len(rates) > END / 2
    assert max(rates) == pytest.approx(2.0, rel=0.05)
    assert rates[-1] == pytest.approx(2.0, rel=0.05)


def test_a_bar_tells_what_was_cached_what_failed_what_it_cost_and_what_hangs(shown, clock):
    err = shown(lambda: Progress(7, 10, 2, used(3, 1.25), clock.now))
    for told in ("7/10", "cached=3", "errors=2", "cost=$1.25", f"oldest call={END:.0f} s"):
        assert told in err


def test_a_test_that_still_makes_its_items_has_no_end_yet(shown):
    err = shown(lambda: Progress(7, None, 0))
    assert "7 items" in err
    assert "%" not in err


@pytest.mark.usefixtures("clock")
def test_there_is_no_bar_where_there_is_no_terminal(capsys):
    asyncio.run(show_progress(lambda: Progress(7, 10, 2, used(3, 1.25), 50.0)))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("width", "told"),
    [(60, ()), (80, ("errors=2",)), (130, ("errors=2", "oldest call", "cached=31002", "cost=$12.50"))],
)
def test_a_bar_stays_a_bar_in_a_narrow_terminal(shown, clock, monkeypatch, width, told):
    monkeypatch.setattr("tqdm.std._screen_shape_wrapper", lambda: lambda _: (width, 24))
    err = shown(lambda: Progress(int(720 * clock.now), 43276, 2, used(31002, 12.5), clock.now))
    last = re.split(r"[\r\n]", err.split("100%")[0])[-2].rstrip()
    assert len(last) <= width
    assert re.search(r"\|[█▏▎▍▌▋▊▉ ]{10,}\| \d+/43276 \[", last)
    assert all(one in last for one in told)
