"""Caches on servers: what happens when the server goes away, and runs that share one."""

import json
import logging
import os
import re
import signal
import socket
import threading
import time
from pathlib import Path

import children
import psycopg
import pytest
import redis
from cache_servers import PASSWORD, RedisServer
from commands import PATIENCE, calls, done, ended, record, runs, started, until

from modelgauge.cache import responses
from modelgauge.cache.keys import Entry, KeyMaker
from modelgauge.errors import CacheError, InvalidOptionError
from modelgauge_redis.cache import RedisCache

KEYS = KeyMaker("sut", {"uid": "s"})
ENTRIES = [Entry(KEYS.key({"prompt": number}), json.dumps(f"answer {number}")) for number in range(300)]
DIGESTS = [one.key.digest for one in ENTRIES]
NUMBER = 30
ENV = {"PGPASSWORD": PASSWORD, "REDIS_PASSWORD": PASSWORD}
README = Path(__file__).parents[2] / "plugins/redis/README.md"


def answers(entries):
    return {entry.key.digest: entry.response for entry in entries}


# --- a server that goes away -----------------------------------------------------------------------------


def test_what_was_written_outlives_a_kill_and_the_cache_connects_again(remote, opened, caplog):
    cache = opened(remote.address)
    cache.put_many(ENTRIES)
    remote.server.kill()
    restart = threading.Timer(0.5, remote.server.start)
    restart.start()
    assert cache.get_many(DIGESTS) == answers(ENTRIES)
    restart.join()
    assert "was lost; it is made again" in caplog.text


def test_leases_are_taken_again_after_a_restart(remote, opened):
    one, other = opened(remote.address), opened(remote.address)
    one.take(DIGESTS[:2])
    remote.server.kill()
    remote.server.start()
    assert one.get(DIGESTS[0]) is None
    assert set(other.take(DIGESTS[:3])) == set(DIGESTS[:2])


def test_kills_while_entries_are_written_lose_nothing_that_was_confirmed(remote, opened):
    cache, confirmed = opened(remote.address), []

    def write():
        for one in ENTRIES:
            cache.put_many([one])
            confirmed.append(one)

    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(4):
        time.sleep(0.05)
        remote.server.kill()
        remote.server.start()
    thread.join()
    assert len(confirmed) == len(ENTRIES)
    assert opened(remote.address).get_many(DIGESTS) == answers(ENTRIES)
    assert cache.verify().damaged == 0


def test_a_server_that_stays_away_is_named_without_its_password(remote, opened, monkeypatch):
    monkeypatch.setattr(responses, "_PATIENCE", 0.3)
    cache = opened(remote.address)
    remote.server.kill()
    try:
        for _ in range(2):
            with pytest.raises(CacheError, match=r"cannot be reached: .*modelgauge resume") as caught:
                cache.get(DIGESTS[0])
            assert PASSWORD not in str(caught.value)
    finally:
        remote.server.start()
    assert cache.get(DIGESTS[0]) is None


def test_a_wrong_address_is_refused_at_once(remote, opened):
    begun = time.monotonic()
    with pytest.raises(CacheError, match="cannot be reached"):
        opened(remote.address.replace(str(remote.server.port), "1"))
    assert time.monotonic() - begun < 10


def test_an_unknown_scheme_names_those_that_are_known(opened):
    with pytest.raises(InvalidOptionError, match="Did you mean 'postgresql'"):
        opened("postgersql://localhost/x")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("postgresql://localhost/x?password=hunter2-hunter2", "has a password behind its question mark"),
        ("redis://localhost:port/0", "cannot be read"),
        ("redis://[bad/0", "cannot be read"),
        ("postgresql://[bad/x", "cannot be read"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_before_anything_is_recorded(tmp_path, address, message):
    code, out, err = ended(start(tmp_path, address))
    assert (code, message in err, "Traceback" in err, PASSWORD in out + err) == (2, True, False, False), err
    assert runs(tmp_path) == []


# --- what a server must keep -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"appendonly": "no"}, "appendonly yes"),
        ({"appendfsync": "everysec"}, "appendfsync always"),
        ({"maxmemory-policy": "allkeys-lru"}, "maxmemory-policy noeviction"),
    ],
    ids=["in memory", "syncs later", "evicts"],
)
def test_a_redis_that_forgets_is_refused(opened, tmp_path, redis_server, settings, line):
    server = RedisServer(tmp_path, **settings)
    try:
        with pytest.raises(CacheError, match=f"can lose what it has taken.*: {line}. "):
            opened(server.url(0))
    finally:
        server.stop()


