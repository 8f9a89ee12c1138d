"""Python's search for reference cycles is rarer during runs, and as it was after them."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from modelgauge import FunctionSUT
from modelgauge.cli.main import main
from modelgauge.engine.loop import stalls as garbage
from modelgauge.engine.loop.stalls import rarer_collections

_BEFORE = (700, 11, 12)


@pytest.fixture(autouse=True)
def thresholds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As at the start of a process, whatever run an earlier test has left behind."""
    monkeypatch.setattr(garbage, "_runs", 0)
    before = gc.get_threshold()
    gc.set_threshold(*_BEFORE)
    yield
    gc.set_threshold(*before)


def test_a_run_has_rarer_collections_and_ends_as_it_began(run, make_test, make_sut):
    seen = []

    def answer(_):
        seen.append(gc.get_threshold())
        return "yes"

    run(make_test(3), make_sut(answer))
    assert seen == [(20_000, 11, 12)] * 3
    assert gc.get_threshold() == _BEFORE


class RefusalError(Exception):
    """Holds what the server said, which may be long."""


def refuse(_):
    error = RefusalError("no")
    refused.append(weakref.ref(error))
    try:
        raise error
    finally:
        del error


async def refuse_async(_):
    await asyncio.sleep(0.001)
    refuse(_)


refused: list[weakref.ref[RefusalError]] = []


@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize("where", ["async SUT", "plain SUT", "annotator"])
def test_what_failed_calls_hold_is_freed_at_once(run, make_test, make_sut, make_annotator, where, caching):
    refused.clear()
    test, sut = make_test(5), FunctionSUT("s", refuse if where == "plain SUT" else refuse_async, version=1)
    if where == "annotator":
        test.annotators, sut = {"a": make_annotator(lambda *_: refuse_async(None))}, make_sut()
    gc.disable()
    try:
        record = run(test, sut, caching=caching, max_retries=0)
        held = [one for one in refused if one() is not None]
    finally:
        gc.enable()
    assert (record.counts.failed, len(refused), held) == (5, 5, [])


def test_the_last_of_several_runs_puts_the_threshold_back():
    with rarer_collections():
        with rarer_collections():
            assert gc.get_threshold()[0] == 20_000
        assert gc.get_threshold()[0] == 20_000
    assert gc.get_threshold() == _BEFORE


def test_a_run_that_fails_puts_the_threshold_back():
    with pytest.raises(KeyError), rarer_collections():
        raise KeyError
    assert gc.get_threshold() == _BEFORE


@pytest.mark.parametrize("own", [0, 20_000, 50_000])
def test_who_wants_fewer_collections_or_none_keeps_that(own):
    gc.set_threshold(own, 11, 12)
    with rarer_collections():
        assert gc.get_threshold() == (own, 11, 12)
    assert gc.get_threshold() == (own, 11, 12)


@pytest.mark.parametrize("own", [0, 300, 30_000])
def test_a_threshold_that_is_set_meanwhile_stays(own):
    with rarer_collections():
        gc.set_threshold(own, 1, 2)
    assert gc.get_threshold() == (own, 1, 2)


def test_a_command_has_as_rare_collections_and_none_at_its_end(monkeypatch, capsys):
    freezes = []
    monkeypatch.setattr(gc, "freeze", lambda: freezes.append(gc.get_threshold()))
    monkeypatch.setattr("sys.argv", ["modelgauge", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert freezes == [(garbage._YOUNG, 11, 12)]
