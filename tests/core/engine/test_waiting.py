"""Calls that a server refuses: rate limits are waited out, and while nobody can reach it all calls wait together.

Time is counted, not waited for.
"""

import asyncio
import errno
import math
import socket
import ssl
from collections import deque
from dataclasses import dataclass, field

import pytest

from modelgauge import Fatal, FunctionSUT, Retry
from modelgauge.config.run_options import RunOptions
from modelgauge.engine.bookkeeping.tally import CallTally
from modelgauge.engine.calls.budget import Budget
from modelgauge.engine.calls.call import Target
from modelgauge.engine.calls.limits import Outcome
from modelgauge.engine.calls.retries import classify, get_outcome
from modelgauge.engine.calls.services import Services
from modelgauge.engine.loop.deadlines import Deadlines
from modelgauge.engine.loop.threads import CallPool
from modelgauge.errors import CallError, CallTimeoutError, RunStoppedError

LIMITED, LOST, LATE = (
    Retry(rate_limited=True),
    Retry(unreachable=True),
    Retry(rate_limited=True, unreachable=True),
)


class RefusedError(Exception):
    """A call that the server refused, and what becomes of it."""

    def __init__(self, verdict):
        super().__init__("Nothing at 127.0.0.1:1")
        self.verdict = verdict


class Asked(FunctionSUT):
    """A SUT that says what its errors are."""

    def classify_error(self, error):
        return error.verdict if isinstance(error, RefusedError) else None


@dataclass
class Played:
    """What became of the calls to a server.

    Args:
        results: answers and exceptions.
        seconds: that it took.
        sent: when each attempt was sent.
    """

    results: list
    seconds: float
    sent: list
    target: Target
    budget: Budget = field(default_factory=Budget)

    @property
    def answered(self):
        return sum(not isinstance(result, BaseException) for result in self.results)


@pytest.fixture
def play(jumping):
    """`play(server, calls, **options)`: `server(now, text)` returns the verdict of a refusal, or None, and seconds."""

    def run(server, calls=10, *, budget=None, meanwhile=None, **options):
        async def main(clock):
            sent = []

            async def answer(text):
                sent.append(clock())
                verdict, seconds = server(clock(), text)
                await asyncio.sleep(seconds)
                if verdict is not None:
                    raise RefusedError(verdict)
                return "yes"

            spent = budget or Budget()
            services = Services(
                RunOptions(caching=False, **options),
                None,
                None,
                CallPool(),
                Deadlines(clock),
                spent,
                clock=clock,
            )
            target = Target(Asked("sut", answer), services)
            tally = CallTally()
            work = asyncio.gather(
                *(target.call(f"question {n}", tally) for n in range(calls)), return_exceptions=True
            )
            if meanwhile is not None:
                await meanwhile(services)
            results = await work
            return Played(results, clock(), sent, target, spent)

        return jumping(main)

    return run


def per_minute(most, *, counts_all=False):
    """A server that answers so many calls in any minute, and refuses the others; some count those too."""
    counted = deque()

    def server(now, _):
        while counted and counted[0] <= now - 60:
            counted.popleft()
        is_refused = len(counted) >= most
        if counts_all or not is_refused:
            counted.append(now)
        return (LIMITED, 0.01) if is_refused else (None, 1.0)

    return server


def away(first, last, verdict=LOST):
    """A server that cannot be reached from one second to another."""
    return lambda now, _: (verdict, 0.001) if first <= now < last else (None, 1.0)


# --- rate limits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [None, 10])
def test_a_limit_for_a_minute_that_says_nothing_is_waited_out(play, concurrency, caplog):
    played = play(per_minute(3), 10, concurrency=concurrency)
    assert played.answered == 10
    assert played.seconds < 400  # 180 at best
    assert len(played.sent) < 40
    [told] = [record.getMessage() for record in caplog.records]
    assert told.startswith("'sut' is rate limited: its calls wait, each up to --call-timeout (600 s);")


def test_a_limit_that_lets_some_through_is_never_given_up(play):
    played = play(per_minute(3), 100)
    assert played.answered == 100
    assert played.seconds > 900  # of which no call may take more than 600


def test_a_server_that_counts_what_it_refuses_gets_room_to_answer(play):
    played = play(per_minute(3, counts_all=True), 10)
    assert played.answered == 10
    assert played.seconds < 600
    assert len(played.sent) < 40


def test_refusals_by_a_rate_limit_are_none_of_the_retries(play):
    left = [LIMITED] * 12
    played = play(lambda now, _: (left.pop() if left else None, 0.1), 1, max_retries=1)
    assert played.answered == 1
    assert len(played.sent) == 13
    left = [LIMITED, Retry(), LIMITED, Retry()]
    [error] = play(lambda now, _: (left.pop() if left else None, 0.1), 1, max_retries=1).results
    assert isinstance(error, RefusedError)


def test_without_retries_a_call_is_sent_once_whatever_refuses_it(play):
    for verdict in (LIMITED, LOST, LATE, Retry(after=math.inf, rate_limited=True)):
        played = play(lambda now, text, verdict=verdict: (verdict, 0.1), 2, max_retries=0)
        assert [type(result) for result in played.results] == [RefusedError, RefusedError]
        assert len(played.sent) == 2


