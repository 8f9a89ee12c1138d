"""Asking failed items again, and only these, with unusable answers in the cache replaced."""

import pytest

from modelgauge import (
    CompletionAnnotator,
    PromptResponseSUT,
    PromptResponseTest,
    SUTCompletion,
    SUTResponse,
    TestItem,
    resume,
    run_test,
)
from modelgauge.config.settings import load_settings
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import RecordError
from modelgauge.evals import LLMTestCase, evaluate
from modelgauge.metrics import Metric
from modelgauge.rerun.again import plan_resume


class Asking(PromptResponseTest):
    """Asks words, two of them in one item; the last is judged by a judge."""

    def __init__(self, uid="asking", annotators=None):
        super().__init__(uid)
        self.annotators = annotators or {}

    def make_test_items(self, dependencies):
        for text in ("fine", "refused", "raised", "blocked"):
            yield TestItem(text)
        yield TestItem(["fine too", "refused too"])

    def get_annotators(self):
        return self.annotators

    def measure_quality(self, item):
        return {"m": len(item.interactions)}


class Moody(PromptResponseSUT[str, str]):
    """Gives answers that cannot be used until `is_well`."""

    identity_excludes = frozenset({"asked", "is_well"})

    def __init__(self, uid="moody"):
        super().__init__(uid)
        self.asked, self.is_well = [], False

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        self.asked.append(request)
        if request == "raised" and not self.is_well:
            raise ValueError("no answer")
        return "well" if self.is_well else request

    def translate_response(self, request, response):
        if response.startswith("refused"):
            raise ValueError("refused")
        return SUTResponse([SUTCompletion(response, blocked=response == "blocked")])


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """A run with one scored item and four failures: its folder, the test and the SUT, which has forgotten all."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    test, sut = Asking(), Moody()
    record = run_test(test, sut, data_dir=tmp_path)
    assert (record.counts.scored, record.counts.failed, record.counts.blocked) == (1, 4, 1)
    sut.asked.clear()
    return RunFolder(tmp_path / "runs" / record.run_id), {"test": test, "sut": sut}, sut


def test_only_failed_items_are_asked_again(begun):
    folder, objects, sut = begun
    before = folder.journal.read_bytes()
    sut.is_well = True
    assert resume(folder.path, **objects)[0].counts.failed == 4
    [record] = resume(folder.path, retry_failed=True, **objects)
    assert (record.counts.items, record.counts.scored, record.counts.failed) == (5, 5, 0)
    assert sorted(sut.asked) == ["blocked", "raised", "refused", "refused too"]
    assert folder.journal.read_bytes().startswith(before)
    assert sorted(item.index for item in record.iter_items()) == [0, 1, 2, 3, 4]  # in the order of their ends
    sut.asked.clear()
    assert run_test(objects["test"], sut, data_dir=folder.path.parent.parent).counts.sut_calls.paid == 0


def test_answer_that_is_still_wrong_is_asked_once_and_replaced(begun):
    folder, objects, sut = begun
    [record] = resume(folder.path, retry_failed=True, **objects)
    assert (record.counts.scored, record.counts.failed) == (1, 4)
    assert sorted(sut.asked) == ["blocked", "raised", "refused", "refused too"]
    assert len(list(record.iter_items())) == 5
    sut.is_well = True
    [record] = resume(folder.path, retry_failed=True, **objects)
    assert record.counts.failed == 0
    sut.asked.clear()
    [record] = resume(folder.path, retry_failed=True, **objects)
    assert (record.counts.failed, sut.asked) == (0, [])


def test_plan_counts_failed_items_and_changes_nothing(begun):
    folder, objects, sut = begun
    before = {file: file.read_bytes() for file in folder.path.iterdir()}
    assert plan_resume(folder.path, **objects) == []
    [plan] = plan_resume(folder.path, retry_failed=True, **objects)
    assert (plan.items, plan.sut_calls.paid, plan.sut_calls.cached) == (4, 4, 1)
    assert (sut.asked, {file: file.read_bytes() for file in folder.path.iterdir()}) == ([], before)


def test_items_that_a_stopped_retry_did_not_reach_are_still_failed(begun):
    folder, objects, sut = begun
    sut.is_well = True
    paid = folder.read_record().counts.sut_calls.paid
    [record] = resume(folder.path, retry_failed=True, max_calls=paid + 2, concurrency=1, **objects)
    assert record.failure is not None
    assert record.counts.scored + record.counts.failed == record.counts.items == 5
    assert 0 < record.counts.failed < 4
    [record] = resume(folder.path, retry_failed=True, max_calls=100, **objects)
    assert (record.counts.scored, len(sut.asked)) == (5, 4)


def test_killed_retry_loses_nothing_and_pays_nothing_twice(begun):
    """As after a `kill -9`: the record is not written, and the last line of the journal is torn."""
    folder, objects, sut = begun
    failed = folder.journal.read_bytes()
    sut.is_well = True
    resume(folder.path, retry_failed=True, **objects)
    whole = folder.journal.read_bytes()
    lines = whole[len(failed) :].splitlines(keepends=True)
    for kept in range(len(lines)):
        folder.journal.write_bytes(failed + b"".join(lines[:kept]) + lines[kept][:20])
        folder.remove_record()
        sut.asked.clear()
        [record] = resume(folder.path, **objects)
        assert (record.counts.scored, record.counts.failed) == (1 + kept, 4 - kept)
        [record] = resume(folder.path, retry_failed=True, **objects)
        assert (record.counts.scored, record.counts.failed, sut.asked.count("refused")) == (5, 0, 0)
        assert sut.asked in ([], ["raised"]) or kept == 0


def test_record_is_gone_while_failed_items_are_asked_again(begun):
    folder, objects, sut = begun
    seen = []
    sut.is_well = True
    sut.evaluate = lambda request: seen.append((folder.path / "record.json").exists()) or request
    resume(folder.path, retry_failed=True, **objects)
    assert set(seen) == {False}
    assert folder.read_record().counts.items == 5


def test_workers_replace_unusable_answers_too(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    plugin = tmp_path / "moody_plugin.py"
    plugin.write_text(PLUGIN, encoding="utf-8")
    settings = load_settings(plugins=[str(plugin)], data_dir=tmp_path)
    record = run_test("words", "moody", data_dir=tmp_path, settings=settings)
    assert (record.counts.scored, record.counts.failed) == (1, 1)
    (tmp_path / "well").touch()
    [record] = resume(
        record.run_id,
        tmp_path,
        retry_failed=True,
        plugin_files=[str(plugin)],
        executor="processes",
        workers=1,
    )
    assert (record.counts.scored, record.counts.failed) == (2, 0)
    assert (tmp_path / "asked").read_text().split() == ["fine", "refused", "refused"]


PLUGIN = """
from pathlib import Path
from modelgauge import PromptResponseSUT, PromptResponseTest, SUTCompletion, SUTResponse, TestItem, hookimpl