def test_a_lease_in_redis_is_renewed_and_ends_with_its_process(opened, redis_server, monkeypatch):
    monkeypatch.setattr(RedisCache, "lease_seconds", 0.6)
    address = redis_server.new_database()
    one, other = opened(address), opened(address)
    one.take(DIGESTS[:1])
    time.sleep(1.0)
    assert set(other.take(DIGESTS[:1])) == set(DIGESTS[:1])
    one._left.set()  # as if the process were gone
    time.sleep(1.0)
    assert other.take(DIGESTS[:1]) == {}


_FORKS = """
import os, sys, time
from pathlib import Path
from modelgauge.cache.opening import open_cache

cache = open_cache(sys.argv[1], Path())
cache.take([sys.argv[2]])
child = os.fork()
if not child:
    os.closerange(0, 3)
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Nothing forks here.")
def test_leases_in_postgresql_end_with_their_process_though_a_child_of_it_lives(opened, postgresql):
    address = postgresql.new_database()
    holder = children.start("-c", _FORKS, address, DIGESTS[0])
    child = int(holder.stdout.readline())
    try:
        cache = opened(address)
        assert set(cache.take(DIGESTS[:1])) == set(DIGESTS[:1])
        holder.kill()
        children.finish(holder)
        end = time.monotonic() + PATIENCE
        while cache.take(DIGESTS[:1]):
            assert time.monotonic() < end, "the child of a killed process keeps its leases"
            time.sleep(0.05)
    finally:
        os.kill(child, signal.SIGKILL)


def test_tables_are_made_once_however_many_come_first(opened, postgresql):
    address, found = postgresql.new_database(), []
    threads = [threading.Thread(target=lambda: found.append(len(opened(address)))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [0] * 6


@pytest.mark.parametrize("kind", ["postgresql", "redis"])
def test_a_later_schema_is_refused(opened, request, kind):
    if kind == "postgresql":
        address = request.getfixturevalue("postgresql").new_database()
        opened(address)
        with psycopg.connect(address) as connection:
            connection.execute("UPDATE modelgauge_cache SET schema_version = 7")
    else:
        address = request.getfixturevalue("redis_server").new_database()
        redis.Redis.from_url(address).set("modelgauge:schema", 7)
    with pytest.raises(CacheError, match=r"has schema .*7.*Install a later modelgauge-plugin"):
        opened(address)


def test_reading_and_writing_need_no_right_to_make_tables(opened, postgresql):
    address = postgresql.new_database()
    opened(address)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("GRANT SELECT ON modelgauge_cache TO reader")
        connection.execute(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON modelgauge_responses, modelgauge_quarantine TO reader"
        )
    cache = opened(address.replace("//tests", "//reader"))
    cache.put_many(ENTRIES)
    assert cache.get_many(DIGESTS) == answers(ENTRIES)
    assert cache.verify().sound == len(ENTRIES)


def address_of_user(server, *less):
    """The address of a new database, for a user with the rights that the README names without some."""
    rights = re.search(r"`(~modelgauge.*?)`", README.read_text(encoding="utf-8"))[1].split()
    redis.Redis.from_url(server.url(0)).acl_setuser(
        "few",
        enabled=True,
        passwords=[f"+{PASSWORD}"],
        keys=["modelgauge:*"],
        commands=[*(right for right in rights[1:] if f"-{right[1:]}" not in less), *less],
        reset=True,
    )
    return server.new_database().replace("//tests", "//few")


def test_a_user_of_redis_needs_no_more_rights_than_the_readme_names(opened, redis_server):
    cache = opened(address_of_user(redis_server))
    cache.put_many(ENTRIES)
    assert cache.take(["a" * 64]) == {}
    assert (cache.verify().sound, cache.stats().shared, cache.stats().bytes > 0) == (
        len(ENTRIES),
        False,
        True,
    )
    assert cache.clear() == len(ENTRIES)


def test_redis_user_who_may_see_neither_settings_nor_clients_uses_cache(opened, redis_server):
    address = address_of_user(redis_server, "-config|get", "-client|list")
    cache = opened(address)
    other = opened(address.replace("//few", "//tests"))
    other.put_many(ENTRIES[:2])
    assert cache.get_many(DIGESTS) == answers(ENTRIES[:2])
    cache.put_many(ENTRIES)
    assert cache.take(["a" * 64]) == {}
    assert set(other.take(["a" * 64])) == {"a" * 64}
    assert cache.forget(DIGESTS[:2]) == 2
    assert (len(cache), cache.stats().shared, other.stats().shared) == (len(ENTRIES) - 2, False, True)


class _DiesBeforeIndex(threading.Thread):
    """A connection to Redis that ends before the command that writes the index, and takes no other after it."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self._upstream = socket.create_connection(("127.0.0.1", port))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]

    def run(self):
        client, _ = self._listening.accept()
        self._listening.close()
        with client, self._upstream as server:
            while b"ZADD" not in (sent := client.recv(1 << 16)):
                server.sendall(sent)
                client.sendall(server.recv(1 << 16))
            server.sendall(sent[: sent.rindex(b"\r\n*", 0, sent.index(b"ZADD")) + 2])
            server.shutdown(socket.SHUT_WR)
            while server.recv(1 << 16):
                pass


