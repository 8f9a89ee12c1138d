"""Cases that a forked child of a session's process judges are cases of the session."""

import os

import pytest
from pytest_sessions import records

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="Nothing forks here.")

SOURCE = """
import os
import signal
from modelgauge import FunctionSUT
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import Metric

class Agreed(Metric):
    async def score(self, test_case):
        answer = await self.ask("judge", test_case.input)
        return float(answer.completions[0].text)

judge = FunctionSUT("judge", lambda question: "1", version=1)

def judged(question):
    assert_test(LLMTestCase(question, "a"), [Agreed(model=judge)])

def test_before():
    judged("before")

def test_forks():
    child = os.fork()
    if not child:
        signal.alarm(30)  # a child that waits for a loop of its parent would never end
        code = 1
        try:
            judged("in the child")
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    judged("in the parent")
"""


def test_case_of_forked_child_counts_once_beside_that_of_its_parent(session, here):
    code, output = session("--disable-warnings", source=SOURCE, use_cache=False)
    assert code == 0, output
    assert "3 of 3 test cases passed" in output
    (record,) = records(here)
    names = {
        item.test_item.prompts[0].prompt.text: item.test_item.id.partition("::")[2]
        for item in record.iter_items()
    }
    assert names == {"before": "test_before", "in the parent": "test_forks", "in the child": "test_forks~2"}
    assert (record.counts.scored, record.spent.attempts) == (3, 3)
