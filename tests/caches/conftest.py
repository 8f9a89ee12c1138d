"""Each kind of cache as a fixture: a folder, and databases of real servers."""

import re
import shutil
import sqlite3
import sys
import tempfile
import tomllib
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import redis
from cache_servers import PostgresServer, RedisServer, postgres_programs

from modelgauge.cache.opening import open_cache as opened_cache


@pytest.fixture(scope="session")
def postgresql():
    """A PostgreSQL server, which every test gets a database of."""
    if postgres_programs() is None:
        pytest.skip("PostgreSQL's server (initdb, postgres) is not installed.")
    folder = Path(tempfile.mkdtemp(prefix="modelgauge-"))  # its own user must reach it
    folder.chmod(0o755)
    server = PostgresServer(folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    """A Redis server, which every test gets a database of."""
    if shutil.which("redis-server") is None:
        pytest.skip("Redis's server (redis-server) is not installed.")
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


class Folder:
    """A cache in a folder."""

    server = None

    def __init__(self, folder):
        self.address = str(folder)

    def stored(self, digest, change):
        with closing(sqlite3.connect(f"{self.address}/cache.db")) as connection, connection:
            [(stored,)] = connection.execute("SELECT value FROM Cache WHERE key = ?", (digest,))
            value = change(stored.encode("utf-8"))
            connection.execute("UPDATE Cache SET value = CAST(? AS TEXT) WHERE key = ?", (value, digest))


class PostgresDatabase:
    """A cache in a database of the PostgreSQL server."""

    def __init__(self, server):
        self.server, self.address = server, server.new_database()

    def stored(self, digest, change):
        with psycopg.connect(self.address) as connection:
            select = "SELECT entry FROM modelgauge_responses WHERE digest = %s"
            [(stored,)] = connection.execute(select, [digest])
            update = "UPDATE modelgauge_responses SET entry = %s WHERE digest = %s"
            connection.execute(update, [change(stored), digest])


class RedisDatabase:
    """A cache in a database of the Redis server."""

    def __init__(self, server):
        self.server, self.address = server, server.new_database()

    def stored(self, digest, change):
        with redis.Redis.from_url(self.address) as client:
            key = f"modelgauge:response:{digest}"
            client.set(key, change(client.get(key)))


@pytest.fixture(scope="session")
def files_plugin(tmp_path_factory):
    """The plugin of the page about caches, as it is when it is installed."""
    folder = tmp_path_factory.mktemp("plugin")
    page = (Path(__file__).parents[2] / "docs/tutorials/past-one-machine.md").read_text(encoding="utf-8")
    code = re.search(r'```python title="files_cache.py"\n(.*?)```', page, re.DOTALL)
    announced = re.search(r"```toml\n(\[project.entry-points.*?)```", page, re.DOTALL)
    (folder / "files_cache.py").write_text(code[1], encoding="utf-8")
    metadata = folder / "files_cache-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: files-cache\nVersion: 1.0\n", encoding="utf-8")
    [group] = tomllib.loads(announced[1])["project"]["entry-points"].items()
    lines = [f"[{group[0]}]", *(f"{name} = {where}" for name, where in group[1].items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))


class Files:
    """A cache of the plugin that the documentation shows."""

    server = None

    def __init__(self, folder):
        self.address, self.responses = f"files://{folder}", folder / "responses"

    def stored(self, digest, change):
        file = self.responses / digest
        file.write_bytes(change(file.read_bytes()))


def _store(kind, request):
    match kind:
        case "files":
            request.getfixturevalue("files_plugin")
            return Files(request.getfixturevalue("tmp_path") / "files")
        case "postgresql":
            return PostgresDatabase(request.getfixturevalue("postgresql"))
        case "redis":
            return RedisDatabase(request.getfixturevalue("redis_server"))
    return Folder(request.getfixturevalue("tmp_path") / "cache")


SERVERS = [
    pytest.param(name, marks=pytest.mark.slow(reason=f"starts {server}'s server"))
    for name, server in {"postgresql": "PostgreSQL", "redis": "Redis"}.items()
]


@pytest.fixture(params=["folder", "files", *SERVERS])
def store(request):
    """An empty cache of each kind: its `address`, its `server`, and `stored`, which changes the bytes of a key."""
    return _store(request.param, request)


@pytest.fixture(params=SERVERS)
def remote(request):
    """An empty cache of each kind of server."""
    return _store(request.param, request)


@pytest.fixture
def opened():
    """Opens a cache at an address, once more each time."""
    caches = []

    def open_it(address):
        caches.append(opened_cache(address, Path()))
        return caches[-1]

    yield open_it
    for cache in caches:
        cache.close()
        cache.leave()
