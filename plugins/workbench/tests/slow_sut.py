"""A plugin for tests, which copy it. Its SUT answers once, and then when there is a file `go` beside it; it takes no
chats, for which its test asks."""

import time
from pathlib import Path

from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse, hookimpl
from modelgauge.interfaces.sut import AcceptsChatPrompt
from modelgauge.testing import FakeTest

HERE = Path(__file__).parent


class Slow(PromptResponseSUT[str, str]):
    """Waits."""

    max_concurrency = 1

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        del request
        while (HERE / "first").exists() and not (HERE / "go").exists():
            time.sleep(0.05)
        (HERE / "first").touch()
        return "yes"

    def translate_response(self, request, response):
        del request
        return SUTResponse(completions=(SUTCompletion(text=response),))


@hookimpl
def modelgauge_register_tests(register):
    register("slow_chat", FakeTest, items=["hello"], requires=[AcceptsChatPrompt])


@hookimpl
def modelgauge_register_suts(register):
    register("slow", Slow)
