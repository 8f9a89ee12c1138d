"""How many responses a second each cache takes and gives, beside a bare client of the same library.

Run by hand: uv run python benchmarks/caches.py
"""

import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import diskcache
import psycopg
import redis
from common import RUNS, scratch

from modelgauge.cache.keys import Entry, KeyMaker
from modelgauge.cache.opening import open_cache
from modelgauge.cache.responses import ResponseCache

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "caches"))

from cache_servers import PostgresServer, RedisServer  # as the tests start them

GROUP, GROUPS, SIZE = 500, 20, 1000
KEYS = KeyMaker("sut", {"uid": "benchmark"})
ENTRIES = [
    Entry(KEYS.key({"prompt": f"{number} {'x' * 200}"}), json.dumps("y" * SIZE))
    for number in range(GROUP * GROUPS)
]
Group = list[tuple[str, bytes]]
VALUES: Group = [(one.key.digest, one.response.encode()) for one in ENTRIES]


class BareDiskcache:
    """diskcache alone."""

    def __init__(self, address: str) -> None:
        self.cache = diskcache.Cache(f"{address}.bare", eviction_policy="none", cull_limit=0)

    def put(self, group: Group) -> None:
        with self.cache.transact():
            for key, value in group:
                self.cache.set(key, value.decode())

    def get(self, keys: list[str]) -> None:
        assert None not in [self.cache.get(key) for key in keys]

    def close(self) -> None:
        self.cache.close()


class BarePostgres:
    """psycopg alone."""

    def __init__(self, address: str) -> None:
        self.connection = psycopg.connect(address, autocommit=True)
        self.connection.execute("DROP TABLE IF EXISTS bare")
        self.connection.execute("CREATE TABLE bare (digest text PRIMARY KEY, value bytea)")

    def put(self, group: Group) -> None:
        keys, values = zip(*group, strict=True)
        insert = "INSERT INTO bare SELECT * FROM unnest(%s::text[], %s::bytea[])"
        self.connection.execute(insert, [list(keys), list(values)], binary=True)

    def get(self, keys: list[str]) -> None:
        select = "SELECT digest, value FROM bare WHERE digest = ANY(%s)"
        assert len(self.connection.execute(select, [keys], binary=True).fetchall()) == GROUP

    def close(self) -> None:
        self.connection.close()


class BareRedis:
    """redis-py alone."""

    def __init__(self, address: str) -> None:
        self.client = redis.Redis.from_url(address)

    def put(self, group: Group) -> None:
        with self.client.pipeline(transaction=True) as pipeline:
            pipeline.mset({f"bare:{key}": value for key, value in group})
            pipeline.execute()

    def get(self, keys: list[str]) -> None:
        assert None not in self.client.mget([f"bare:{key}" for key in keys])

    def close(self) -> None:
        self.client.close()


def rate(work: Callable[[int], object]) -> float:
    """Responses a second over all groups."""
    begun = time.perf_counter()
    for number in range(GROUPS):
        work(number)
    return GROUP * GROUPS / (time.perf_counter() - begun)


def group(number: int) -> slice:
    return slice(number * GROUP, (number + 1) * GROUP)


def rates_of(cache: ResponseCache) -> Iterator[float]:
    """Rates of writing with leases, as the engine does it, and of reading."""

    def ask_and_put(number: int) -> None:
        cache.take([one.key.digest for one in ENTRIES[group(number)]])
        cache.put_many(ENTRIES[group(number)])

    yield rate(ask_and_put)
    yield rate(lambda number: cache.get_many([one.key.digest for one in ENTRIES[group(number)]]))


def bare_rates(bare: BareDiskcache | BarePostgres | BareRedis) -> Iterator[float]:
    """Rates of writing and of reading by the client alone."""
    keys = [key for key, _ in VALUES]
    yield rate(lambda number: bare.put(VALUES[group(number)]))
    yield rate(lambda number: bare.get(keys[group(number)]))


@contextmanager
def stores(folder: Path) -> Iterator[dict[str, tuple[Callable[[], str], type]]]:
    """For each kind of cache: what gives an empty place, and its bare client."""
    (folder / "postgres").mkdir()
    (folder / "redis").mkdir()
    folder.chmod(0o755)
    postgres, redis_server = PostgresServer(folder / "postgres"), RedisServer(folder / "redis")
    numbers = iter(range(1000))
    try:
        yield {
            "folder": (lambda: str(folder / f"cache{next(numbers)}"), BareDiskcache),
            "PostgreSQL": (postgres.new_database, BarePostgres),
            "Redis": (redis_server.new_database, BareRedis),
        }
    finally:
        postgres.stop()
        redis_server.stop()


def main() -> None:
    print("cache       what    responses/s   bare client   share")
    with scratch() as folder, stores(folder) as kinds:
        for kind, (place, bare_kind) in kinds.items():
            found: dict[str, list[tuple[float, float]]] = {"write": [], "read": []}
            for _ in range(RUNS):
                address = place()
                cache, bare = open_cache(address, Path()), bare_kind(address)
                for what, one, other in zip(found, rates_of(cache), bare_rates(bare), strict=True):
                    found[what].append((one, other))
                bare.close()
                cache.close()
                cache.leave()
            for what, pairs in found.items():
                ours_rate, bare_rate = (statistics.median(each) for each in zip(*pairs, strict=True))
                share = statistics.median(one / other for one, other in pairs)
                print(f"{kind:<12}{what:<6}{ours_rate:>13,.0f}{bare_rate:>14,.0f}{share:>8.2f}")


if __name__ == "__main__":
    assert shutil.which("redis-server"), "Redis's server is not installed."
    main()
