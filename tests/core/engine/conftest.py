"""Fixtures for tests of the engine: tests and SUTs of a line each, runs in a folder of their own."""

import asyncio

import pytest
from blockbuster import blockbuster_ctx

from modelgauge import CompletionAnnotator, FunctionSUT, PromptResponseTest, Runner, TestItem, resume
from modelgauge.config.settings import load_settings
from modelgauge.engine import target_pool as engine_pool
from modelgauge.interfaces.identity import identity_name
from modelgauge.plugins.discovery import Plugins


@pytest.fixture(autouse=True, scope="module")
def loop_is_never_blocked():
    """A blocking call of library code on an event loop raises."""
    with blockbuster_ctx("modelgauge"):
        yield


class Asked(PromptResponseTest):
    """Asks the items it is given, and measures with the function it is given."""

    def __init__(self, uid):
        super().__init__(uid)
        self.items = list
        self.measure = lambda item: {"right": item.text == "yes"}
        self.annotators = {}

    def make_test_items(self, dependencies):
        return self.items()

    def get_annotators(self):
        return self.annotators

    def measure_quality(self, item):
        return self.measure(item)


class Judged(CompletionAnnotator):
    """Annotates with a function of prompt and completion."""

    def __init__(self, uid, function):
        super().__init__(uid)
        self.function = function

    identity_excludes = frozenset({"function"})

    def translate_request(self, prompt, completion):
        return [prompt.prompt.text, completion.text]

    async def annotate(self, request):
        result = self.function(*request)
        return await result if asyncio.iscoroutine(result) else result

    def translate_response(self, request, response):
        return response


@pytest.fixture
def make_test():
    """`make_test(items, **attributes)`: items are texts, TestItems, how many, or a function."""

    def make(items=3, uid="test", cls=Asked, **attributes):
        test = cls(uid)
        if callable(items):
            test.items = items
        else:
            texts = [f"question {n}" for n in range(items)] if isinstance(items, int) else items
            made = [text if isinstance(text, TestItem) else TestItem([text]) for text in texts]
            test.items = lambda: list(made)
        for name, value in attributes.items():
            setattr(test, name, value)
        return test

    return make


class Noting(FunctionSUT):
    cache_identity = identity_name(FunctionSUT)
    identity_excludes = FunctionSUT.identity_excludes | {"asked"}


@pytest.fixture
def make_sut():
    """`make_sut(answer)`: a cacheable SUT that keeps what it was asked in `asked`."""

    def make(answer="yes", uid="sut", version=1, **options):
        asked = []

        async def function(text):
            asked.append(text)
            given = answer(text) if callable(answer) else answer
            return await given if asyncio.iscoroutine(given) else given

        sut = Noting(uid, function, version=version, **options)
        sut.asked = asked
        return sut

    return make


@pytest.fixture
def make_annotator():
    """`make_annotator(function)`: annotates with a function of prompt text and completion text."""
    return lambda function, uid="annotator": Judged(uid, function)


@pytest.fixture
def judged_class():
    """The class of `make_annotator`'s annotators, for subclasses."""
    return Judged


@pytest.fixture
def run_folder(tmp_path):
    """The data folder of the test's runs."""
    return tmp_path / "data"


@pytest.fixture
def runner(run_folder):
    """`runner(**options)`: a Runner without plugins."""

    def make(**options):
        options.setdefault("data_dir", run_folder)
        return Runner(plugins=Plugins(), settings=load_settings(), **options)

    return make


@pytest.fixture
def run(runner):
    """`run(test, sut, **options)`: the record of one pair."""
    return lambda test, sut, **options: runner(**options).run([test], [sut])[0]


@pytest.fixture
def resumed(run_folder):
    """`resumed(record, test, sut)`: the record of the run, continued."""
    return lambda record, test, sut, **options: resume(
        record.run_id, run_folder, test=test, sut=sut, plugins=Plugins(), **options
    )[0]


@pytest.fixture
def accounted():
    """`accounted(record)`: every item in has exactly one record, and the counts say so."""

    def check(record):
        counts = record.counts
        records = list(record.iter_items())
        assert len(records) == counts.items == counts.scored + counts.failed
        assert (
            len({record.index for record in records})
            == len({record.test_item.id for record in records})
            == len(records)
        )
        assert len(record.test_item_records) == counts.scored
        return record

    return check


@pytest.fixture
def slept(monkeypatch):
    """The back-offs of the runs of a test, none of which is waited for."""
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    services = engine_pool.Services
    monkeypatch.setattr(engine_pool, "Services", lambda *args: services(*args, sleep=sleep))
    return waits


@pytest.fixture
def jumping(monkeypatch):
    """`jumping(main)`: runs a coroutine in a loop whose clock jumps to the next timer; `main` is given the clock."""

    def run(main):
        now = 0.0

        async def in_loop():
            loop = asyncio.get_running_loop()
            real = loop._selector.select

            def select(timeout):
                nonlocal now
                if timeout:
                    now += timeout
                return real(0)

            monkeypatch.setattr(loop, "time", lambda: now)
            monkeypatch.setattr(loop._selector, "select", select)
            return await main(lambda: now)

        return asyncio.run(in_loop())

    return run