def test_a_limit_that_lets_nobody_through_stops_the_sut(play):
    played = play(lambda now, _: (LIMITED, 0.1), 30, call_timeout=100)
    assert all(isinstance(result, RunStoppedError) for result in played.results)  # so that no item fails
    assert "'sut' is rate limited for longer than --call-timeout (100 s): Nothing at 127" in str(
        played.results[0]
    )
    assert "`modelgauge resume`" in str(played.results[0])
    assert 30 < played.seconds <= 101
    assert len(played.sent) < 60


def test_a_limit_that_one_call_alone_meets_fails_this_call(play):
    def server(now, text):
        return (LIMITED if text == "question 0" else None, 1.0)

    played = play(server, 300, call_timeout=100, concurrency=2)
    assert isinstance(
        played.results[0], RefusedError | CallTimeoutError
    )  # where its time ends within an attempt
    assert played.answered == 299


@pytest.mark.parametrize(("after", "told"), [(3600.0, "(600 s), until "), (math.inf, "(600 s): Nothing")])
def test_a_limit_that_says_it_lasts_longer_than_a_call_may_stops_the_sut_at_once(after, told, play):
    def server(now, text):
        """Question 1 is sent before others are answered, and refused after that."""
        is_limited = text == "question 1" or now > 3
        return (Retry(after=after, rate_limited=True), 2.0) if is_limited else (None, 1.0)

    played = play(server, 100, concurrency=4)
    assert played.seconds < 10
    assert 3 <= played.answered < 20
    stopped = [result for result in played.results if isinstance(result, BaseException)]
    assert all(isinstance(one, RunStoppedError) for one in stopped)
    assert told in str(stopped[0])


# --- a server that cannot be reached -----------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", [LOST, LATE])
@pytest.mark.parametrize("options", [{}, {"concurrency": 1}, {"concurrency": 20}, {"max_retries": 1}])
def test_a_server_that_starts_again_is_waited_for(verdict, options, play, caplog):
    played = play(away(3, 11, verdict), 100, **options)
    assert played.answered == 100
    tries = [one for one in played.sent if 3.1 <= one < 11]  # by one call after the other, at growing pauses
    assert 3 <= len(tries) <= 5
    [lost, back] = [record.getMessage() for record in caplog.records]
    assert "'sut' cannot be reached: Nothing at 127.0.0.1:1. Its calls wait for it until " in lost
    assert "'sut' can be reached again, after " in back
    [note] = [note for note in played.target.admission.notes() if "reached" in note]
    assert "its calls waited for it" in note


def test_a_call_that_finds_no_server_again_and_again_is_no_failure_of_its_own(play):
    played = play(away(0, 20), 1, max_retries=1)
    assert played.answered == 1
    assert len(played.sent) > 5


def test_calls_under_way_when_a_server_goes_away_do_not_let_others_try(play):
    """It has stopped listening, and still answers what it had accepted."""
    played = play(lambda now, _: (LOST, 0.001) if 3 <= now < 11 else (None, 6.0), 100, concurrency=20)
    assert played.answered == 100
    assert len([one for one in played.sent if 3 <= one < 11]) < 30


def test_a_call_that_takes_long_has_found_its_server(play):
    played = play(lambda now, _: (LOST, 0.001) if now < 8 else (None, 100.0), 20, concurrency=20)
    assert played.answered == 20
    assert played.seconds < 130  # and not 200: the others do not wait for the first answer


@pytest.mark.parametrize("options", [{}, {"concurrency": 1}, {"concurrency": 50}])
def test_a_server_that_never_answered_is_given_up_soon_and_nothing_is_lost(options, play, caplog):
    budget = Budget(max_calls=1000)
    played = play(lambda *_: (LOST, 0.001), 200, budget=budget, **options)
    assert 30 <= played.seconds < 31
    assert len(played.sent) < 12 + options.get("concurrency", 3)
    assert all(isinstance(result, RunStoppedError) for result in played.results)
    assert (
        str(played.results[0]) == "'sut' could not be reached for 30 s: Nothing at 127.0.0.1:1. "
        "Correct its address and run the command again; or start the server, and continue with `modelgauge resume`."
    )
    assert budget.spent.attempts == 0  # nothing was sent
    assert len(caplog.records) == 1


def test_a_server_that_has_answered_is_waited_for_as_long_as_a_call_may_take(play):
    played = play(away(3, math.inf), 100, call_timeout=200)
    assert 200 <= played.seconds < 210
    assert 0 < played.answered < 100
    stopped = {str(result) for result in played.results if isinstance(result, BaseException)}
    [message] = stopped
    assert "could not be reached for 200 s" in message
    assert "To wait longer, raise --call-timeout." in message


def test_nobody_waits_longer_than_the_call_may_take(play):
    assert play(lambda *_: (LOST, 0.001), 5, call_timeout=4).seconds < 5


