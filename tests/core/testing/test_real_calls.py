"""Real calls of the test kit, made by the engine, so failed attempts are handled as in a run."""

import socket
from urllib.request import urlopen

import pytest

from modelgauge import Retry
from modelgauge.testing import FakeAnnotator, FakeSUT, FakeTest, check_annotator, check_sut, check_test


class BusyError(Exception):
    """An error that only its author knows to be temporary."""


class Flaky:
    """Fails the first attempts."""

    failures = 1
    verdict = Retry()

    def fail(self):
        if self.failures:
            self.failures -= 1
            raise BusyError("busy")

    def classify_error(self, error):
        return self.verdict if isinstance(error, BusyError) else None


class FlakySUT(Flaky, FakeSUT):
    async def evaluate(self, request):
        self.fail()
        return await super().evaluate(request)


class FlakyAnnotator(Flaky, FakeAnnotator):
    async def annotate(self, request):
        self.fail()
        return await super().annotate(request)


@pytest.mark.parametrize("verdict", [Retry(), Retry(after=0.01, rate_limited=True), Retry(unreachable=True)])
def test_attempt_that_may_be_repeated_is_repeated(verdict):
    sut, annotator = FlakySUT("flaky"), FlakyAnnotator("flaky_judge", 1)
    sut.verdict = annotator.verdict = verdict
    check_sut(sut, call=True).raise_for_problems()
    check_annotator(annotator, call=True).raise_for_problems()
    assert (len(sut.calls), len(annotator.calls)) == (1, 1)


def test_annotator_of_a_test_is_asked_again_too(tmp_path):
    test = FakeTest(
        "judged",
        ["a"],
        annotators={"tone": FlakyAnnotator("tone", 1)},
        measure=lambda item: {"tone": item.annotation("tone")},
    )
    check_test(test, call=True, data_dir=tmp_path).raise_for_problems()


def test_attempt_that_cannot_succeed_is_not_repeated():
    sut = FlakySUT("broken")
    sut.verdict, sut.failures = None, 9
    with pytest.raises(AssertionError, match="BusyError: busy"):
        check_sut(sut, call=True).raise_for_problems()
    assert sut.failures == 8


def test_server_that_nobody_reaches_is_given_up_soon():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

    class Unreachable(FakeSUT):
        def evaluate(self, request):
            return urlopen(url).read()

    with pytest.raises(AssertionError, match="could not be reached for 3 s"):
        check_sut(Unreachable("unreachable"), call=True).raise_for_problems()
