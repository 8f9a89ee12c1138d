"""The cache of responses in PostgreSQL: a table of entries, and advisory locks of the session as leases.

PostgreSQL drops the locks of a session when its connection ends, however it ends, so no lease outlives its process.
See "Advisory Locks" in PostgreSQL's manual, chapter 13.3.5.
"""

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import psycopg

from modelgauge import CacheBackend, CacheStats
from modelgauge.errors import CacheError

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS modelgauge_cache (schema_version integer NOT NULL);
CREATE TABLE IF NOT EXISTS modelgauge_responses (
    digest text COLLATE "C" PRIMARY KEY,
    entry bytea NOT NULL,
    written timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS modelgauge_quarantine (
    digest text NOT NULL,
    entry bytea NOT NULL,
    why text NOT NULL,
    found timestamptz NOT NULL DEFAULT now()
);
INSERT INTO modelgauge_cache SELECT 1 WHERE NOT EXISTS (SELECT FROM modelgauge_cache);
"""
# A commit is durable, and the server soon notices that a machine with leases is gone.
_SESSION = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
SELECT set_config('tcp_keepalives_idle', '20', false), set_config('tcp_keepalives_interval', '5', false),
    set_config('tcp_keepalives_count', '4', false);
"""
_MIGRATING = (
    0x6D6F64656C676175  # an advisory lock of our own: two processes may find an empty database at once
)
_PAGE = 500
_connections: WeakSet[psycopg.Connection[tuple[Any, ...]]] = WeakSet()


def _forked() -> None:
    """Let go of the sockets in a forked child, which would keep the parent's leases after its death.

    Their numbers lead nowhere from then on, so that nothing of the child can end the parent's session.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for connection in list(_connections):
        if not connection.closed:
            os.dup2(nowhere, connection.fileno())
    os.close(nowhere)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class PostgresCache(CacheBackend):
    """Keeps responses in the database of a URL: `postgresql://user@host:5432/database`, as libpq reads it.

    Passwords come from PGPASSWORD, `~/.pgpass` or the URL.
    """

    errors = (psycopg.Error,)
    quarantine = "the table modelgauge_quarantine"
    _connection: psycopg.Connection[tuple[Any, ...]] | None = None

    # --- the connection -------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Connect, and make the tables where they are missing."""
        self.close()
        self._connection = psycopg.connect(
            self.url,
            autocommit=True,
            application_name=f"modelgauge {socket.gethostname()[:40]} {os.getpid()}",
            connect_timeout=10,
            tcp_user_timeout=30_000,  # milliseconds
        )
        _connections.add(self._connection)
        self._ask(_SESSION)
        [(fsync,)] = self._ask("SELECT current_setting('fsync')")
        if fsync != "on":
            raise CacheError(
                f"The server of the cache {self.place} can lose what it has taken: its setting fsync is {fsync}.",
                fix="Write `fsync = on` into its postgresql.conf, and reload it.",
            )
        found = self._version()
        if found is None:
            with self._connection.transaction():
                self._ask("SELECT pg_advisory_xact_lock(%s)", _MIGRATING)
                self._ask(_SCHEMA)
            found = self._version()
        if found != SCHEMA_VERSION:
            raise CacheError(
                f"The cache {self.place} has schema {found}, and this version knows {SCHEMA_VERSION}.",
                fix="Install a later modelgauge-plugin-postgresql, or use another database.",
            )

    def _version(self) -> int | None:
        """Return the version of the tables; None if there are none."""
        if self._ask("SELECT to_regclass('modelgauge_responses'), to_regclass('modelgauge_cache')") != [
            ("modelgauge_responses", "modelgauge_cache")
        ]:
            return None
        found = self._ask("SELECT schema_version FROM modelgauge_cache")
        return found[0][0] if found else None

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def is_lost(self, error: Exception) -> bool:
        """Return whether the connection broke: because the server stopped or restarted, or by the network."""
        del error
        return self._connection is None or self._connection.closed

    def _ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Execute a statement; returns the rows that it gives."""
        if self._connection is None:
            raise psycopg.OperationalError("there is no connection")
        cursor = self._connection.execute(statement, values or None, binary=bool(values))
        return cursor.fetchall() if cursor.description else []

    # --- values ---------------------------------------------------------------------------------------------

    def get_many(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """Return the values of the keys that are there."""
        rows = self._ask(
            "SELECT digest, entry FROM modelgauge_responses WHERE digest = ANY(%s)", list(digests)
        )
        return dict(rows)

    def put_many(self, values: Mapping[str, bytes]) -> None:
        """Store values in one transaction; in one order, so that two processes never wait for each other."""
        keys = sorted(values)
        self._ask(
            "INSERT INTO modelgauge_responses (digest, entry) SELECT * FROM unnest(%s::text[], %s::bytea[]) "
            "ON CONFLICT (digest) DO UPDATE SET entry = EXCLUDED.entry, written = now()",
            keys,
            [values[key] for key in keys],
        )

    def page(self, after: str) -> tuple[Mapping[str, bytes], str | None]:
        """Return some values in the order of their keys, and the last key of the page."""
        values = dict(
            self._ask(
                "SELECT digest, entry FROM modelgauge_responses WHERE digest > %s ORDER BY digest LIMIT %s",
                after,
                _PAGE,
            )
        )
        return values, max(values) if len(values) == _PAGE else None

    def remove(self, digests: Sequence[str]) -> int:
        """Remove the values of these keys, and return how many there were."""
        statement = "DELETE FROM modelgauge_responses WHERE digest = ANY(%s) RETURNING digest"
        return len(self._ask(statement, list(digests)))

    def clear(self) -> int:
        """Remove all values, and return how many there were."""
        [(number,)] = self._ask(
            "WITH removed AS (DELETE FROM modelgauge_responses RETURNING 1) SELECT count(*) FROM removed"
        )
        return int(number)

    def set_aside(self, digest: str, value: bytes, why: str) -> bool:
        """Move a value into the quarantine, unless it was replaced meanwhile."""
        moved = self._ask(
            "WITH removed AS (DELETE FROM modelgauge_responses WHERE digest = %s AND entry = %s "
            "RETURNING digest, entry) "
            "INSERT INTO modelgauge_quarantine (digest, entry, why) SELECT digest, entry, %s FROM removed RETURNING 1",
            digest,
            value,
            why,
        )
        return bool(moved)

    def stats(self) -> CacheStats:
        """Return the number of values, the bytes of their table, and whether other sessions are connected."""
        [row] = self._ask(
            "SELECT (SELECT count(*) FROM modelgauge_responses), pg_total_relation_size('modelgauge_responses'), "
            "(SELECT count(*) FROM modelgauge_quarantine), "
            "EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() "
            "AND application_name LIKE 'modelgauge %' AND pid <> pg_backend_pid())"
        )
        return CacheStats(*row)

    # --- leases ---------------------------------------------------------------------------------------------

    def lease(self, digests: Sequence[str]) -> Mapping[str, str]:
        """Lock keys for this session; return those that other sessions hold, with their application names."""
        numbers = {_number_lock(digest): digest for digest in digests}
        refused = self._ask(
            "SELECT number FROM unnest(%s::bigint[]) AS number WHERE NOT pg_try_advisory_lock(number)",
            list(numbers),
        )
        if not refused:
            return {}
        holders = self._ask(
            "SELECT number, application_name FROM unnest(%s::bigint[]) AS number JOIN pg_locks "
            "ON locktype = 'advisory' AND objsubid = 1 AND granted "
            "AND (classid::bigint << 32) | objid::bigint = number "
            "JOIN pg_stat_activity USING (pid)",
            [number for (number,) in refused],
        )
        names = {number: name.removeprefix("modelgauge ") for number, name in holders}
        return {numbers[number]: names.get(number, "of another machine") for (number,) in refused}

    def release(self, digests: Sequence[str]) -> None:
        """Unlock keys."""
        self._ask(
            "SELECT pg_advisory_unlock(n) FROM unnest(%s::bigint[]) AS n", [*map(_number_lock, digests)]
        )


def _number_lock(digest: str) -> int:
    """Return the lock number of a key: its first 64 bits, as PostgreSQL counts them."""
    return int.from_bytes(bytes.fromhex(digest[:16]), signed=True)
