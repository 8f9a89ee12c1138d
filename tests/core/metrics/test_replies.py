"""What counts as a reply, and what does not."""

import pytest

from modelgauge.metrics.replies import (
    STATEMENTS,
    UnusableReplyError,
    points_shape,
    read_reply,
    verdicts_shape,
)

ONE = verdicts_shape(("yes", "no"), 1, reasons=True)
TWO = verdicts_shape(("yes", "no"), 2, reasons=True)
GRADE = points_shape(tuple(range(11)), reasons=True)
YES = '{"verdicts": [{"item": 1, "verdict": "yes", "reason": "so"}]}'
NO = YES.replace("yes", "no")


@pytest.mark.parametrize(
    "text",
    [
        YES,
        f"Sure! Here is my judgement:\n```json\n{YES}\n```\nI hope {{this}} helps.",
        f"<think>{NO}</think>{YES}",
        f"{YES}\n{YES}",
        f'{{"thoughts": "first"}} {YES}',
        YES.replace('"yes"', '" YES "'),
        YES.replace('"item": 1, ', ""),
        YES.replace('"so"', "null"),
        YES.replace('"so"', '"a {brace} in it"'),
    ],
)
def test_one_thing_can_be_meant(text):
    (verdict,) = read_reply(text, ONE).verdicts
    assert verdict.verdict == "yes"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("<think>hm", "still thinking"),
        ("No, off-topic", "no JSON object"),
        ("yes", "no JSON object"),
        ('["yes"]', "no JSON object"),
        (f"{YES} {NO}", "contradict"),
        ('{"verdict": "yes"}', "verdicts: Field required"),
        ('{"verdicts": [{"verdict": "No, off-topic"}]}', "verdict"),
        ('{"verdicts": [{"verdict": "maybe"}]}', "verdict"),
        ('{"verdicts": [{"verdict": true}]}', "verdict"),
        ('{"verdicts": []}', "at least 1"),
        ('{"verdicts": [{"verdict": "yes"}, {"verdict": "yes"}]}', "at most 1"),
        ('{"verdicts": [{"item": 2, "verdict": "yes"}]}', "numbered"),
        (YES[:-2], "broken"),
        (YES.replace("}]}", "},]}"), "broken"),
        (f'{{"wrong": [{YES},], ', "broken"),
        ('{"verdicts": [{"verdict": "yes", "verdict": "no"}]}', "twice"),
        ('{"verdicts": NaN}', "no number"),
        ("{" * 50_000, "no JSON object"),
        ('{"a":' * 50_000, "broken"),
    ],
)
def test_what_cannot_be_used(text, problem):
    with pytest.raises(UnusableReplyError, match=problem):
        read_reply(text, ONE)


@pytest.mark.parametrize("said", ["11", "-1", "7.5", '"8"', "true", "null"])
def test_grades_are_whole_and_on_the_scale(said):
    with pytest.raises(UnusableReplyError, match="score"):
        read_reply(f'{{"score": {said}}}', GRADE)


def test_a_judge_that_repeats_the_form_has_said_nothing():
    for shape in (ONE, TWO, GRADE, STATEMENTS):
        with pytest.raises(UnusableReplyError):
            read_reply(shape.shown, shape)


def test_reasons_are_not_asked_for_where_they_are_not_wanted():
    assert "reason" in ONE.shown
    assert "reason" not in verdicts_shape(("yes", "no"), 1, reasons=False).shown
