"""Real servers of PostgreSQL and Redis on free ports of loopback, which tests can kill and start again."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import psycopg
import redis

PASSWORD = "hunter2-hunter2"


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def until_it_answers(server, ask, refusal):
    """Wait for a server that was started; fail with its log where it ends, or never answers."""
    for _ in range(600):
        try:
            ask()
        except refusal:
            assert server.process.poll() is None, (server.folder / "log").read_text()
            time.sleep(0.05)
        else:
            return
    raise AssertionError((server.folder / "log").read_text())


def postgres_programs():
    """The folder with the server's programs: Debian keeps them out of the path."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders else None


class PostgresServer:
    """A server that can be killed and started again; it refuses to be root, so it is started as `postgres` then."""

    def __init__(self, folder):
        self.folder, self.bin, self.process = folder, postgres_programs(), None
        self.user = "postgres" if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(folder, "postgres")
        self.port = free_port()
        self.run(
            "initdb", "-D", str(folder / "data"), "-U", "tests", "-A", "trust", "-E", "UTF8", "--no-sync"
        )
        self.start()
        self.databases = 0

    def run(self, program, *arguments):
        subprocess.run(
            [self.bin / program, *arguments], check=True, user=self.user, cwd=self.folder, capture_output=True
        )

    def start(self):
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.folder,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", "data", *options],
                user=self.user,
                cwd=self.folder,
                stderr=log,
                stdout=log,
            )
        until_it_answers(
            self, lambda: psycopg.connect(self.url("postgres")).close(), psycopg.OperationalError
        )

    def kill(self):
        """End it as a power cut does; its other processes notice that they are orphans."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        time.sleep(0.1)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # the manual's "fast shutdown"
            self.process.wait(60)

    def url(self, database):
        return f"postgresql://tests:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def new_database(self):
        self.databases += 1
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE d{self.databases}")
        return self.url(f"d{self.databases}")


class RedisServer:
    """A server that can be killed and started again, with the settings that the README names."""

    def __init__(self, folder, **settings):
        self.folder, self.process, self.databases = folder, None, 0
        self.port = free_port()
        needed = {
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
            "save": '""',
        }
        user = {"user": f"tests on >{PASSWORD} ~* &* +@all"}
        lines = [f"{name} {value}" for name, value in {**needed, **user, **settings}.items()]
        (folder / "redis.conf").write_text("\n".join(lines), encoding="ascii")
        self.start()

    def start(self):
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--databases", "100"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["redis-server", "redis.conf", *options], cwd=self.folder, stdout=log, stderr=log
            )
        until_it_answers(self, redis.Redis.from_url(self.url(0)).ping, redis.ConnectionError)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def url(self, database):
        return f"redis://tests:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def new_database(self):
        self.databases += 1
        return self.url(self.databases)
