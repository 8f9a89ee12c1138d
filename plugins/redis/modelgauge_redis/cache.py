"""The cache of responses in Redis: a string for each entry, and a string that expires for each lease.

A lease lasts a while by the server's own clock, and the cache renews it. A process that stands still for longer
than that loses its leases, and another may then pay for the same keys.
"""

import base64
import json
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from modelgauge import CacheBackend, CacheStats
from modelgauge.errors import CacheError

SCHEMA_VERSION = 1
_PREFIX = "modelgauge"
_SCHEMA, _INDEX = f"{_PREFIX}:schema", f"{_PREFIX}:index"  # the index has all keys in their order
_ENTRY, _LEASE_OF = f"{_PREFIX}:response:", f"{_PREFIX}:lease:"  # and then the key
_PAGE = 500

# Of each key: held by this owner from now on, unless it is another's. Returns the other owners, or ''.
_LEASE = """
local others = {}
for i, key in ipairs(KEYS) do
  local owner = redis.call('GET', key)
  if not owner or owner == ARGV[1] then
    redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
    others[i] = ''
  else
    others[i] = owner
  end
end
return others
"""
_RELEASE = """
for _, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[1] then redis.call('DEL', key) end
end
"""
_SET_ASIDE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('RPUSH', KEYS[2], ARGV[2])
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[3], ARGV[3])
  return 1
