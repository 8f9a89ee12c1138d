"""`kill -9` at a hundred seeded moments: nothing committed is paid again, lost or there twice.

The processes kill themselves, so that the moments are those that matter: within a transaction, within a line.
"""

import random
import sys

import pytest
from killing import RunFactory, committed, details, events, journalled, outcome
from run_child import EVENTS, Order
from tiers import sample

from modelgauge import load_record
from modelgauge.engine.run_files.folder import all_runs

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL and no fork")

CAP = 4
ITEMS = 40
CHAINS, KILLS = 10, 5  # of each of the two kinds below: a hundred kills


@pytest.fixture(scope="module")
def factory():
    made = RunFactory()
    yield made
    made.close()


@pytest.fixture(scope="module")
def uninterrupted(factory, tmp_path_factory):
    """What comes out where nothing is killed."""
    folder = tmp_path_factory.mktemp("whole")
    order = Order(data_dir=str(folder), log=str(folder / "log"), items=ITEMS, options={"concurrency": CAP})
    assert not factory.do(order)
    return outcome(load_record(all_runs(folder)[0].path))


def moment(source, left, kills):
    """A kind of event, and at which one to die: with something left for the kills that come."""
    event = source.choice(EVENTS)
    often = event in ("begin", "end", "judge", "row")
    return event, source.randint(1, max(1, left // (kills + 1)) if often else 2)


def ordered(folder, **changes):
    options = {"concurrency": CAP, **changes.pop("options", {})}
    return Order(data_dir=str(folder), log=str(folder / "log"), items=ITEMS, options=options, **changes)


def in_flight(found):
    """How many calls of the SUT had begun and not ended."""
    return (details(found, "begin") - details(found, "end")).total()


@pytest.mark.parametrize("seed", sample(range(CHAINS), 2))
def test_the_same_command_pays_for_nothing_that_was_committed(factory, uninterrupted, tmp_path, seed):
    source = random.Random(seed)
    for kills in range(KILLS, 0, -1):
        killed = False
        while not killed:  # where less was left to do than it takes to die, it is tried again
            before = committed(tmp_path)
            event, at = moment(source, ITEMS - len(before) // 2, kills)
            killed = factory.do(ordered(tmp_path, event=event, at=at))
            found = events(tmp_path / "log")
            assert not before & {*details(found, "begin"), *details(found, "judge")}
            assert in_flight(found) <= CAP
            assert before <= committed(tmp_path)
    before = committed(tmp_path)
    assert not factory.do(ordered(tmp_path))
    found = events(tmp_path / "log")
    assert set(details(found, "begin")) == {f"question {n}" for n in range(ITEMS)} - before
    assert set(details(found, "begin").values()) <= {1}
    assert outcome(load_record(all_runs(tmp_path)[-1].path)) == uninterrupted


@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize("seed", sample(range(CHAINS // 2), 1))
def test_a_resumed_run_goes_on_behind_its_journal(factory, uninterrupted, tmp_path, seed, caching):
    source = random.Random(1000 * seed + caching)
    assert factory.do(
        ordered(tmp_path, event="named", at=1, options={"caching": caching})
    )  # behind its manifest
    folder = all_runs(tmp_path)[0].path
    again = {"resumed": folder.name}
    killed = 1
    for left in range(KILLS + 1, 0, -1):
        before = journalled(folder)
        event, at = moment(source, ITEMS - len(before), left)
        killed += factory.do(ordered(tmp_path, event=event, at=at, **again))
        found = events(tmp_path / "log")
        assert not set(before) & set(details(found, "begin"))
        assert in_flight(found) <= CAP
        assert journalled(folder)[: len(before)] == before
    assert killed >= KILLS or len(journalled(folder)) == ITEMS
    before = journalled(folder)
    assert not factory.do(ordered(tmp_path, **again))
    assert not set(before) & set(details(events(tmp_path / "log"), "begin"))
    assert len(journalled(folder)) == len(set(journalled(folder))) == ITEMS
    assert outcome(load_record(folder)) == uninterrupted