HERE = Path(__file__).parent

class Words(PromptResponseTest):
    def make_test_items(self, dependencies):
        yield TestItem("fine")
        yield TestItem("refused")

    def measure_quality(self, item):
        return {"m": 1}

class Moody(PromptResponseSUT[str, str]):
    max_concurrency = 1

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        with open(HERE / "asked", "a") as file:
            file.write(request + " ")
        return "well" if (HERE / "well").exists() else request

    def translate_response(self, request, response):
        if response == "refused":
            raise ValueError("refused")
        return SUTResponse([SUTCompletion(response)])

@hookimpl
def modelgauge_register_tests(register):
    register("words", Words)

@hookimpl
def modelgauge_register_suts(register):
    register("moody", Moody)
"""


# --- annotators and judges ------------------------------------------------------------------------------------------


class Strict(CompletionAnnotator[int]):
    identity_excludes = frozenset({"asked", "is_well"})

    def __init__(self, uid="strict"):
        super().__init__(uid)
        self.asked, self.is_well = [], False

    def translate_request(self, prompt, completion):
        return prompt.prompt.text

    def annotate(self, request):
        self.asked.append(request)
        return request != "fine too" or self.is_well

    def translate_response(self, request, response):
        if not response:
            raise ValueError("no score")
        return 1


class Failing(Metric):
    def score(self, test_case):
        raise ValueError("no score")


class Unreadable(Metric):
    async def score(self, test_case):
        answer = await self.ask("judge", test_case.input)
        if answer.completions[0].text != "well":
            raise ValueError("cannot be read")
        return 1.0


@pytest.mark.parametrize("kind", ["annotator", "judge"])
def test_judgement_that_cannot_be_read_is_asked_again(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    sut, judge = Moody(), Moody("judge")
    sut.is_well = True
    annotator = Strict() if kind == "annotator" else Unreadable(model=judge)
    asked = annotator if kind == "annotator" else judge
    test = Asking(annotators={"a": annotator})
    record = run_test(test, sut, data_dir=tmp_path)
    assert record.counts.annotator_errors == (1 if kind == "annotator" else 5)
    before = len(sut.asked)
    asked.is_well = True
    asked.asked.clear()
    [record] = resume(record.run_id, tmp_path, test=test, sut=sut, retry_failed=True)
    assert (record.counts.scored, len(sut.asked)) == (5, before)
    assert sorted(set(asked.asked)) == sorted(asked.asked)
    if kind == "annotator":
        assert asked.asked == ["fine too"]


def test_run_of_given_outputs_has_nothing_to_ask_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    record = evaluate([LLMTestCase("a", "b")], [Failing()], data_dir=tmp_path, ignore_errors=True).record
    assert record.counts.failed == 1
    with pytest.raises(RecordError, match="there is nothing to resume"):
        resume(record.run_id, tmp_path, retry_failed=True)