def test_redis_client_that_dies_between_value_and_index_leaves_neither(opened, redis_server, monkeypatch):
    monkeypatch.setattr(responses, "_PATIENCE", 0.3)
    address = redis_server.new_database()
    dying = _DiesBeforeIndex(redis_server.port)
    dying.start()
    cache = opened(address.replace(f":{redis_server.port}/", f":{dying.port}/"))
    with pytest.raises(CacheError, match="cannot be reached"):
        cache.put_many(ENTRIES[:1])
    dying.join(PATIENCE)
    other = opened(address)
    assert (other.get(DIGESTS[0]), len(other), list(other.entries())) == (None, 0, [])


# --- runs ------------------------------------------------------------------------------------------------------


def start(folder, address, *more):
    return started(
        folder,
        *("run-test", "--test", f"numbered?number={NUMBER}", "--sut", f"gated?folder={folder}"),
        *("--cache", address, "--concurrency", "4", "--no-progress-bar", *more),
    )


def impatient(folder):
    """A plugin with which a process gives a server up soon, and its leases in Redis end soon."""
    plugin = folder / "impatient.py"
    plugin.write_text(
        "from modelgauge.cache import responses\n"
        "from modelgauge import hookimpl\n"
        "from modelgauge_redis import cache\n"
        "@hookimpl\ndef modelgauge_run_started(run): ...\n"
        "responses._PATIENCE, cache.RedisCache.lease_seconds = 0.5, 1.0\n",
        encoding="utf-8",
    )
    return "--plugin", str(plugin)


