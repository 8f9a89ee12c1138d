"""Merging what two people made of one version: what both did is kept, and what they cannot both have done is told."""

from hypothesis import given
from hypothesis import strategies as st

from modelgauge_workbench.datasets.merging import merged

BASE = [{"input": text, "expected_output": text.upper()} for text in "abcd"]


def test_changes_of_other_cells_and_rows_are_both_kept():
    theirs = [{**BASE[0], "comments": "theirs"}, BASE[1], BASE[3], {"input": "new"}]
    mine = [{**BASE[0], "expected_output": "mine"}, BASE[2], BASE[3], {"input": "own"}, {"input": "new"}]
    found = merged(BASE, theirs, mine, [0, 2, 3, None, None])
    assert found.conflicts == []
    assert found.rows == [
        {"input": "a", "expected_output": "mine", "comments": "theirs"},
        BASE[3],
        {"input": "own"},
        {"input": "new"},
    ]


def test_where_they_contradict_each_other_both_are_shown():
    theirs = [
        {**BASE[0], "custom_column_key_values": {"x": 1, "y": 2}},
        {**BASE[1], "comments": "theirs"},
        BASE[3],
    ]
    mine = [{**BASE[0], "custom_column_key_values": {"x": 3}}, {**BASE[2], "comments": "mine"}, BASE[3]]
    found = merged(BASE, theirs, mine, [0, 2, 3])
    assert found.rows == [
        {**BASE[0], "custom_column_key_values": {"x": 3, "y": 2}},
        mine[1],
        BASE[3],
        theirs[1],
    ]
    assert [tuple(conflict) for conflict in found.conflicts] == [
        (0, "custom:x", None, 1, 3),
        (1, "", BASE[2], None, mine[1]),
        (3, "", BASE[1], theirs[1], None),
    ]


ROWS = st.lists(st.sampled_from("abcdef"), unique=True).map(lambda texts: [{"input": text} for text in texts])


@given(ROWS, ROWS)
def test_who_changed_nothing_gets_what_the_other_did(base, other):
    by_text = {row["input"]: place for place, row in enumerate(base)}
    origins = [by_text.get(row["input"]) for row in other]
    assert merged(base, base, other, origins) == (other, [], origins)
    theirs = merged(base, other, base, range(len(base)))
    assert theirs.conflicts == []
    assert sorted(row["input"] for row in theirs.rows) == sorted(row["input"] for row in other)
