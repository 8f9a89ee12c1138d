"""Parts of messages: counts agree with their words; long texts are cut, and never within what could be a secret."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.wording.phrases import beginning, counted, ends, first_few, parse_time, quoted

SECRET = "sk-proj_A1/b2+c3=.d4%e5:f6~g7"


def test_words_agree_with_their_count():
    assert [counted(n, "item") for n in (0, 1, 2, 1200)] == ["0 items", "1 item", "2 items", "1,200 items"]
    with_verbs = [counted(n, "entry is", "entries are") for n in (0, 1, 2)]
    assert with_verbs == ["0 entries are", "1 entry is", "2 entries are"]


@pytest.mark.parametrize("shown", [beginning, quoted, ends])
def test_a_text_that_is_not_long_is_shown_whole(shown):
    assert shown("ab cd", 5) == (repr("ab cd") if shown is quoted else "ab cd")


def test_the_beginning_of_a_long_one_ends_with_a_word():
    assert beginning("one two three", 9) == "one two …"
    assert quoted("one two three", 9) == "'one two '…"
    assert beginning("one two three", 7) == "one two…"
    assert beginning("見よ、これは長い文である", 5) == "見よ、これ…"


@given(st.integers(1, 200), st.integers(1, 150), st.sampled_from([" ", '"', "\n", "(", "é"]))
def test_a_secret_is_shown_whole_or_not_at_all(before, most, around):
    text = f"{'é ' * before}{around}{SECRET}{around}{' é' * 200}"
    for shown in (beginning, quoted, ends):
        short = shown(text, most)
        assert SECRET in short or not any(SECRET[at : at + 6] in short for at in range(len(SECRET) - 5))


def test_the_ends_of_a_page_say_how_much_is_left_out():
    text = "begin " + "x " * 1000 + "end"
    head, _, tail = ends(text, 20).partition(" […")
    left_out, _, tail = tail.partition(" characters…] ")
    assert (head, tail) == ("begin x x ", " x x x end")
    assert len(head) + int(left_out.replace(",", "")) + len(tail) == len(text)


def test_one_endless_word_is_cut():
    assert beginning("x" * 10_000, 5000) == "x" * 5000 + "…"
    assert ends("x" * 30_000, 10_000) == f"{'x' * 5000} […20,000 characters…] {'x' * 5000}"


def test_of_many_names_the_first_few_are_listed_with_how_many_more_there_are():
    assert first_few([], 2) == ""
    assert first_few(["a", "b"], 2) == "a, b"
    assert first_few(["x"] * 1_203, 3) == "x, x, x and 1,200 more"


def test_a_time_is_a_date_or_hours_or_days_ago():
    assert parse_time("2026-01-31") == datetime(2026, 1, 31, tzinfo=UTC)
    assert parse_time("2026-01-31T12:00+02:00") == datetime(2026, 1, 31, 10, tzinfo=UTC)
    for text, ago in (("12h", timedelta(hours=12)), ("7d", timedelta(days=7))):
        assert abs(datetime.now(UTC) - ago - parse_time(text)) < timedelta(minutes=1)
    with pytest.raises(ValueError, match="7w"):
        parse_time("7w")
