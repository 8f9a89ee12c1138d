"""A worker process: lines come in by stdin and go out by stdout. `--executor processes` starts it."""

import asyncio
import os
import queue
import sys
import threading

from modelgauge.workers.serving import serve

_CHUNK = 1 << 18


def main() -> None:
    """Work until the input ends. What code prints meanwhile goes to stderr."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr  # whole lines go out at once
    sender: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    sending = threading.Thread(target=_send, args=(sender, outgoing), daemon=True)
    sending.start()
    asyncio.run(_serve(incoming, sender))
    sender.put(b"")
    sending.join()
    sys.stderr.flush()
    os._exit(0)  # a call that hangs in a thread does not keep the process


async def _serve(incoming: int, sender: "queue.SimpleQueue[bytes]") -> None:
    loop = asyncio.get_running_loop()
    inbox: asyncio.Queue[bytes] = asyncio.Queue()

    def receive() -> None:
        data = os.read(incoming, _CHUNK)
        inbox.put_nowait(data)
        if not data:
            loop.remove_reader(incoming)

    loop.add_reader(incoming, receive)
    await serve(inbox.get, sender.put)


def _send(sender: "queue.SimpleQueue[bytes]", outgoing: int) -> None:
    """Write what is to be sent, as much at once as there is."""
    while data := sender.get():
        parts, ends = [data], False
        while not sender.empty() and not ends:
            parts.append(sender.get())
            ends = not parts[-1]
        view = memoryview(b"".join(parts))
        try:
            while view:
                view = view[os.write(outgoing, view) :]
        except BrokenPipeError:  # the driver is gone, which the input says too
            return
        if ends:
            return


if __name__ == "__main__":
    main()
