"""A plugin: judges under the names of models that documents use, which follow one rule and need no network.

The rule: a text with the word "wrong" in it is bad. It is the judge of the snippets, in this process and in those
of pytest.
"""

import json
import re

from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse, hookimpl

MODELS = ("gpt-4", "gpt-4.1", "gpt-4o", "o1")


def reply(question):
    """What is asked shows in the form of the reply; what is judged stands between marks."""
    key = re.search(r"with the key ([0-9a-f]{16})", question)[1]
    parts = re.findall(rf"<material {key} (\S+)>\n(.*?)\n</material {key} ", question, re.DOTALL)
    form = question.rpartition("in this form:")[2]
    if '"statements"' in form:
        return {"statements": [one.strip() for _, text in parts for one in text.split(".") if one.strip()]}
    if '"steps"' in form:
        return {"steps": ["Read it.", "Look for the word."]}
    if '"score"' in form:
        return {"score": 10 - 3 * sum("wrong" in text for _, text in parts), "reason": "By the rule."}
    items = [text for name, text in parts if name.startswith("item")]
    verdicts = [{"verdict": "no" if "wrong" in item else "yes", "reason": "By the rule."} for item in items]
    return {"verdicts": [{"item": place, **one} for place, one in enumerate(verdicts, 1)]}


class ScriptedJudge(PromptResponseSUT[str, str]):
    """Answers by the rule."""

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        return json.dumps(reply(request))

    def translate_response(self, request, response):
        return SUTResponse([SUTCompletion(response)])


@hookimpl
def modelgauge_register_suts(register):
    for model in MODELS:
        register(model, ScriptedJudge)
