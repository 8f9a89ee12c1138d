"""Each case of a pytest session reads settings again, so no answer from before a change is reused."""

from pytest_sessions import records

SOURCE = """
from modelgauge import FunctionSUT
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import Metric

class Bot:
    def __init__(self):
        self.level, self.asked = 0.5, 0

    def __call__(self, question):
        self.asked += 1
        return str(self.level)

class Judged(Metric):
    async def score(self, test_case):
        return float((await self.ask("judge", test_case.input)).completions[0].text)

BOT = Bot()
METRIC = Judged(model=FunctionSUT("bot", BOT, version=1))

def judge():
    assert_test(LLMTestCase(input="a", actual_output="b"), [METRIC])
    return BOT.asked

def test_once():
    assert [judge(), judge()] == [1, 1]

def test_changed():
    BOT.level = 1.0
    assert [judge(), judge()] == [2, 2]
"""


def test_changed_judge_is_asked_again_in_the_same_session(session, here):
    code, output = session(source=SOURCE)
    assert code == 0, output
    assert "'bot' has changed since it was made: function.level is now 1.0." in records(here)[0].notes


READ = """
from modelgauge.evals import LLMTestCase, assert_test
from modelgauge.metrics import Metric

class Options:
    reads = 0

    def __getattribute__(self, name):
        Options.reads += name == "__dict__"
        return super().__getattribute__(name)

class Constant(Metric):
    options = Options()

    def score(self, test_case):
        return 1.0

METRIC = Constant()

def reads(work):
    before = Options.reads
    work()
    return Options.reads - before

def test_reads():
    once = reads(METRIC.settings_held)
    assert once > 0
    assert reads(lambda: assert_test(LLMTestCase(input="a", actual_output="b"), [METRIC])) == 2 * once
"""


def test_case_reads_settings_as_it_begins_and_as_it_ends(session, here):
    code, output = session(source=READ)
    assert code == 0, output