@pytest.mark.parametrize("verdict", [LOST, LATE])
@pytest.mark.parametrize("concurrency", [1, 8])
def test_one_call_alone_that_finds_no_server_holds_up_no_others(verdict, concurrency, play):
    """An app that asks another machine for this question."""

    def server(now, text):
        return (verdict, 0.001) if text == "question 3" else (None, 1.0)

    played = play(server, 200, concurrency=concurrency, call_timeout=300)
    assert played.answered == 199
    assert isinstance(played.results[3], RefusedError)
    assert played.seconds < 300 / concurrency + 20


def test_refusals_of_every_other_call_lose_none(play):
    turns = [0]

    def server(now, text):
        turns[0] += 1
        return (LOST, 0.001) if turns[0] % 2 and now < 60 else (None, 1.0)

    played = play(server, 100, concurrency=4)
    assert played.answered > 90


@pytest.mark.parametrize("verdict", [LOST, LIMITED])
def test_nobody_waits_for_a_server_once_no_call_is_sent_any_more(verdict, play):
    async def interrupt(services):
        await asyncio.sleep(9)
        services.stop(RunStoppedError("The run was interrupted.", fix="Go on."))

    played = play(lambda *_: (verdict, 0.001), 50, meanwhile=interrupt, concurrency=20)
    assert played.seconds == pytest.approx(9, abs=0.1)
    assert {str(result) for result in played.results} == {"The run was interrupted. Go on."}


def test_other_errors_show_that_the_server_is_there_again(play):
    def server(now, text):
        return (LOST, 0.001) if now < 5 else (Retry(), 0.1)

    played = play(server, 20, concurrency=20)
    first = next(one for one in played.sent if one >= 5)
    assert len([one for one in played.sent if first <= one < first + 0.2]) > 15


def test_three_refused_keys_still_stop_a_sut(play):
    played = play(lambda *_: (Fatal(), 0.1), 50)
    assert len(played.sent) == 3
    assert "was stopped after 3 calls that cannot succeed: Nothing at 127" in str(played.results[-1])


# --- what is no connection ---------------------------------------------------------------------------------------


def of_client(name, *bases, cause=None):
    error = type(name, bases or (Exception,), {})("All attempts failed")
    error.__cause__ = cause
    return error


class ReasonedError(Exception):
    """As urllib's and urllib3's errors hold theirs."""

    def __init__(self, reason):
        super().__init__("see its reason")
        self.reason = reason


def of_asyncio(*numbers):
    """What it raises where a host has several addresses."""
    failed = ", ".join(f"[Errno {number}] Connect call failed ('::1', 9, 0, 0)" for number in numbers)
    return OSError(f"Multiple exceptions: {failed}")


REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (REFUSED, LOST),
        (OSError(errno.EHOSTUNREACH, "No route to host"), LOST),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), LOST),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), LOST),
        (of_client("ClientConnectorError", OSError), LOST),
        (of_client("ConnectError"), LOST),
        (of_client("APIConnectionError", cause=of_client("ConnectError")), LOST),
        (of_client("APIConnectionError", cause=OSError("All failed")), None),
        (ReasonedError(REFUSED), LOST),
        (of_asyncio(errno.ECONNREFUSED, errno.EHOSTUNREACH), LOST),
        (of_asyncio(errno.ECONNREFUSED, errno.EADDRNOTAVAIL), Retry()),
        (OSError("Multiple exceptions: of another kind"), Retry()),
        (ReasonedError("no route"), None),
        (OSError("Many", REFUSED), LOST),
        (ConnectionError(ReasonedError(of_client("NewConnectionError"))), LOST),
        (ExceptionGroup("several", [REFUSED, OSError()]), LOST),
        (of_client("ConnectTimeout"), LATE),
        (of_client("APITimeoutError", cause=of_client("ConnectTimeout")), LATE),
        (of_client("ConnectError", cause=ssl.SSLError(1, "wrong version number")), None),
        (of_client("ClientConnectorSSLError", type("ClientConnectorError", (ssl.SSLError,), {})), Retry()),
        (ConnectionResetError(errno.ECONNRESET, "reset"), Retry()),
        (OSError(errno.EADDRNOTAVAIL, "no port"), Retry()),
        (CallError("A judge's SUT failed.", fix="See why."), None),
    ],
)
def test_errors_of_clients_say_whether_a_server_was_found(error, verdict):
    assert classify(FunctionSUT("sut", str), error) == verdict


def test_an_error_that_is_its_own_cause_comes_to_an_end():
    error = ValueError("x")
    error.__cause__ = OSError("y", error)
    assert classify(FunctionSUT("sut", str), error) is None


def test_a_question_of_a_judge_that_found_no_server_is_not_the_judges_own():
    error = CallError("SUT 'x', which 'y' asked, failed.", fix="See why.")
    error.__cause__ = REFUSED
    assert classify(FunctionSUT("sut", str), error) is None


def test_a_limiter_learns_of_calls_that_may_have_met_a_full_queue():
    assert get_outcome(LOST, REFUSED) is Outcome.unreachable
    assert get_outcome(LATE, TimeoutError()) is Outcome.rate_limited
