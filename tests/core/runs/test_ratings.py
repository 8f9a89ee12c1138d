"""Ratings of people: which count, and that none is lost that was confirmed."""

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from modelgauge.errors import InvalidDataError, RecordError
from modelgauge.files.whole import append_line
from modelgauge.runs.ratings import Rating, RatingsFile, Undo

RATES_FOR_EVER = """
import sys
from pathlib import Path
from itertools import count
from modelgauge.runs.ratings import Rating, RatingsFile

file = RatingsFile(Path(sys.argv[1]))
for n in count():
    file.add(Rating(item_id=str(n), answers=["a"], rater="ann", score=3, reason="because " * 500))
    print(n, flush=True)
"""


def rating(item, score, rater="ann"):
    return Rating(item_id=item, answers=["a"], rater=rater, score=score)


@pytest.fixture
def file(tmp_path):
    return RatingsFile(tmp_path / "ratings" / "run.jsonl")


def test_of_each_rater_and_item_the_last_rating_counts_that_was_not_undone(file):
    first, second = rating("1", 2), rating("1", 4)
    for line in (first, rating("1", 5, "ben"), rating("2", None), second):
        file.add(line)
    assert [(one.item_id, one.rater, one.score) for one in file.in_force()] == [
        ("1", "ben", 5), ("2", "ann", None), ("1", "ann", 4),
    ]  # fmt: skip
    file.add(Undo(undoes=second.id))
    assert {one.score for one in file.in_force()} == {2, 5, None}
    file.add(Undo(undoes=first.id))
    assert {one.score for one in file.in_force()} == {5, None}


def test_a_killed_server_loses_no_confirmed_rating_and_leaves_no_half_one(file):
    confirmed = 0
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", RATES_FOR_EVER, str(file.path)], stdout=subprocess.PIPE, text=True
        ) as server:
            lines = [server.stdout.readline() for _ in range(20)]
            server.send_signal(signal.SIGKILL)
            lines += server.stdout.readlines()
        confirmed = max(confirmed, len(lines))
        assert {one.item_id for one in file.in_force()} >= {str(n) for n in range(confirmed)}
    with file.path.open("ab") as torn:
        torn.write(b'{"kind":"rating","item_id":"half')
    before = len(file.in_force())
    file.add(rating("after", 1))
    assert len(file.in_force()) == before + 1
    assert b"half" not in file.path.read_bytes()


def test_threads_and_lines_longer_than_a_block_do_not_mix(file):
    texts = [str(n) * 70_000 for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: append_line(file.path, json.dumps(text).encode()), texts))
    with file.path.open("ab") as torn:
        torn.write(b"x" * 200_000)
    append_line(file.path, b'"end"')
    assert sorted(map(json.loads, file.path.read_text().splitlines())) == [*sorted(texts), "end"]


def test_what_is_no_rating_is_named_with_its_line(file):
    file.add(rating("1", 2))
    with file.path.open("ab") as damaged:
        damaged.write(b"[]\n")
    with pytest.raises(RecordError, match=r"run\.jsonl, line 2 is not a rating"):
        file.in_force()
    for score in (0, 6, 2.5, True):
        with pytest.raises(InvalidDataError):
            rating("1", score)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"kind": "rating"', "Expecting ',' delimiter"),
        (b"not JSON", "Expecting value"),
        (b'"\xff"', "can't decode byte 0xff"),
    ],
)
def test_line_that_is_no_json_is_named_with_reason(file, line, why):
    file.add(rating("1", 2))
    with file.path.open("ab") as damaged:
        damaged.write(line + b"\n")
    file.add(rating("2", 3))
    with pytest.raises(RecordError, match=rf"run\.jsonl, line 2 is not a rating: .*{why}.*Correct the line"):
        file.in_force()
