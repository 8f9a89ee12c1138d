"""What costs next to nothing is asked each time, and its answers go the way of all others in everything else."""

import asyncio
import signal

import pytest

from modelgauge import Score, load_record
from modelgauge.engine.calls.policy import CallPolicy


@pytest.fixture
def scored(make_test, judged_class):
    """`scored(function)`: a test whose cheap annotator gives the scores of a function; counted in `asked`."""

    class Scorer(judged_class):
        is_cheap = True

        async def annotate(self, request) -> Score:
            self.asked.append(request)
            return await super().annotate(request)

    def make(function):
        scorer = Scorer("scorer", function)
        scorer.asked = []
        test = make_test(3, annotators={"score": scorer})
        test.measure = lambda item: {"score": item.annotation("score", Score).value}
        return test, scorer.asked

    return make


def test_it_is_asked_again_where_others_come_from_the_cache(scored, make_sut, run):
    sut = make_sut()
    test, asked = scored(lambda _prompt, _text: Score(0.5, "because"))
    assert run(test, sut).counts.annotator_calls.paid == 3
    again = run(test, sut)
    assert again.counts.annotator_calls.paid == 3
    assert (again.counts.sut_calls.paid, again.counts.sut_calls.cached) == (0, 3)
    assert len(asked) == 6
    assert again.result["score"].value == 0.5


def test_a_run_that_asks_nothing_else_opens_no_cache(make_test, make_sut, judged_class, run, run_folder):
    class Scorer(judged_class):
        is_cheap = True

    sut = make_sut()
    sut.is_cheap = True
    test = make_test(1, annotators={"one": Scorer("one", lambda _prompt, _text: 1)})
    assert run(test, sut).counts.scored == 1
    assert not (run_folder / "cache").exists()
    test.annotators = {"one": judged_class("one", lambda _prompt, _text: 1)}
    assert run(test, sut).counts.scored == 1
    assert (run_folder / "cache" / "cache.db").exists()


def test_a_run_whose_calls_cannot_be_cached_opens_no_cache_and_says_so(make_test, make_sut, run, run_folder):
    sut = make_sut()
    sut.cacheable = False
    (note,) = run(make_test(1), sut).notes
    assert note.startswith("Not cached: 'sut' ")
    assert not (run_folder / "cache").exists()


def test_secrets_stay_out_of_its_answers(scored, make_sut, runner):
    test, _ = scored(lambda _prompt, _text: Score(0.5, "the key is hunter-two-and-three"))
    with_secret = runner()
    with_secret.secrets.redactor.add("app.key", "hunter-two-and-three")
    (record,) = with_secret.run([test], [make_sut()])
    reasons = [
        one.interactions[0].response.completions[0].get_annotation("score", Score).reason
        for one in record.test_item_records
    ]
    assert reasons == ["the key is [secret app.key]"] * 3
    (clean,) = with_secret.run([scored(lambda _prompt, _text: Score(0.5, "a hunter"))[0]], [make_sut()])
    completion = clean.test_item_records[0].interactions[0].response.completions[0]
    assert completion.get_annotation("score", Score) == Score(0.5, "a hunter")


def test_an_interrupt_in_the_middle_of_it_leaves_a_record_and_the_item_for_a_resume(
    make_test, make_sut, judged_class, run, run_folder, resumed, accounted
):
    class AtOnce(judged_class):
        is_cheap = True

        async def annotate(self, request):
            return self.function(*request)

    interrupted = []

    def annotate(prompt, _text):
        if prompt == "question 5" and not interrupted:
            interrupted.append(prompt)
            signal.raise_signal(signal.SIGINT)
            raise KeyboardInterrupt  # as Ctrl-C does where code holds up the loop
        return 1

    sut, test = make_sut(), make_test(10, annotators={"one": AtOnce("one", annotate)})
    with pytest.raises(KeyboardInterrupt):
        run(test, sut)
    [folder] = run_folder.glob("runs/*")
    record = load_record(folder.name, run_folder)
    assert record.cancelled
    assert record.failure is None
    assert record.counts.failed == 0
    assert record.counts.scored == len(list(record.iter_items())) < 10
    whole = accounted(resumed(record, test, sut))
    assert whole.counts.scored == 10
    assert len(sut.asked) == len(set(sut.asked)) == 10


@pytest.mark.parametrize("max_retries", [0, 2])
@pytest.mark.parametrize("waits", [True, False])
def test_a_lost_connection_is_tried_again_whether_it_ever_waits_or_not(
    waits, max_retries, make_test, make_sut, judged_class, run, slept
):
    """An `async def` may call a client that blocks."""

    class Waiting(judged_class):
        is_cheap = True

    class AtOnce(Waiting):
        async def annotate(self, request):
            return self.function(*request)

    asked = []

    def annotate(prompt, _text):
        asked.append(prompt)
        if prompt == "question 1" or asked.count(prompt) < 3:
            raise ConnectionError("reset")
        return 1

    annotator = (Waiting if waits else AtOnce)("one", annotate)
    record = run(make_test(2, annotators={"one": annotator}), make_sut(), max_retries=max_retries)
    assert [asked.count(f"question {n}") for n in range(2)] == [max_retries + 1] * 2
    assert record.counts.scored == (1 if max_retries else 0)
    assert [failure.error_type for failure in record.test_item_exceptions] == [
        "ConnectionError"
    ] * record.counts.failed


def test_what_only_computes_is_known_by_its_code_and_by_its_author(judged_class):
    class AtOnce(judged_class):
        is_cheap = True

        async def annotate(self, request):
            return 1

    class Dear(AtOnce):
        is_cheap = False

    class Knowing(AtOnce):
        def classify_error(self, error):
            return None

    class Waiting(judged_class):
        is_cheap = True

    made = [cls("one", None) for cls in (AtOnce, Dear, Knowing, Waiting)]
    assert [CallPolicy.of(one).is_immediate for one in made] == [True, False, False, False]


def test_one_that_cancels_the_task_it_runs_in_fails_its_item_alone(
    make_test, make_sut, judged_class, run, accounted
):
    class AtOnce(judged_class):
        is_cheap = True

        async def annotate(self, request):
            if request[0] == "question 1":
                asyncio.current_task().cancel()
            return 1

    record = accounted(run(make_test(4, annotators={"one": AtOnce("one", None)}), make_sut()))
    assert record.failure is None
    assert record.counts.scored == 3
    assert [failure.error_type for failure in record.test_item_exceptions] == ["CallError"]
