"""The runs that `latest` and `latest~N` refer to in a comparison."""

import logging

import pytest
from recorded import folder, item, record

from modelgauge import compare
from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.latest import ids_of_latest
from modelgauge.data.results import GIVEN, Counts
from modelgauge.errors import RecordError


@pytest.fixture
def made(tmp_path):
    """Make runs, each a second later than the one before it."""
    count = 0

    def made(run_id, *, sut="a", test="exam", items=2, invocation=None, named="i", **fields):
        nonlocal count
        count += 1
        kept = [item(place, item_id=f"{named}{place}", prompt=f"{named} {place}") for place in range(items)]
        folder(
            tmp_path,
            record(
                sut,
                *kept,
                run_id=run_id,
                invocation_id=invocation or run_id,
                run_timestamp=f"2026-01-31T12:00:{count:02}+00:00",
                test_uid=test,
                counts=Counts(items=items),
                **fields,
            ),
        )

    return made


@pytest.fixture
def meant(tmp_path):
    return lambda *names, **options: ids_of_latest(names, CompareOptions(data_dir=tmp_path, **options))


def test_runs_that_share_no_test_with_the_others_are_not_counted(made, meant, tmp_path):
    for run_id, test in [
        ("one", "exam"),
        ("two", "exam"),
        ("quiz", "quiz"),
        ("three", "exam"),
        ("poll", "poll"),
    ]:
        made(run_id, test=test)
    assert meant("latest~1", "latest") == {"latest": "three", "latest~1": "two"}
    assert meant("latest~2", "latest~1", "latest") == {
        "latest": "three",
        "latest~1": "two",
        "latest~2": "one",
    }
    assert [*compare("latest~1", "latest", data_dir=tmp_path).baseline.runs.values()] == ["two"]


def test_latest_beside_an_id_is_the_newest_that_can_be_compared_with_that_run(made, meant):
    for run_id, test in [("q1", "quiz"), ("one", "exam"), ("q2", "quiz"), ("two", "exam"), ("three", "exam")]:
        made(run_id, test=test)
    assert meant("q1", "latest") == {"latest": "q2"}
    assert meant("latest", "one") == {"latest": "three"}
    assert meant("one", "latest~1") == {"latest~1": "two"}
    assert meant("latest~1", "three") == {"latest~1": "two"}  # the run that is named counts too


def test_one_common_test_of_two_invocations_is_enough(made, meant):
    for test in ("exam", "quiz"):
        made(f"all-{test}", test=test, invocation="all")
    made("poll", test="poll")
    made("again", test="quiz")
    assert meant("latest~1", "latest") == {"latest": "again", "latest~1": "all"}


def test_an_interrupted_run_counts_if_it_has_items(made, meant):
    made("one")
    made("some", cancelled=True)
    made("none", items=0, cancelled=True)
    assert meant("latest~1", "latest") == {"latest": "some", "latest~1": "one"}


def test_sessions_of_pytest_count_if_they_share_test_cases(made, meant):
    for run_id, file in [("a1", "a"), ("b1", "b"), ("a2", "a")]:
        made(run_id, sut=GIVEN, test=GIVEN, named=file)
    assert meant("latest~1", "latest") == {"latest": "a2", "latest~1": "a1"}
    assert meant("b1", "latest") == {"latest": "b1"}


def test_with_a_baseline_sut_latest_is_the_newest_invocation_that_measured_it_and_another(made, meant):
    for sut in "ab":
        made(f"ab-{sut}", sut=sut, invocation="ab")
    for sut in "bc":
        made(f"bc-{sut}", sut=sut, invocation="bc")
    made("alone", sut="a")
    assert meant("latest", baseline_sut="a") == {"latest": "ab"}
    assert meant("latest", baseline_sut="b") == {"latest": "bc"}
    assert meant("latest", baseline_sut="wrong") == {"latest": "alone"}


def test_a_damaged_run_is_reported_and_not_counted(made, meant, tmp_path, caplog):
    for run_id in ("one", "two", "three"):
        made(run_id)
    (tmp_path / "runs" / "three" / "record.json").write_text("{", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert meant("latest~1", "latest") == {"latest": "two", "latest~1": "one"}
    assert "record.json is not JSON" in caplog.text


def test_any_runs_are_counted_where_other_tests_are_allowed(made, meant):
    made("one")
    made("poll", test="poll")
    assert meant("latest~1", "latest", allow="test") == {"latest": "poll", "latest~1": "one"}


def test_the_message_names_two_runs_that_can_be_compared(made, tmp_path):
    for run_id, test in [("one", "exam"), ("two", "exam"), ("poll", "poll")]:
        made(run_id, test=test)
    for names in (("latest~2", "latest"), ("poll", "one")):
        with pytest.raises(RecordError, match="The newest that can be compared are one and two") as caught:
            compare(*names, data_dir=tmp_path)
        assert "no test in common" in str(caught.value)
    made("other", test="other")
    with pytest.raises(RecordError, match="There is no 'latest~4'"):
        compare("latest~4", "latest", data_dir=tmp_path)