def test_four_processes_on_one_cold_cache_pay_for_each_key_once(remote, tmp_path):
    processes = [start(tmp_path, remote.address) for _ in range(4)]
    until(lambda: len(calls(tmp_path)) == 4, processes[0])
    time.sleep(0.5)
    (tmp_path / "open").touch()
    for process in processes:
        code, _, err = ended(process)
        assert code == 0, err
    assert sorted(calls(tmp_path)) == sorted(f"question {n}" for n in range(NUMBER))
    counts = [record(run)["counts"] for run in runs(tmp_path)]
    assert [count["scored"] for count in counts] == [NUMBER] * 4
    assert sum(count["sut_calls"]["paid"] for count in counts) == NUMBER


def test_what_a_killed_process_was_asking_is_taken_over(remote, tmp_path):
    killed = start(tmp_path, remote.address, *impatient(tmp_path))
    until(lambda: len(calls(tmp_path)) == 4, killed)
    survivor = start(tmp_path, remote.address, *impatient(tmp_path))
    killed.kill()
    (tmp_path / "open").touch()
    code, _, err = ended(survivor)
    ended(killed)
    assert code == 0, err
    assert set(calls(tmp_path)) == {f"question {n}" for n in range(NUMBER)}
    assert len(calls(tmp_path)) <= NUMBER + 4


def test_a_run_stops_where_its_cache_goes_and_resume_ends_it(remote, tmp_path):
    (tmp_path / "open").touch()
    fewer = start(tmp_path, remote.address, "-m", "10")
    assert ended(fewer)[0] == 0
    (tmp_path / "open").unlink()
    process = start(tmp_path, remote.address, *impatient(tmp_path))
    until(lambda: len(calls(tmp_path)) == 14, process)
    remote.server.kill()
    try:
        (tmp_path / "open").touch()
        code, _, err = ended(process)
        assert (code, "cannot be reached" in err, "modelgauge resume" in err) == (4, True, True), err
    finally:
        remote.server.start()
    remote.server.kill()
    asked = len(calls(tmp_path))
    try:
        code, _, err = done(tmp_path, "resume", "latest", env=ENV)
        assert (code, "cannot be reached" in err, len(calls(tmp_path))) == (4, True, asked), err
    finally:
        remote.server.start()
    code, _, err = done(tmp_path, "resume", "latest", env=ENV)
    assert code == 0, err
    last = record(runs(tmp_path)[-1])
    assert last["counts"]["scored"] == NUMBER
    assert set(calls(tmp_path)) == {f"question {n}" for n in range(NUMBER)}


def test_resume_and_its_plan_use_the_cache_that_the_run_used(remote, tmp_path):
    (tmp_path / "open").touch()
    assert ended(start(tmp_path, remote.address))[0] == 0
    assert ended(start(tmp_path, remote.address, "--max-calls", "0"))[0] == 0
    run = runs(tmp_path)[-1]
    lines = (run / "items.jsonl").read_bytes().splitlines(keepends=True)
    (run / "items.jsonl").write_bytes(b"".join(lines[:10]))
    (run / "record.json").unlink()
    code, out, err = done(tmp_path, "resume", "latest", "--dry-run", "--json", env=ENV)
    assert code == 0, err
    assert json.loads(out)["plans"][0]["sut_calls"] == {"paid": 0, "cached": NUMBER - 10}
    code, _, err = done(tmp_path, "resume", "latest", env=ENV)
    assert (code, len(calls(tmp_path))) == (0, NUMBER), err
    assert not (tmp_path / "run_data" / "cache").exists()


def test_a_password_is_written_nowhere(remote, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    (tmp_path / "open").touch()
    code, out, err = ended(start(tmp_path, remote.address))
    stats = done(tmp_path, "cache", "stats", "--cache", remote.address)
    assert (code, stats[0]) == (0, 0), err + stats[2]
    assert f"{NUMBER} responses" in stats[1]
    files = [one.read_bytes() for one in tmp_path.rglob("*") if one.is_file()]
    assert all(PASSWORD.encode() not in file for file in files)
    assert PASSWORD not in out + err + stats[1] + stats[2]
    resumed = done(tmp_path, "resume", "latest", "--cache", remote.address)
    assert resumed[0] == 0, resumed[2]
