"""The file of a run's totals: its text, older and damaged ones, and sums over sessions."""

import json

import pytest

from modelgauge.data.results import CallCounts, TotalUsage
from modelgauge.engine.bookkeeping.tally import Tally
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.totals import Totals, TotalsFile, read_totals
from modelgauge.errors import RecordError

USED = TotalUsage(
    sut_calls=CallCounts(paid=3, cached=1),
    annotator_calls=CallCounts(paid=2),
    unkept=1,
    attempts=6,
    tokens=70,
    cost_usd=0.25,
    seconds=1.5,
)
TEXT = (
    b'{"ended":true,"seconds":1.5,"sut_calls":{"paid":3,"cached":1},"annotator_calls":{"paid":2,"cached":0},'
    b'"judge_calls":{"paid":0,"cached":0},"attempts":6,"tokens":70,"cost":0.25,"unkept":1,"known":9,"waiting":"why"}'
)


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def test_totals_have_the_text_of_earlier_versions(folder):
    totals = Totals(used=USED, ended=True, known=9, waiting="why")
    assert totals.model_dump_json().encode() == TEXT
    folder.totals.write_bytes(TEXT)
    assert read_totals(folder) == totals


def test_fields_of_other_versions_are_ignored(folder, recwarn):
    folder.totals.write_text('{"seconds": 2.5, "tokens": 4, "carbon": 1}', encoding="utf-8")
    assert read_totals(folder) == Totals(used=TotalUsage(seconds=2.5, tokens=4))
    assert not recwarn.list


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"tokens": -1}', "tokens: Input should be greater than or equal to 0"),
        ('{"cost": -0.5}', "greater than or equal to 0"),
        ('{"attempts": "6"}', "attempts: Input should be a valid integer"),
        ('{"sut_calls": {"paid": -1}}', "sut_calls.paid: Input should be greater"),
        ('{"known": -1}', "known: Input should be greater than or equal to 0"),
        ("[]", "Totals: Input should be"),
    ],
)
def test_damaged_totals_name_the_field(folder, text, problem):
    folder.totals.write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match="is damaged") as caught:
        read_totals(folder)
    assert problem in caught.value.problem


def test_written_totals_include_earlier_sessions(folder):
    tally = Tally(before=USED)
    file = TotalsFile(folder, tally, lambda: (12, "w" * 200))
    file.open()
    tally.sut_calls.paid += 2
    tally.judge_calls.cached += 4
    tally.sut_calls.unkept["'a' with a secret"] += 1
    tally.attempts, tally.tokens, tally.cost = 2, 30, 0.5
    file.write(ended=True)
    file.close()
    written = json.loads(folder.totals.read_bytes())
    assert written["seconds"] == round(written["seconds"], 3) >= 1.5
    totals = read_totals(folder)
    session = totals.used - USED
    assert session.replaced(seconds=0.0) == TotalUsage(
        sut_calls=CallCounts(paid=2),
        judge_calls=CallCounts(cached=4),
        unkept=1,
        attempts=2,
        tokens=30,
        cost_usd=0.5,
    )
    assert (totals.ended, totals.known, totals.waiting) == (True, 12, "w" * 160)
