"""Tests, SUTs, annotators and metrics for the recorded runs of `recordings/`.

`record_runs.py` measures with them; the snapshots only read what was recorded.
"""

import os

import modelgauge as mg
from modelgauge.metrics import Metric
from modelgauge.stats import mean

HOSTILE = "\x1b[2J\u202e<script>alert(1)</script> ::error::x | =1+1, `a` *b* [c](d)"
CAPITALS = {
    "France": "Paris",
    "Japan": "Tokyo",
    "Peru": "Lima",
    "Kenya": "Nairobi",
    "Norway": "Oslo",
    "Chile": "Santiago",
    "Ghana": "Accra",
    "Iran": "Tehran",
    "Nepal": "Kathmandu",
    "Cuba": "Havana",
    "Egypt": "Cairo",
    "Spain": "Madrid",
}
CONTINENTS = {"France": "Europe", "Norway": "Europe", "Spain": "Europe", "Japan": "Asia", "Iran": "Asia"}


class Capitals(mg.PromptResponseTest):
    """Right and wrong answers, with a field to group by."""

    measurement_directions = {"accuracy": "higher"}

    def make_test_items(self, dependencies):
        for country, capital in CAPITALS.items():
            context = {"capital": capital, "continent": CONTINENTS.get(country, "elsewhere")}
            yield mg.TestItem(f"What is the capital of {country}?", context=context, id=country)

    def measure_quality(self, item):
        return {"accuracy": item.context["capital"] in item.text}


class Strict(Capitals):
    """A test with a threshold that most answers miss."""

    thresholds = {"accuracy": mg.Threshold(value=0.9)}


