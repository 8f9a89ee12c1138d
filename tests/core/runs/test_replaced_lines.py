"""Lines of a journal that later lines replace, which no reader counts."""

import pytest

from modelgauge.bundles.run_checks import check_run
from modelgauge.engine.earlier_run import RecordedItems
from modelgauge.engine.run_files.journal import blank_line, make_line
from modelgauge.engine.run_files.lines import JournalLines
from modelgauge.runs.recorded_run import recorded_run


@pytest.fixture
def run(folder, record, scored, failure):
    """A run in which item 0 failed and was asked again, and a case with a provisional index got another."""
    provisional = scored(5_000_000).replaced(test_item=scored(1).test_item)
    lines = [failure(0), provisional, scored(2), scored(1, replaces=(5_000_000,)), scored(0, replaces=(0,))]
    made = folder()
    made.write_manifest(record().model_dump(mode="json", exclude={"counts", "result"}), str)
    made.journal.write_bytes(b"".join(make_line(line, "t", str)[1] for line in lines))
    return made


def test_readers_see_each_item_once(run):
    recorded = recorded_run(run)
    assert [item.index for item in recorded_run(run).items().records()] == [0, 1, 2]
    assert sorted(item.index for item in run.items()) == [0, 1, 2]
    assert (recorded.record.counts.scored, recorded.record.counts.failed) == (3, 0)
    assert list(recorded.failures()) == []
    assert recorded.items().failed.tolist() == [False, False, False]
    assert len(recorded.frame().values("x")) == 3
    check = check_run(run)
    assert (check.items, check.lines) == (3, {2: 3, 1: 4, 0: 5})
    assert {finding.problem for finding in check.findings} == {"it has no answer"}
    again = RecordedItems(run.journal)
    again.read()
    assert len(again) == 3


def test_line_counts_until_it_is_replaced(run):
    lines = run.journal.read_bytes().splitlines(keepends=True)
    for number in range(1, len(lines) + 1):
        run.journal.write_bytes(b"".join(lines[:number]))
        ids = [item.test_item.id for item in recorded_run(run).items().records()]
        assert sorted(ids) == ["i0", "i1", "i2"][: len(ids)]
        assert len(ids) == min(number, 3)


def test_line_that_replaces_its_own_index_keeps_later_lines(folder, scored):
    lines = [scored(0), scored(0, replaces=(0,)), scored(1), scored(0, replaces=(0, 7))]
    run = folder()
    run.journal.write_bytes(b"".join(make_line(line, "t", str)[1] for line in lines))
    assert [line.number for line in JournalLines(run.journal)] == [3, 4]


@pytest.mark.parametrize("replaces", ['"0"', "[[0], null, true, 1e3]", "{}", f"[{2**70}]"])
def test_nonsense_in_replaces_replaces_nothing(folder, scored, replaces):
    run = folder(scored(0))
    nonsense = scored(1).model_dump_json().replace('"index":1,', f'"index":1,"replaces":{replaces},')
    with run.journal.open("a", encoding="utf-8") as file:
        file.write(f"{nonsense}\n")
    assert [line.number for line in JournalLines(run.journal)] == [1, 2]


def test_appended_line_does_not_change_a_reading_that_has_begun(folder, scored):
    run = folder(scored(0), scored(1))
    reading = iter(JournalLines(run.journal))
    next(reading)
    with run.journal.open("ab") as file:
        file.write(make_line(scored(2, replaces=(0,)), "t", str)[1])
    assert [line.number for line in reading] == [2]


def test_blank_line_is_an_item_without_texts(folder, scored):
    whole = make_line(scored(4_000_000), "t", str)[1]
    blank = blank_line(4_000_000, len(whole))
    run = folder()
    run.journal.write_bytes(blank)
    (item,) = run.items()
    assert len(blank) == len(whole)
    assert (item.index, item.test_item.prompts[0].prompt.text, item.message) == (4_000_000, "", "")
