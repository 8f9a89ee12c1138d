"""Several completions of a prompt by SUTs that give one a call: what is asked, paid, kept and planned."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier
from time import sleep

import pytest

from modelgauge import (
    PromptResponseSUT,
    Runner,
    SUTCompletion,
    SUTOptions,
    SUTResponse,
    TestItem,
    TextPrompt,
    Usage,
)
from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.responses import ResponseCache
from modelgauge.config.settings import load_settings
from modelgauge.errors import DefinitionError, SingleCompletionError
from modelgauge.plugins.discovery import Plugins

FOUR = SUTOptions(num_completions=4)


class OneACall(PromptResponseSUT):
    """Gives one completion a call: says so, ignores how many were asked for, or refuses the option."""

    identity_excludes = frozenset({"how", "completions", "fails", "sent", "numbers"})

    def __init__(self, uid="one_a_call", how="ignores", completions="auto", fails=()):
        super().__init__(uid)
        self.how, self.completions, self.fails = how, completions, set(fails)
        self.sent = []
        self.numbers = count()

    @classmethod
    def like(cls, other):
        """Another object for the same server."""
        made = cls(other.uid, other.how)
        made.sent, made.numbers = other.sent, other.numbers
        return made

    def translate_text_prompt(self, prompt):
        options = prompt.options
        return {"text": prompt.text, "n": options.num_completions, "seed": options.random}

    async def evaluate(self, request):
        self.sent.append(request)
        await asyncio.sleep(0.001)
        number = next(self.numbers)
        if number in self.fails:
            raise ValueError(f"call {number} fails")
        n = request["n"] or 1
        if self.how == "refuses" and n > 1:
            raise SingleCompletionError("n must be 1.", fix="Ask once for each.")
        return [f"answer {number}"] * (n if self.how == "gives" else 1)

    def translate_response(self, request, response):
        usage = Usage(input_tokens=3, output_tokens=2)
        return SUTResponse([SUTCompletion(one) for one in response], usage)


def texts(record):
    return [
        [completion.completion.text for completion in interaction.response.completions]
        for item in record.test_item_records
        for interaction in item.interactions
    ]


def asking(make_test, number=3, options=FOUR):
    items = [TestItem([TextPrompt(f"question {place}", options)]) for place in range(number)]
    return make_test(items, measure=lambda item: {"right": True})


@pytest.mark.parametrize("completions", ["auto", "many_calls"])
@pytest.mark.parametrize("how", ["ignores", "refuses"])
def test_each_completion_is_a_call_of_its_own_and_none_is_paid_twice(how, completions, make_test, run):
    sut = OneACall(how=how, completions=completions)
    record = run(asking(make_test), sut, concurrency=1)
    assert record.counts.scored == 3
    assert [len(set(text)) for text in texts(record)] == [4, 4, 4]
    assert record.counts.sut_calls.paid == 12
    refused = how == "refuses" and completions == "auto"
    assert len(sut.sent) == 12 + refused
    assert [note for note in record.notes if "one completion a call" in note] == (
        ["'one_a_call' gives one completion a call, so a call was made for each that a prompt asks for."]
        if completions == "auto"
        else []
    )
    assert sum(one["n"] is not None for one in sut.sent) == (completions == "auto")
    again = OneACall(how=how, completions=completions)
    warm = run(asking(make_test), again)
    assert texts(warm) == texts(record)
    assert (warm.counts.sut_calls.paid, warm.counts.sut_calls.cached, again.sent) == (0, 12, [])


def test_the_usage_is_the_sum(make_test, run):
    record = run(asking(make_test, 1), OneACall())
    usage = record.test_item_records[0].interactions[0].response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (12, 8, None)
    assert record.spent.tokens == 20


def test_how_many_came_is_read_with_the_request_that_was_sent(make_test, run):
    class Copies(OneACall):
        """Gives the one text as often as the request says."""

        def translate_response(self, request, response):
            return SUTResponse([SUTCompletion(response[0])] * (request["n"] or 1))

    sut = Copies()
    record = run(asking(make_test), sut)
    assert (len(sut.sent), [len(text) for text in texts(record)]) == (3, [4, 4, 4])


def test_a_sut_that_gives_all_is_asked_once(make_test, run):
    sut = OneACall(how="gives")
    record = run(asking(make_test), sut)
    assert (record.counts.sut_calls.paid, len(sut.sent)) == (3, 3)
    assert [len(text) for text in texts(record)] == [4, 4, 4]
    one_a_call = OneACall(completions="many_calls")  # what was paid at once is not paid again one by one
    assert texts(run(asking(make_test), one_a_call)) == texts(record)
    assert one_a_call.sent == []


def test_what_was_found_out_is_not_found_out_again(make_test, run):
    run(asking(make_test, 1), OneACall(how="refuses"))
    sut = OneACall(how="refuses")
    record = run(asking(make_test, 5), sut)
    assert (record.counts.sut_calls.paid, len(sut.sent)) == (16, 16)


def test_runs_that_find_it_out_at_once_pay_each_completion_once(make_test, run, monkeypatch):
    """As two processes do, on a slow disk: each run has leases of its own."""
    sut, start, put = OneACall(), Barrier(2), ResponseCache.put_many
    monkeypatch.setattr(ResponseCache, "put_many", lambda cache, entries: (sleep(0.3), put(cache, entries)))

    def measured(items):
        start.wait(60)
        return texts(run(make_test(items, measure=lambda item: {"right": True}), OneACall.like(sut)))

    items = [TestItem([TextPrompt(f"question {place}", FOUR)]) for place in range(8)]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(measured, (items, items[::-1]))
    assert len(sut.sent) == 8 * 4
    assert first == second[::-1]


def test_without_a_cache_it_is_found_out_in_each_run(make_test, run):
    sut = OneACall()
    record = run(asking(make_test), sut, caching=False, concurrency=1)
    assert (record.counts.sut_calls.paid, len(sut.sent)) == (12, 12)
    assert [len(set(text)) for text in texts(record)] == [4, 4, 4]


def test_calls_are_numbered_so_that_repeats_and_more_completions_share_them(make_test, run):
    run(asking(make_test, 1, SUTOptions()), OneACall(), repeats=3)
    sut = OneACall()
    record = run(asking(make_test, 1), sut, repeats=2)
    assert record.counts.scored == 1
    assert (record.counts.sut_calls.paid, record.counts.sut_calls.cached) == (5 + 1, 2)
    later = OneACall()
    run(asking(make_test, 1, SUTOptions(num_completions=8)), later)
    assert later.sent == []


def test_pass_at_k_over_repeats_of_several_completions(make_test, run):
    sut = OneACall(how="refuses")
    test = asking(make_test, 2)
    record = run(test, sut, repeats=3, reduce="pass@2")
    assert record.counts.scored == 2
    assert len({text for one in texts(record) for text in one}) == 2 * 3 * 4


def test_equal_prompts_at_once_share_what_the_first_call_brought(make_test, run):
    prompts = [TextPrompt("the same", FOUR)] * 5
    sut = OneACall()
    test = make_test([TestItem(prompts)], measure=lambda item: {"right": True})
    record = run(test, sut)
    assert len(sut.sent) == 4
    assert len({tuple(text) for text in texts(record)}) == 1


def test_seeds_differ_from_completion_to_completion(make_test, run):
    sut = OneACall(completions="many_calls")
    run(asking(make_test, 1, FOUR.replaced(random=7)), sut)
    assert [one["seed"] for one in sut.sent] == [7, 8, 9, 10]
    named = OneACall("named", completions="many_calls")
    run(asking(make_test, 1, FOUR.replaced(random="seed")), named)
    assert [one["seed"] for one in named.sent] == ["seed", "seed 1", "seed 2", "seed 3"]


def test_what_was_paid_before_one_call_failed_is_kept(make_test, run):
    failing = OneACall(fails={2})
    record = run(asking(make_test, 1), failing)
    assert record.counts.sut_errors == 1
    sut = OneACall()
    assert run(asking(make_test, 1), sut).counts.scored == 1
    assert len(sut.sent) == 1


@pytest.mark.parametrize("calls", range(1, 14))
def test_a_run_that_is_stopped_goes_on_without_paying_twice(calls, make_test, run, resumed):
    sut = OneACall()
    record = run(asking(make_test), sut, max_calls=calls, concurrency=2)
    more = resumed(record, asking(make_test), sut, max_calls=100)
    assert more.counts.scored == 3
    assert len(sut.sent) == 12


def test_a_plan_counts_a_call_for_each_completion(make_test, run_folder, run):
    runner = Runner(data_dir=run_folder, plugins=Plugins(), settings=load_settings())

    def plan(sut, number=3):
        [one] = runner.plan([asking(make_test, number)], [sut])
        return one.sut_calls.paid, one.sut_calls.cached

    assert plan(OneACall(completions="many_calls")) == (12, 0)
    assert plan(OneACall()) == (3, 0)
    run(asking(make_test, 2), OneACall())
    assert plan(OneACall()) == (4, 8)
    assert plan(OneACall(completions="many_calls")) == (4, 8)


def test_a_refusal_of_a_sut_that_does_not_say_auto_fails_the_item(make_test, run):
    record = run(asking(make_test, 1), OneACall(how="refuses", completions="one_call"))
    [failed] = record.test_item_exceptions
    assert failed.error_type == "SingleCompletionError"


def test_another_word_for_completions_is_refused(make_test, run):
    with pytest.raises(DefinitionError, match="completions of 'one_a_call' is 'several'"):
        run(asking(make_test, 1), OneACall(completions="several"))


def test_what_was_found_out_is_kept_no_later_than_the_answer_that_showed_it(make_test, run, run_folder):
    run(asking(make_test, 1), OneACall())
    cache = ResponseCache(FolderBackend(run_folder / "cache"))
    roles = [json.loads(entry.key.parts)[1] for entry in cache.entries()]
    cache.close()
    cache.leave()
    assert roles == ["completions", *["sut"] * 4]