class Graded(mg.PromptResponseTest):
    """Scores between 0 and 1, a length that is better low, and items in clusters."""

    measurement_ranges = {"score": (0, 1)}
    measurement_directions = {"score": "higher", "length": "lower"}

    def make_test_items(self, dependencies):
        for number in range(20):
            prompt = mg.PromptWithContext(f"Rate {number}", source_id=f"source {number // 2}")
            yield mg.TestItem([prompt], context={"half": number // 10}, id=f"rating {number}")

    def measure_quality(self, item):
        number = int(item.test_item.prompts[0].prompt.text.split()[1])
        return {"score": (len(item.text) * 7 + number * 3) % 11 / 10, "length": len(item.text)}


class Dialogues(mg.PromptResponseTest):
    """Items of two prompts each, one of them a chat."""

    requires_sut_capabilities = (mg.AcceptsTextPrompt, mg.AcceptsChatPrompt)

    def make_test_items(self, dependencies):
        for name in ("Ada", "Ben", "Cai"):
            chat = mg.ChatPrompt(
                [
                    mg.ChatMessage(mg.ChatRole.system, "Be brief."),
                    mg.ChatMessage(mg.ChatRole.user, f"I am {name}."),
                    mg.ChatMessage(mg.ChatRole.assistant, f"Hello, {name}."),
                    mg.ChatMessage(mg.ChatRole.user, "Who am I?"),
                ]
            )
            yield mg.TestItem([f"Say {name}.", chat], context=name, id=name)

    def measure_quality(self, item):
        texts = [one.response.completions[0].completion.text for one in item.interactions]
        return {"both": all(item.test_item.context in text for text in texts)}


class Judged(Capitals):
    """Answers that an annotator judges; it fails for one of them."""

    def get_annotators(self):
        return {"polite": "politeness"}

    def measure_quality(self, item):
        return {
            "polite": item.annotation("polite")["polite"],
            "accuracy": item.context["capital"] in item.text,
        }


class Politeness(mg.CompletionAnnotator[dict]):
    def translate_request(self, prompt, completion):
        return completion.text

    def annotate(self, request):
        if "Oslo" in request:
            raise ValueError("The classifier takes no Norwegian.")
        return len(request) % 2 == 0

    def translate_response(self, request, response):
        return {"polite": response}


class Hostile(mg.PromptResponseTest):
    """Texts that attack terminals, pages, spreadsheets and logs."""

    def make_test_items(self, dependencies):
        yield mg.TestItem(HOSTILE, context={"note": HOSTILE}, id=f"id {HOSTILE}")
        yield mg.TestItem("word " * 60, id="long")
        yield mg.TestItem("日本語のテキスト、絵文字 👩‍👩‍👧 と العربية", id="wide 日本語")
        yield mg.TestItem("carriage\r\nreturn and\ttabs\x00", id="odd")

    def measure_quality(self, item):
        return {"length": len(item.text), "a | b": 1, "<b>": 0.5}


class Cut(Hostile):
    """A test whose items end with an error."""

    def make_test_items(self, dependencies):
        yield from super().make_test_items(dependencies)
        raise RuntimeError("The source of items is gone.")


class Unmeasured(Capitals):
    """A measurement that some items lack, and an item that cannot be measured."""

    def measure_quality(self, item):
        name = item.context["capital"]
        if name == "Cairo":
            raise KeyError("no score for Cairo")
        return {"accuracy": name in item.text} | ({"short": len(item.text) < 8} if "i" in name else {})


class Named(mg.PromptResponseTest):
    """A result of one's own, with groups."""

    def make_test_items(self, dependencies):
        for number in range(6):
            yield mg.TestItem(f"Count {number}", context=number, id=f"n{number}")

    def measure_quality(self, item):
        return {"value": item.context + len(item.text)}

    def aggregate_measurements(self, items):
        groups = items.group_by(lambda item: "even" if item.test_item.context % 2 == 0 else "odd")
        return {
            "total": float(items.column("value").sum()),
            "mean": mean(items, "value"),
            "parity": {name: mean(part, "value") for name, part in groups.items()},
        }


def answer(wrong=(), failing=(), killing=None):
    def respond(text):
        country = text.rstrip("?").split()[-1]
        if country == killing:
            os._exit(9)
        if country in failing:
            raise ValueError(f"I have never heard of {country}.")
        if country in wrong:
            return "Paris, I think."
        doubt = "?" * (len(wrong) > 2 and country.isdigit() and int(country) % 3 == 0)
        return CAPITALS.get(country, f"I say {country[:40]}{doubt}")

    return respond


class Rich(mg.PromptResponseSUT[str, str]):
    """Answers with reasoning, tokens, tool calls, usage and two completions."""

    capabilities = (mg.ProducesPerTokenLogProbabilities,)

    def translate_text_prompt(self, prompt):
        return prompt.text

    def translate_chat_prompt(self, prompt):
        return prompt.messages[1].text if len(prompt.messages) > 1 else prompt.messages[0].text

    def evaluate(self, request):
        return answer({"Peru"})(request) + " (Ada, Ben)"

    def translate_response(self, request, response):
        token = mg.TopTokens(top_tokens=[mg.TokenProbability(token=response[:1], logprob=-0.25)])
        first = mg.SUTCompletion(
            response,
            reasoning="Let me think.\nIt is well known.",
            top_logprobs=[token],
            tool_calls=[mg.ToolCall(name="look_up", input_parameters={"of": request[:20]}, output=[1, 2])],
            finish_reason="stop",
            metadata={"retrieval_context": ["an atlas"]},
        )
        return mg.SUTResponse([first], mg.Usage(input_tokens=12, output_tokens=5, cost_usd=0.00125))


class Counts(Metric):
    """The share of long words."""

    def score(self, test_case):
        words = test_case.actual_output.split()
        return sum(len(word) > 3 for word in words) / len(words)


@mg.hookimpl
def modelgauge_register_tests(register):
    for test in (Capitals, Strict, Graded, Dialogues, Judged, Hostile, Cut, Unmeasured, Named):
        register(test.__name__.lower(), test)
    register.group("world", ["capitals", "strict", "unmeasured"])


@mg.hookimpl
def modelgauge_register_annotators(register):
    register("politeness", Politeness)


@mg.hookimpl
def modelgauge_register_metrics(register):
    register("long_words", Counts)


@mg.hookimpl
def modelgauge_register_suts(register):
    register("good", mg.FunctionSUT, answer({"Cuba"}), version=1)
    register("poor", mg.FunctionSUT, answer({"Peru", "Kenya", "Chile", "Ghana", "Nepal", "Iran"}), version=1)
    register("flaky", mg.FunctionSUT, answer({"Peru"}, {"Kenya", "Chile", "Iran"}), version=1)
    register("broken", mg.FunctionSUT, answer((), set(CAPITALS)), version=1)
    register("deadly", mg.FunctionSUT, answer((), (), "Iran"), version=1)
    register("rich", Rich)
