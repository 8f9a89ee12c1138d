"""Leases: which process pays for which key."""

import contextlib
import os
import random
import sys
import threading

import pytest

from modelgauge.cache import leases
from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.leases import Leases
from modelgauge.cache.responses import ResponseCache
from modelgauge.errors import CacheError


@pytest.fixture
def joined(tmp_path):
    """`joined()`: a process that has the cache open."""
    with contextlib.ExitStack() as stack:

        def join():
            one = Leases(tmp_path)
            stack.callback(one.close)
            return one

        yield join


def test_a_key_is_ours_where_no_other_process_asks_it(joined):
    first = joined()
    assert not first.shared
    assert first.take(["a", "b"]) == {}
    assert first.take(["b"]) == {}
    second = joined()
    assert first.shared
    assert second.take(["b", "c"]) == {"b": str(os.getpid())}
    second.give_back(["b"])  # not its own
    assert set(second.take(["a", "b"])) == {"a", "b"}
    first.give_back(["a", "b"])
    assert second.take(["a", "b"]) == {}


def test_who_leaves_gives_all_back(joined):
    first, second = joined(), joined()
    first.take(["a"])
    first.close()
    assert second.take(["a"]) == {}
    assert not second.shared


def test_files_of_the_dead_and_files_that_are_no_process_s_lease_nothing(joined, tmp_path):
    (tmp_path / "1-dead.leases").write_text("a\nb", encoding="utf-8")
    (tmp_path / "2-folder.leases").mkdir()
    (tmp_path / "precious").write_text("a", encoding="utf-8")
    if sys.platform != "win32":
        (tmp_path / "3-link.leases").symlink_to(tmp_path / "precious")
        os.mkfifo(tmp_path / "4-pipe.leases")
    one = joined()
    assert one.take(["a", "b"]) == {}
    assert not one.shared
    assert not (tmp_path / "1-dead.leases").exists()
    assert (tmp_path / "precious").read_text("utf-8") == "a"


def test_nobody_has_a_key_that_another_has(tmp_path):
    """Processes, and threads within them, that want the same keys in all orders, while others come and go."""
    holders: dict[str, set[int]] = {f"key {n}": set() for n in range(50)}
    twice = []
    guard = threading.Lock()

    def work(number, leases):
        source = random.Random(number)
        for _ in range(40):
            wanted = source.sample(sorted(holders), 5)
            ours = set(wanted) - leases.take(wanted).keys()
            with guard:
                twice.extend(key for key in ours if holders[key] - {id(leases)})
                for key in ours:
                    holders[key].add(id(leases))
            with guard:
                for key in ours:
                    holders[key].discard(id(leases))
            leases.give_back(sorted(ours))

    with contextlib.ExitStack() as stack:
        processes = [Leases(tmp_path) for _ in range(3)]
        for process in processes:
            stack.callback(process.close)
        threads = [threading.Thread(target=work, args=(n, processes[n % 3])) for n in range(3)]
        for thread in threads:
            thread.start()
        Leases(tmp_path).close()
        for thread in threads:
            thread.join()
    assert twice == []


def test_the_lock_is_not_waited_for_without_end(joined, tmp_path, monkeypatch):
    holder = joined()
    monkeypatch.setattr(leases, "_BUSY_SECONDS", 0.05)
    with (
        holder.exclusive(),
        pytest.raises(CacheError, match=r"another process has been writing it for 0\.05 s"),
    ):
        ResponseCache(FolderBackend(tmp_path))
    assert joined().take(["a"]) == {}


def test_lease_that_cannot_be_written_is_error_of_disk(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left")

    cache = ResponseCache(FolderBackend(tmp_path))
    monkeypatch.setattr(Leases, "take", fail)
    with pytest.raises(
        CacheError, match=r"leases of the cache failed: .*No space left.* Free the disk"
    ) as raised:
        cache.take(["a" * 64])
    assert "modelgauge resume" in raised.value.fix
    cache.close()
    cache.leave()


def test_a_lock_that_comes_free_is_taken(joined, tmp_path):
    holder, held, other = joined(), threading.Event(), joined()

    def hold():
        with holder.exclusive():
            held.set()
            released.wait(10)

    released = threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    threading.Timer(0.1, released.set).start()
    assert other.take(["a"]) == {}
    assert released.is_set()
    thread.join()


def test_who_has_left_stays_left(joined, tmp_path):
    one = joined()
    one.close()
    one.close()
    assert list(tmp_path.glob("*.leases")) == []


def test_a_folder_that_is_gone_is_left_without_a_word(joined, tmp_path):
    one = joined()
    for file in tmp_path.iterdir():
        file.unlink()
    tmp_path.rmdir()
    one.close()
    assert not tmp_path.exists()
