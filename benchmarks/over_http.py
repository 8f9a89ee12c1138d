"""W4, W5, W7 and W8: calls over HTTP to a server on the loopback interface, beside a bare aiohttp client.

Run by hand: uv run python benchmarks/over_http.py [W4 W5 W7 W8]
"""

import asyncio
import json
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aiohttp
from common import ExactMatch, header, medians, scratch

from modelgauge import CompletionAnnotator, PromptResponseSUT, Runner, SUTCompletion, SUTResponse, run_test

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "faults"))
from chat_server import ChatServer, Fault, Plan, Stats

CALLS = 1_000
CONCURRENCY = 100
LATENCY = 0.1
_DEADLINE = 2.0  # of an attempt, in W8
_RETRY_AFTER = 0.5
_FIRST_BACK_OFF = 0.5  # at most


def name(server: ChatServer) -> str:
    return f"openai/any-model?base_url={server.base_url}"


def body(number: int) -> dict[str, object]:
    text = f"{number} {'x' * 1000}"
    return {"model": "any-model", "messages": [{"role": "user", "content": text}]}


async def bare_calls(*stages: str) -> None:
    """A bare client: as many calls at once for each stage's server, the second asked when the first has answered."""
    gates = [(asyncio.Semaphore(CONCURRENCY), f"{base_url}/chat/completions") for base_url in stages]
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def call(number: int) -> None:
            for gate, url in gates:
                async with gate, session.post(url, json=body(number)) as response:
                    json.loads(await response.read())

        await asyncio.gather(*(call(number) for number in range(CALLS)))


def bare_pool(base_url: str) -> None:
    """A bare thread pool with the standard library's client."""
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        list(pool.map(lambda number: blocking_call(base_url, body(number)), range(CALLS)))


def blocking_call(base_url: str, content: dict[str, object]) -> str:
    request = urllib.request.Request(
        f"{base_url}/chat/completions", json.dumps(content).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)["choices"][0]["message"]["content"]


class BlockingSUT(PromptResponseSUT):
    """A plain `def` SUT of the same server."""

    cacheable = False

    def __init__(self, uid: str, base_url: str) -> None:
        super().__init__(uid)
        self.base_url = base_url

    def translate_text_prompt(self, prompt) -> dict:
        return {"model": "any-model", "messages": [{"role": "user", "content": prompt.text}]}

    def evaluate(self, request: dict) -> str:
        return blocking_call(self.base_url, request)

    def translate_response(self, request, response) -> SUTResponse:
        return SUTResponse(completions=(SUTCompletion(text=response),))


class Judge(CompletionAnnotator):
    """Asks the server once more."""

    def __init__(self, uid: str, model: str) -> None:
        super().__init__(uid)
        self.model = model

    def get_suts(self):
        return {"judge": self.model}

    def translate_request(self, prompt, completion) -> str:
        return completion.text

    async def annotate(self, request: str) -> str:
        response = await self.ask("judge", f"judge {request}")
        return response.completions[0].text

    def translate_response(self, request, response) -> str:
        return response


class Judged(ExactMatch):
    def __init__(self, uid: str, items: int, model: str) -> None:
        super().__init__(uid, items)
        self.model = model

    def get_annotators(self):
        return {"judge": Judge("judge", self.model)}


def run(test, sut, folder: Path, **options: object) -> None:
    record = run_test(test, sut, data_dir=folder, caching=False, **options)
    if record.counts.scored != record.counts.items or record.counts.items != CALLS:
        raise SystemExit(f"not all scored: {record.counts} {record.failure}")


def w4() -> None:
    with ChatServer(Plan(latency=LATENCY)) as server, scratch() as folder:
        test = ExactMatch("exact", CALLS)
        medians(
            "W4",
            CALLS,
            {
                "bare aiohttp client": lambda: asyncio.run(bare_calls(server.base_url)),
                "async SUT, --concurrency 100": lambda: run(
                    test, name(server), folder, concurrency=CONCURRENCY
                ),
                "async SUT, adaptive": lambda: run(test, name(server), folder),
            },
        )
        medians(
            "W4t",
            CALLS,
            {
                "bare thread pool": lambda: bare_pool(server.base_url),
                "plain def SUT, --concurrency 100": lambda: run(
                    test, BlockingSUT("blocking", server.base_url), folder, concurrency=CONCURRENCY
                ),
            },
        )


