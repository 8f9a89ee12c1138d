"""Python's search for reference cycles is rarer during runs, and as it was after them."""

import gc
from collections.abc import Iterator

import pytest

from modelgauge.engine import garbage
from modelgauge.engine.garbage import rarer_collections

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
    assert seen == [(10_000, 11, 12)] * 3
    assert gc.get_threshold() == _BEFORE


def test_the_last_of_several_runs_puts_the_threshold_back():
    with rarer_collections():
        with rarer_collections():
            assert gc.get_threshold()[0] == 10_000
        assert gc.get_threshold()[0] == 10_000
    assert gc.get_threshold() == _BEFORE


def test_a_run_that_fails_puts_the_threshold_back():
    with pytest.raises(KeyError), rarer_collections():
        raise KeyError
    assert gc.get_threshold() == _BEFORE


@pytest.mark.parametrize("own", [0, 10_000, 50_000])
def test_who_wants_fewer_collections_or_none_keeps_that(own):
    gc.set_threshold(own, 11, 12)
    with rarer_collections():
        assert gc.get_threshold() == (own, 11, 12)
    assert gc.get_threshold() == (own, 11, 12)


@pytest.mark.parametrize("own", [0, 300, 20_000])
def test_a_threshold_that_is_set_meanwhile_stays(own):
    with rarer_collections():
        gc.set_threshold(own, 1, 2)
    assert gc.get_threshold() == (own, 1, 2)