end
return 0
"""


class RedisCache(CacheBackend):
    """Keeps responses in the database of a URL: `redis://host:6379/0`, `rediss://` with TLS, as redis-py reads it.

    The password comes from REDIS_PASSWORD or the URL. A server that may evict keys, or forgets them when it ends, is
    refused.
    """

    errors = (redis.RedisError, OSError)
    lease_seconds = 30.0
    quarantine = f"the list {_PREFIX}:quarantine"

    def __init__(self, url: str) -> None:
        self._token = secrets.token_hex(8)
        self._owner = f"{socket.gethostname()} {os.getpid()} {self._token}"
        self._client: Any = None
        super().__init__(url)

    # --- the connection -------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Connect, and check the server's settings."""
        self.close()
        password = os.environ.get("REDIS_PASSWORD")
        self._client = redis.Redis.from_url(
            self.url,
            **({"password": password} if password else {}),
            client_name=f"{_PREFIX}-{self._token}",
            socket_connect_timeout=10,
            socket_timeout=30,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),  # `ResponseCache` does
        )
        self._lease, self._release, self._set_aside_one = map(
            self._client.register_script, (_LEASE, _RELEASE, _SET_ASIDE)
        )
        self._check_durability()
        self._client.set(_SCHEMA, SCHEMA_VERSION, nx=True)
        found = self._client.get(_SCHEMA)
        if found != str(SCHEMA_VERSION).encode():
            raise CacheError(
                f"The cache {self.place} has schema {found!r}, and this version knows {SCHEMA_VERSION}.",
                fix="Install a later modelgauge-plugin-redis, or use another database.",
            )

    def _check_durability(self) -> None:
        """Refuse a server that forgets.

        Raises:
            CacheError: the message has the lines that its settings need.
        """
        found = {**self._client.info("memory"), **self._client.info("persistence")}
        if found.get("loading"):  # it says that it keeps no log, while it reads its log
            raise redis.BusyLoadingError("The server is loading its data.")
        lines = []
        if found.get("maxmemory_policy") != "noeviction":
            lines.append("maxmemory-policy noeviction")
        if found.get("aof_enabled") != 1:
            lines.append("appendonly yes")
        with suppress(redis.exceptions.NoPermissionError):  # then nobody but its administrator knows
            if self._client.config_get("appendfsync").get("appendfsync") != "always":
                lines.append("appendfsync always")
        if lines:
            raise CacheError(
                f"The server of the cache {self.place} can lose what it has taken.",
                fix=f"Write into its redis.conf: {'; '.join(lines)}. Then start it again.",
            )

    def close(self) -> None:
        """Close the connections, if there are any."""
        if self._client is not None:
            with suppress(*self.errors):
                self._client.close()
            self._client = None

    def is_lost(self, error: Exception) -> bool:
        """Return whether the server is gone, restarting or not answering."""
        lost = isinstance(error, redis.ConnectionError | redis.TimeoutError | OSError)
        return lost and not isinstance(error, redis.AuthenticationError)

    # --- values ---------------------------------------------------------------------------------------------

    def get_many(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """Return the values of the keys that are there."""
        values = self._client.mget(map(_entry, digests)) if digests else []
        return {digest: value for digest, value in zip(digests, values, strict=True) if value is not None}

    def put_many(self, values: Mapping[str, bytes]) -> None:
        """Store values in one step. The server writes its log before it answers."""
        with self._client.pipeline(transaction=True) as pipeline:
            pipeline.mset({_entry(digest): value for digest, value in values.items()})
            pipeline.zadd(_INDEX, dict.fromkeys(values, 0))
            pipeline.execute()

    def page(self, after: str) -> tuple[Mapping[str, bytes], str | None]:
        """Return some values in the order of their keys, and the last key of the page."""
        keys = [
            key.decode("ascii")
            for key in self._client.zrangebylex(_INDEX, f"({after}" if after else "-", "+", 0, _PAGE)
        ]
        return self.get_many(keys), keys[-1] if len(keys) == _PAGE else None

    def remove(self, digests: Sequence[str]) -> int:
        """Remove the values of these keys, and return how many there were."""
        with self._client.pipeline(transaction=True) as pipeline:
            pipeline.unlink(*map(_entry, digests))
            pipeline.zrem(_INDEX, *digests)
            return int(pipeline.execute()[0])

    def clear(self) -> int:
        """Remove all values, some at a time: a server does nothing else meanwhile."""
        removed = 0
        while keys := [key.decode("ascii") for key in self._client.zrange(_INDEX, 0, _PAGE - 1)]:
            removed += self.remove(keys)
        return removed

    def set_aside(self, digest: str, value: bytes, why: str) -> bool:
        """Move a value into the quarantine, unless it was replaced meanwhile."""
        found = {"digest": digest, "why": why, "entry": base64.b64encode(value).decode("ascii")}
        keys = [_entry(digest), f"{_PREFIX}:quarantine", _INDEX]
        return bool(self._set_aside_one(keys=keys, args=[value, json.dumps(found), digest]))

    def stats(self) -> CacheStats:
        """Return the number of values, their bytes, and whether other processes are connected."""
        quarantined = int(self._client.llen(f"{_PREFIX}:quarantine"))
        return CacheStats(
            int(self._client.zcard(_INDEX)), self._bytes_of_all(), quarantined, self._has_others()
        )

    def _bytes_of_all(self) -> int:
        keys, total, after = [b""], 0, "-"
        while keys:
            keys = self._client.zrangebylex(_INDEX, after, "+", 0, _PAGE)
            with self._client.pipeline(transaction=False) as pipeline:
                for key in keys:
                    pipeline.strlen(_entry(key.decode("ascii")))
                total += sum(pipeline.execute())
            after = f"({keys[-1].decode('ascii')}" if keys else after
        return total

    def _has_others(self) -> bool:
        """Return whether other processes of ModelGauge are connected, as far as this user may know."""
        try:
            names = {client.get("name", "") for client in self._client.client_list()}
        except redis.exceptions.NoPermissionError:  # the right to see this is not needed for anything else
            return False
        return any(name.startswith(f"{_PREFIX}-") for name in names - {f"{_PREFIX}-{self._token}"})

    # --- leases ---------------------------------------------------------------------------------------------

    def lease(self, digests: Sequence[str]) -> Mapping[str, str]:
        """Lease keys; return those of other processes, each with its machine and process."""
        milliseconds = round(self.lease_seconds * 1000)
        owners = self._lease(keys=[*map(_get_lease, digests)], args=[self._owner, milliseconds])
        return {
            digest: owner.decode("utf-8", "replace").rpartition(" ")[0]
            for digest, owner in zip(digests, owners, strict=True)
            if owner
        }

    def release(self, digests: Sequence[str]) -> None:
        """End leases that are still this process's."""
        self._release(keys=[*map(_get_lease, digests)], args=[self._owner])


def _entry(digest: str) -> str:
    return _ENTRY + digest


def _get_lease(digest: str) -> str:
    return _LEASE_OF + digest
