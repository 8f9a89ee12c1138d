"""What `run-sut --check` finds out of SUTs of every kind, and what it sends."""

from itertools import count

import pytest

import modelgauge as mg
from modelgauge.cli.checking import check

ABILITIES = ["answers", "usage", "several completions", "log-probabilities", "structured output", "seed"]


class Able(mg.PromptResponseSUT):
    """Heeds the options that it is made with, and counts what it is sent."""

    capabilities = (mg.ProducesPerTokenLogProbabilities, mg.ProducesStructuredOutput)

    def __init__(self, uid="able", heeds=("n", "top_logprobs", "schema", "seed", "usage"), fails=()):
        super().__init__(uid)
        self.heeds, self.fails, self.sent, self.numbers = heeds, fails, [], count()

    def translate_chat_prompt(self, prompt):
        options = prompt.options
        return {
            "n": options.num_completions,
            "top_logprobs": options.top_logprobs,
            "schema": options.response_schema,
            "seed": options.random,
            "max_tokens": options.max_tokens,
        }

    def evaluate(self, request):
        self.sent.append(request)
        asked = {name for name in request if request[name] is not None}
        if asked & {*self.fails} or "all" in self.fails:
            raise ValueError("that is refused")
        text = '{"city": "Paris"}' if "schema" in asked & {*self.heeds} else f"Paris {next(self.numbers)}"
        return "the same" if "seed" in asked & {*self.heeds} else text

    def translate_response(self, request, response):
        tops = mg.TopTokens(top_tokens=[mg.TokenProbability(token="Paris", logprob=-0.1)])
        given = (tops,) if request["top_logprobs"] and "top_logprobs" in self.heeds else None
        completion = mg.SUTCompletion(response, top_logprobs=given)
        usage = mg.Usage(input_tokens=7, output_tokens=1, cost_usd=0.5) if "usage" in self.heeds else None
        return mg.SUTResponse([completion] * (request["n"] or 1 if "n" in self.heeds else 1), usage)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []


def found(sut):
    done = check(sut, mg.SUTOptions())
    assert done.uid == sut.uid
    return done, {finding.ability: finding.is_there for finding in done.findings}


def test_what_there_is_is_found_by_six_requests():
    sut = Able()
    done, abilities = found(sut)
    assert abilities == dict.fromkeys(ABILITIES, True)
    assert (len(sut.sent), done.spent.attempts, done.spent.tokens, done.spent.cost_usd) == (6, 6, 48, 3.0)
    assert {one["max_tokens"] for one in sut.sent} == {256}
    assert "7 input tokens, 1 output tokens, 0.5 cost usd" in [finding.detail for finding in done.findings]


def test_what_is_ignored_is_not_there():
    done, abilities = found(Able(heeds=()))
    assert abilities == {"answers": True, **dict.fromkeys(ABILITIES[1:], False)}
    assert "1 of 2, by 1 call" in [finding.detail for finding in done.findings]


def test_what_is_refused_is_not_there_in_its_own_words():
    done, abilities = found(Able(fails=("n", "top_logprobs", "schema", "seed")))
    assert abilities == {**dict.fromkeys(ABILITIES, False), "answers": True, "usage": True}
    assert sum("that is refused" in finding.detail for finding in done.findings) == 4


def test_completions_one_by_one_are_there_too():
    sut = Able(heeds=())
    sut.completions = "auto"
    done, abilities = found(sut)
    assert abilities["several completions"]
    assert "2 of 2, by 2 calls" in [finding.detail for finding in done.findings]


def test_what_a_sut_does_not_declare_is_not_asked_for():
    sut = Able()
    sut.capabilities = ()
    done, abilities = found(sut)
    assert (abilities["log-probabilities"], abilities["structured output"]) == (None, None)
    assert done.spent.attempts == 4


def test_a_sut_that_does_not_answer_is_asked_once():
    sut = Able(fails=("all",))
    done, abilities = found(sut)
    assert abilities == {"answers": False}
    assert done.findings[0].detail == "that is refused"
    assert len(sut.sent) == 1


def test_the_models_are_listed_while_the_sut_is_open():
    events = []

    class Listing(Able):
        async def open(self):
            events.append("open")

        async def list_models(self):
            events.append("list")
            return ["a", "b"]

        async def close(self):
            events.append("close")

    done, abilities = found(Listing())
    assert abilities["list of models"]
    assert done.findings[-1].detail == "a, b"
    assert events[-3:] == ["open", "list", "close"]
    assert done.spent.attempts == 7


def test_a_list_that_cannot_be_had_leaves_the_rest():
    class Listing(Able):
        async def list_models(self):
            raise ValueError("no list")

    done, abilities = found(Listing())
    assert abilities == {**dict.fromkeys(ABILITIES, True), "list of models": False}
    assert done.findings[-1].detail == "ValueError: no list"


def test_an_answer_that_was_cut_off_says_nothing_of_structured_output():
    class Cut(Able):
        def translate_response(self, request, response):
            return mg.SUTResponse([mg.SUTCompletion("", finish_reason="length")])

    done, abilities = found(Cut())
    assert (abilities["answers"], abilities["structured output"]) == (True, None)
    assert "[cut off: raise --max-tokens]" in [finding.detail for finding in done.findings]


def test_sut_options_hold_for_all_questions():
    sut = Able()
    check(sut, mg.SUTOptions(max_tokens=9))
    assert {one["max_tokens"] for one in sut.sent} == {9}
