"""Processes that share a cache: each key is paid once, also where one is killed, sleeps, or just arrives."""

import contextlib
import random
import sqlite3
import sys
import threading
from contextlib import closing

import pytest
from commands import calls, ended, record, runs, started, until

from modelgauge.cache import DiskCache, Entry, KeyMaker
from modelgauge.cache.leases import DEAD_AFTER_SECONDS, Leases

NUMBER, CAP = 30, 4


def rows(folder, table):
    """How many rows a table of the leases has."""
    with closing(sqlite3.connect(folder / "run_data" / "cache" / "leases.db", timeout=60)) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def start(folder):
    return started(
        folder,
        *("run-test", "--test", f"numbered?number={NUMBER}", "--sut", f"gated?folder={folder}"),
        *("--concurrency", str(CAP), "--no-progress-bar"),
    )


def arrived(folder, process, number):
    """Wait until so many processes have the cache open, and have met."""
    until(lambda: rows(folder, "processes") == number, process)
    until(lambda: rows(folder, "leases") > 0, process)


def test_three_processes_pay_for_each_key_once(tmp_path):
    first = start(tmp_path)
    until(lambda: len(calls(tmp_path)) == CAP, first)
    assert rows(tmp_path, "leases") == 0  # alone, nothing is leased
    others = [start(tmp_path) for _ in range(2)]
    arrived(tmp_path, others[-1], 3)
    (tmp_path / "open").touch()
    for process in (first, *others):
        code, _, err = ended(process)
        assert code == 0, err
    assert sorted(calls(tmp_path)) == sorted(f"question {n}" for n in range(NUMBER))
    counts = [record(run)["counts"] for run in runs(tmp_path)]
    assert [one["scored"] for one in counts] == [NUMBER] * 3
    assert sum(one["sut_calls"]["paid"] for one in counts) == NUMBER
    assert rows(tmp_path, "processes") == rows(tmp_path, "leases") == 0  # who leaves, leaves nothing


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_what_a_killed_process_had_leased_is_taken_over(tmp_path):
    killed = start(tmp_path)
    until(lambda: len(calls(tmp_path)) == CAP, killed)
    survivor = start(tmp_path)
    arrived(tmp_path, survivor, 2)
    assert len(calls(tmp_path)) == CAP  # what the first is asking, the second awaits
    killed.kill()
    ended(killed)
    (tmp_path / "open").touch()
    code, _, err = ended(survivor)
    assert code == 0, err
    assert sorted(set(calls(tmp_path))) == sorted(f"question {n}" for n in range(NUMBER))
    assert len(calls(tmp_path)) == NUMBER + CAP
    assert rows(tmp_path, "processes") == rows(tmp_path, "leases") == 0


# --- leases alone -------------------------------------------------------------------------------------------


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def joined(tmp_path, clock):
    """`joined()`: a process that has the cache open; those before it beat until they know of it."""
    processes = []

    def join():
        made = []

        def register():
            made.append(Leases(tmp_path / "leases.db", clock=clock, beating=False))
            made[0].close_thread()

        thread = threading.Thread(target=register)
        thread.start()
        while thread.is_alive():
            for one in processes:
                one.beat()
            thread.join(0.01)
        processes.extend(made)
        return made[0]

    yield join
    for one in processes:
        one.close()


def test_alone_every_key_is_ours_and_a_newcomer_respects_it(joined):
    first = joined()
    assert first.take(["a", "b"]) == {"a", "b"}
    assert not first.shared
    second = joined()
    assert first.shared
    assert second.take(["b", "c"]) == {"c"}
    first.give_back(["a", "b"])
    assert second.take(["a", "b"]) == {"a", "b"}


def test_a_newcomer_is_met_also_where_the_clock_stands_still_or_goes_back(joined, clock):
    first = joined()
    first.take(["a"])
    clock.now -= 3600
    second = joined()
    assert second.take(["a"]) == set()
    third = joined()
    assert third.take(["a"]) == set()


def test_who_is_silent_is_taken_for_dead_and_comes_back(joined, clock):
    sleeper, other = joined(), joined()
    assert sleeper.take(["a", "b"]) == {"a", "b"}
    clock.now += DEAD_AFTER_SECONDS + 1
    other.beat()
    assert not other.shared
    assert other.take(["a"]) == {"a"}
    sleeper.beat()  # registers anew, with what is still under way
    other.beat()
    assert other.shared
    assert sleeper.shared
    assert other.take(["b"]) == set()
    sleeper.give_back(["a", "b"])
    assert other.take(["b"]) == {"b"}


def test_who_beats_is_not_dead(joined, clock):
    one, other = joined(), joined()
    assert one.take(["a"]) == {"a"}
    for _ in range(5):
        clock.now += DEAD_AFTER_SECONDS / 2
        one.beat()
        other.beat()
        assert other.take(["a"]) == set()


def test_nobody_has_a_key_that_another_has(tmp_path):
    """Processes, and threads within them, that want the same keys in all orders, while others come and go."""
    holders: dict[str, set[int]] = {f"key {n}": set() for n in range(50)}
    twice = []
    guard = threading.Lock()

    def work(number, leases):
        source = random.Random(number)
        for _ in range(40):
            wanted = source.sample(sorted(holders), 5)
            ours = leases.take(wanted)
            with guard:
                twice.extend(key for key in ours if holders[key] - {id(leases)})
                for key in ours:
                    holders[key].add(id(leases))
            with guard:
                for key in ours:
                    holders[key].discard(id(leases))
            leases.give_back(sorted(ours))
        leases.close_thread()

    with contextlib.ExitStack() as stack:
        processes = [Leases(tmp_path / "leases.db") for _ in range(3)]
        for one in processes:
            stack.callback(one.close)
        threads = [threading.Thread(target=work, args=(n, processes[n % 3])) for n in range(3)]
        for thread in threads:
            thread.start()
        Leases(tmp_path / "leases.db").close()
        for thread in threads:
            thread.join()
    assert twice == []


def test_closing_ends_the_beat_and_forgets_the_process(tmp_path):
    before = threading.active_count()
    cache = DiskCache(tmp_path / "cache")
    key = KeyMaker("sut", {}).key("x")
    cache.put_many([Entry(key, '"y"')])
    assert threading.active_count() == before + 1
    cache.close()
    cache.leave()
    cache.leave()
    assert threading.active_count() == before
    with closing(sqlite3.connect(tmp_path / "cache" / "leases.db")) as connection:
        assert connection.execute("SELECT count(*) FROM processes").fetchone() == (0,)