def w5() -> None:
    with (
        ChatServer(Plan(latency=LATENCY)) as server,
        ChatServer(Plan(latency=LATENCY)) as other,
        scratch() as folder,
    ):
        test = Judged("judged", CALLS, name(other))
        medians(
            "W5",
            2 * CALLS,
            {
                "bare aiohttp client": lambda: asyncio.run(bare_calls(server.base_url, other.base_url)),
                "judged by a second call": lambda: run(test, name(server), folder, concurrency=CONCURRENCY),
            },
        )


def w7() -> None:
    """8 SUTs of mixed latencies (0.1 to 0.8 s) on 4 tests of 100 prompts; the limit is the slowest SUT alone.

    Rates and CPU are those of 400 prompts, which each SUT is asked. With 20 calls at once for each SUT there are at
    most 540 calls a second, which the two processors and the eight servers on them can do; with latencies of a fifth of
    these it would be the processors that are measured.
    """
    servers = [ChatServer(Plan(latency=LATENCY * (number + 1))) for number in range(8)]
    with scratch() as folder:
        for server in servers:
            server.__enter__()
        try:
            tests = [ExactMatch(f"exact_{number}", 100, size=1000 + number) for number in range(4)]
            names = [name(server) for server in servers]
            options = {"data_dir": folder, "caching": False, "concurrency": 20}
            medians(
                "W7",
                100 * 4,
                {
                    "slowest SUT alone": lambda: Runner(**options).run(tests, names[-1]),
                    "8 SUTs x 4 tests": lambda: Runner(**options).run(tests, names),
                },
            )
        finally:
            for server in servers:
                server.__exit__(None, None, None)


def w8() -> None:
    """10 % of the prompts get a 429 first, 2 % a 500, 1 % no answer: all are scored, none is asked after success.

    The arithmetic of the back-offs. Each prompt takes a place for the latency (0.1 s); one with a 429 keeps it while it
    waits what the server asks for (0.5 s) with its jitter (0.25 s on average), and takes it once more; so does one with
    a 500, whose back-off holds no place; one without an answer holds it until the attempt's deadline (2 s) instead.
    With 100 places: (1000 * 0.1 + 100 * (0.75 + 0.1) + 20 * 0.1 + 10 * 2) / 100 = 2.1 s. To this comes at most what
    the last prompt takes, when it is one without an answer: 2 s, a back-off of at most 0.5 s, 0.1 s. In all 4.7 s.
    """
    faults = (
        Fault("429", share=0.10, retry_after_ms=1000 * _RETRY_AFTER),
        Fault("500", share=0.02),
        Fault("hang", share=0.01),
    )
    with (
        ChatServer(Plan(latency=LATENCY)) as sound,
        ChatServer(Plan(latency=LATENCY, faults=faults)) as server,
    ):
        with scratch() as folder:
            test = ExactMatch("exact", CALLS)
            options = {"concurrency": CONCURRENCY, "attempt_timeout": _DEADLINE}
            walls = medians(
                "W8",
                CALLS,
                {
                    "without faults": lambda: run(test, name(sound), folder, **options),
                    "10 % 429, 2 % 500, 1 % hang": lambda: (
                        server.reset(),
                        run(test, name(server), folder, **options),
                    ),
                },
            )
        stats = server.stats()
        print(f"calls {stats.calls}, completed {stats.completed}, after success {stats.after_success}")
        if stats.after_success or stats.completed != CALLS:
            raise SystemExit("a prompt was asked again after it was answered, or was not answered")
        most = longest_with_back_offs(stats)
        print(f"the arithmetic of the back-offs allows {most:.1f} s; taken: {list(walls.values())[-1]:.1f} s")


def longest_with_back_offs(stats: Stats) -> float:
    """The arithmetic of `w8`, with the faults that were played."""
    played = {"429": 0, "500": 0, "hang": 0, **stats.faults}
    refused = _RETRY_AFTER + _FIRST_BACK_OFF / 2 + LATENCY
    work = CALLS * LATENCY + played["429"] * refused + played["500"] * LATENCY + played["hang"] * _DEADLINE
    return work / CONCURRENCY + _DEADLINE + _FIRST_BACK_OFF + LATENCY


def main() -> None:
    header()
    chosen = sys.argv[1:] or ["W4", "W5", "W7", "W8"]
    for workload in chosen:
        {"W4": w4, "W5": w5, "W7": w7, "W8": w8}[workload]()


if __name__ == "__main__":
    main()
