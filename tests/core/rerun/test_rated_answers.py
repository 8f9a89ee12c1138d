"""`rescore --ratings`: what people said of a run's answers comes back as annotations."""

import pytest

from modelgauge import FunctionSUT, PromptResponseTest, SUTCompletion, TestItem, run_test
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import InputFileError, UsageError
from modelgauge.rerun.again import rescore
from modelgauge.runs.ratings import Rating, RatingsFile, digest_answer, first_answer
from modelgauge.runs.recorded_run import recorded_run


class Asked(PromptResponseTest):
    def make_test_items(self, dependencies):
        for text in ("a", "b", "fails", "d"):
            yield TestItem(text, context={"target": text})

    def measure_quality(self, item):
        return {"upper": item.text.isupper()}


def answer(text):
    if text == "fails":
        raise ValueError("no answer")
    return text.upper()


@pytest.fixture
def ran(tmp_path):
    """A run of four items, one of which has no answer; and what rates one of its answers."""
    record = run_test(Asked("asked"), FunctionSUT("shouting", answer), data_dir=tmp_path)
    folder = RunFolder(tmp_path / "runs" / record.run_id)
    items = {one.test_item.prompts[0].prompt.text: one for one in recorded_run(folder).items().records()}

    def rate(text, score, rater="ann", **more):
        item = items[text]
        answers = more.pop("answers", digest_answer(first_answer(item)))
        RatingsFile.of(folder).add(
            Rating(item_id=item.test_item.id, answers=answers, rater=rater, score=score, **more)
        )

    return folder, rate, tmp_path


def test_ratings_come_back_as_annotations_and_what_lacks_one_fails(ran):
    folder, rate, data_dir = ran
    rate("a", 5, reason="quite right")
    rate("a", 2, "ben", reason="<b>rude</b>")
    rate("b", 4)
    rate("b", None, "ben")
    rate("d", 1, answers=digest_answer([SUTCompletion("another answer")]))
    [record] = rescore(folder.run_id, data_dir, ratings=True, max_calls=0)
    assert record.counts.sut_errors == 1
    assert record.counts.annotator_errors == 1
    assert record.counts.scored == 2
    human, ann, ben = (record.result[name] for name in ("human", "human (ann)", "human (ben)"))
    assert (human.value, human.n, human.bounds) == (3.75, 2, (2.375, 4.375))
    assert (ann.value, ann.n) == (4.5, 2)
    assert (ben.value, ben.n, ben.bounds) == (2, 1, (1.25, 4.25))
    first = next(recorded_run(RunFolder(folder.path.parent / record.run_id)).items().records())
    assert first.test_item.context == {"target": "a"}
    annotation = first.interactions[0].response.completions[0].annotations["human"]
    assert annotation["breakdown"] == {"ann": 5, "ben": 2}
    assert annotation["reason"] == "ann: quite right\nben: <b>rude</b>"
    assert record.directions["human"] == "higher"
    assert record.test_uid == "human_ratings"


def test_a_run_without_ratings_and_two_ways_to_measure_are_refused(ran):
    folder, rate, data_dir = ran
    rate("a", None)
    with pytest.raises(InputFileError, match="Nobody has rated"):
        rescore(folder.run_id, data_dir, ratings=True)
    with pytest.raises(UsageError, match="or by ratings"):
        rescore(folder.run_id, data_dir, ratings=True, test=Asked("asked"))
