"""A plan says what a run then pays, also where tests share requests and where items will fail."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelgauge import FunctionSUT, PromptWithContext, SUTOptions, TestItem
from modelgauge.errors import RunStoppedError


class Picky(FunctionSUT):
    """Makes no request of some prompts, and nothing of some answers."""

    def translate_text_prompt(self, prompt):
        if "bad" in prompt.text:
            raise ValueError(f"{prompt.text} is too long")
        return super().translate_text_prompt(prompt)

    def translate_response(self, request, response):
        if "odd" in str(request):
            raise KeyError("choices")
        return super().translate_response(request, response)


@pytest.fixture
def picky():
    return Picky("picky", lambda text: "yes", version=1)


def test_requests_that_tests_share_are_paid_once(make_test, make_sut, runner):
    tests = [make_test(["a", "b", "a"], uid="one"), make_test(["b", "c"], uid="two")]
    suts = [make_sut(uid="x"), make_sut(uid="y")]
    plans = runner().plan(tests, suts)
    assert [(plan.sut_calls.paid, plan.sut_calls.cached) for plan in plans] == [
        (2, 1),
        (2, 1),
        (1, 1),
        (1, 1),
    ]
    assert [plan.prompt_tokens for plan in plans] == [1, 1, 1, 1]  # of one or two characters
    records = runner().run(tests, suts)
    assert [record.counts.sut_calls.paid + record.counts.sut_calls.cached for record in records] == [
        3,
        3,
        2,
        2,
    ]
    assert sum(record.counts.sut_calls.paid for record in records) == sum(
        plan.sut_calls.paid for plan in plans
    )


@pytest.mark.parametrize(("caching", "version"), [(False, 1), (True, None)])
def test_nothing_is_shared_where_nothing_is_cached(make_test, make_annotator, runner, caching, version):
    class Priced(FunctionSUT):
        def expected_cost(self, request):
            return 0.5

    judged = {"judge": make_annotator(lambda *both: 1)}
    tests = [make_test(["a", "a"], uid="one", annotators=judged), make_test(["a"], uid="two")]
    sut = Priced("sut", lambda text: "yes", version=version)
    for _ in range(2):  # before and after a run
        plans = runner(caching=caching, repeats=2).plan(tests, sut)
        assert [(plan.items, plan.failing, plan.reasons) for plan in plans] == [(2, 0, ()), (1, 0, ())]
        assert [(plan.sut_calls.paid, plan.sut_calls.cached) for plan in plans] == [(4, 0), (2, 0)]
        assert [plan.annotator_calls.paid for plan in plans] == [4, 0]
        assert [plan.cost_usd for plan in plans] == [2.0, 1.0]
        runner(caching=caching, repeats=2).run(tests, sut)


def test_a_judge_reads_each_completion_that_is_asked_for(make_test, make_annotator, make_sut, runner):
    test = make_test(["a", "b"], annotators={"judge": make_annotator(lambda *both: 1)})
    (plan,) = runner(sut_options=SUTOptions(num_completions=3)).plan(test, make_sut())
    assert (plan.sut_calls.paid, plan.annotator_calls.paid) == (2, 6)


def test_repeats_of_another_number_are_not_known(make_test, make_sut, runner):
    test, sut = make_test(["a", "b"]), make_sut()
    runner(repeats=2).run(test, sut)
    for repeats, first, paid, cached in ((2, 0, 0, 4), (3, 0, 2, 4), (2, 1, 2, 2), (1, 2, 2, 0)):
        (plan,) = runner(repeats=repeats, first_repeat=first).plan(test, sut)
        assert (plan.sut_calls.paid, plan.sut_calls.cached) == (paid, cached)


def test_an_item_of_which_no_request_can_be_made_is_counted_and_the_others_are_planned(
    make_test, picky, runner, run
):
    two_prompts = TestItem([PromptWithContext("bad 1"), PromptWithContext("beside")])
    test = make_test(["fine", two_prompts, "bad 2", "bad 3", "bad 4", "also fine"])
    (plan,) = runner().plan(test, picky)
    assert (plan.items, plan.failing, plan.sut_calls.paid) == (6, 4, 3)
    assert plan.reasons == tuple(f"'picky': ValueError: bad {n} is too long" for n in (1, 2, 3))
    record = run(test, picky)
    assert (record.counts.sut_errors, record.counts.sut_calls.paid) == (4, 3)


def test_what_will_fail_after_a_known_answer_is_counted_too(
    make_test, make_annotator, picky, runner, run, judged_class
):
    class Fussy(judged_class):
        def translate_request(self, prompt, completion):
            if "7" in prompt.prompt.text:
                raise LookupError("no seven")
            return super().translate_request(prompt, completion)

    annotators = {"fussy": Fussy("fussy", lambda *both: 1), "plain": make_annotator(lambda *both: 1)}
    test = make_test(["odd", "7", "fine"], annotators=annotators)
    run(test, picky)
    (plan,) = runner().plan(test, picky)
    assert (plan.failing, plan.sut_calls.cached) == (2, 3)
    assert plan.reasons == ("'picky': KeyError: 'choices'", "'fussy': LookupError: no seven")
    record = run(test, picky)
    assert (record.counts.sut_errors, record.counts.annotator_errors) == (1, 1)


def test_only_the_chosen_annotators_are_planned(make_test, make_annotator, make_sut, runner, run):
    test = make_test(["a", "b"], annotators={name: make_annotator(lambda *both: 1, name) for name in "xy"})
    cls = type(test)

    class Choosing(cls):
        def choose_annotators(self, prompt):
            return self.choose(prompt.prompt.text)

    test.__class__ = Choosing
    test.choose = lambda text: ["x"] if text == "a" else ["x", "y"]
    sut = make_sut()
    (plan,) = runner().plan(test, sut)
    assert plan.annotator_calls.paid == 3
    assert run(test, sut).counts.annotator_calls.paid == 3

    def choose(text):
        return ["z"] if text == "a" else 1 / 0

    test.choose = choose
    (plan,) = runner().plan(test, sut)
    assert plan.failing == 2
    assert "choose_annotators named 'z'" in plan.reasons[0]
    assert "ZeroDivisionError" in plan.reasons[1]
    record = run(test, sut)
    assert (record.counts.annotator_errors, record.failure) == (2, None)


def test_an_interruption_while_annotators_are_planned_ends_the_planning(
    make_test, judged_class, make_sut, runner, run
):
    class Interrupted(judged_class):
        def translate_request(self, prompt, completion):
            raise KeyboardInterrupt

    sut = make_sut()
    run(make_test(["a"]), sut)
    with pytest.raises(KeyboardInterrupt):
        runner().plan(make_test(["a"], annotators={"judge": Interrupted("judge", max)}), sut)


def test_a_test_that_makes_no_items_is_an_error(make_test, make_sut, runner):
    def items():
        yield TestItem(["one"])
        raise OSError("the source is gone")

    with pytest.raises(RunStoppedError, match="Test 'test' makes no items: OSError: the source is gone"):
        runner().plan(make_test(items), make_sut())


def test_prices_that_fail_are_unknown_and_told(make_test, runner, caplog):
    class Priced(FunctionSUT):
        def expected_cost(self, request):
            return {"a": 0.5}[request]

    sut = Priced("priced", lambda text: "yes", version=1)
    assert runner().plan(make_test(["a"]), sut)[0].cost_usd == 0.5
    assert runner().plan(make_test(["a", "b"]), sut)[0].cost_usd is None
    assert "expected_cost of 'priced' failed" in caplog.text


texts = st.lists(st.sampled_from(["a", "b", "bad", "odd", "c"]), max_size=6)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=texts, second=texts, repeats=st.integers(1, 2))
def test_a_plan_is_what_a_run_pays(make_test, runner, tmp_path_factory, first, second, repeats):
    folder = tmp_path_factory.mktemp("data")
    suts = [Picky(uid, lambda text: "yes", version=1) for uid in ("x", "y")]
    tests = [make_test(first, uid="one"), make_test(second, uid="two")]
    for _ in range(2):  # with an empty cache, and with a full one
        made = runner(data_dir=folder, repeats=repeats)
        plans, records = made.plan(tests, suts), made.run(tests, suts)
        for plan, record in zip(plans, records, strict=True):
            counts = record.counts
            assert plan.items == counts.items
            assert (
                plan.sut_calls.paid + plan.sut_calls.cached == counts.sut_calls.paid + counts.sut_calls.cached
            )
            assert plan.failing <= counts.failed  # what fails with an answer is known once that is cached
        paid = sum(record.counts.sut_calls.paid for record in records)
        assert sum(plan.sut_calls.paid for plan in plans) == paid
    assert paid == 0
    assert [plan.failing for plan in plans] == [record.counts.failed for record in records]
