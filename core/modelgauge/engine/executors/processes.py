"""`--executor processes`: worker processes on this machine, started with the current Python."""

import asyncio
import os
import signal
import sys
from contextlib import suppress

from modelgauge.engine.executors.messages import OutputFilter
from modelgauge.errors import InvalidOptionError, RunStoppedError

# -P: nothing in the working directory is taken for a module of ours.
_COMMAND = ("-P", "-m", "modelgauge.workers")
_CHUNK = 1 << 18
_ENDING = 2.0  # seconds that a process whose output has ended gets to end itself


class Processes:
    """Executor of worker processes. They exit with this process, since that closes their stdin.

    Args:
        workers: how many; None for as many as processors.
    """

    hands_secrets = True

    def __init__(self, workers: int | None = None) -> None:
        self.workers = self.least = workers or os.cpu_count() or 1
        if self.workers < 1:
            raise InvalidOptionError(
                "`--workers` must be at least 1.", fix="Leave it out for one worker per processor."
            )
        self._shown = OutputFilter()

    async def start(self) -> "ProcessLink":
        """Start a process, apart from the terminal: Ctrl-C is for the driver alone."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *_COMMAND,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_CHUNK,
                start_new_session=True,
            )
        except OSError as error:
            raise RunStoppedError(
                f"A worker process cannot be started: {error}.",
                fix="Give fewer --workers, or end other processes.",
            ) from error
        return ProcessLink(process, self._shown)

    async def close(self) -> None:
        """Do nothing: there are no shared resources."""


class ProcessLink:
    """A process and its pipes.

    Args:
        process: was started.
        shown: knows what other workers wrote.
    """

    def __init__(self, process: asyncio.subprocess.Process, shown: OutputFilter) -> None:
        self._process, self._shown = process, shown
        self.name = f"Worker process {process.pid}"
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise TypeError(process)
        self._in, self._out, self._err = process.stdin, process.stdout, process.stderr
        self._copying = asyncio.get_running_loop().create_task(self._copy())

    async def send(self, lines: bytes) -> None:
        """Write lines into its input."""
        with suppress(ConnectionError):  # it has ended: `receive` says so
            self._in.write(lines)
            await self._in.drain()

    async def receive(self) -> bytes:
        """Yield the lines of the process's output. The last line may be incomplete."""
        return await self._out.read(_CHUNK)

    async def end(self) -> None:
        """Kill it, unless it has ended, and wait for its end.

        Do not wait for a process that it left behind, which may keep its streams open.
        """
        if self._out.at_eof():  # it is ending: asyncio may lose the exit code of what is killed then
            await self._wait()
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
        await self._wait()
        await asyncio.wait([self._copying], timeout=_ENDING)
        self._copying.cancel()
        self._in.close()

    async def _wait(self) -> None:
        """Wait a while for it to exit."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _ENDING)

    def why_ended(self) -> str:
        """Describe the signal or the exit code that ended the process."""
        code = self._process.returncode or 0
        if code < 0:
            return f"by signal {-code} ({signal.Signals(-code).name})"
        return f"with exit code {code}"

    async def _copy(self) -> None:
        """Show what it writes to its stderr, and what its code prints."""
        while line := await self._line():
            if self._shown.is_new(self, line):
                sys.stderr.write(line)

    async def _line(self) -> str:
        try:
            line = await self._err.readuntil()
        except asyncio.IncompleteReadError as ended:
            line = ended.partial
        except asyncio.LimitOverrunError:
            line = await self._err.read(_CHUNK)
        return line.decode(errors="replace")
