"""What a page holds of a comparison: pairs of items beside the items themselves, and words for all that is drawn."""

import base64
import gzip
import json
import re

from comparisons import cannot_tell, comparison, row
from recorded import item, record

from modelgauge.comparison.compare import compare_runs
from modelgauge.data.estimates import Estimate
from modelgauge.documents.document import TableBlock, Text, get_words
from modelgauge.reports import write_comparison
from modelgauge.reports.comparisons.tables import ranks
from modelgauge.reports.item_texts import setting_text
from modelgauge.reports.pages.comparison_view import compared_runs, comparison_page
from modelgauge.runs.recorded_run import RecordedRun

DIRECTION = {"directions": {"right": "higher"}, "ranges": {"right": (0.0, 1.0)}}


def _page(found, **options):
    pieces = []
    write_comparison(found, pieces.append, **options)
    return "".join(pieces)


def _block(page, name):
    text = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', page)[1]
    return json.loads(gzip.decompress(base64.b64decode(text)))[0]


def _runs(*records):
    return [RecordedRun(record) for record in records]


def test_pairs_are_places_in_runs_with_their_values():
    runs = _runs(
        record("a", item(0), item(1, 0.0), item(2), item(3), **DIRECTION),
        record("b", item(0, 0.0, item_id="i2"), item(1, None), item(2, 1.0, item_id="i0"), **DIRECTION),
        record("c", item(0), **DIRECTION),
    )
    page = _page(compare_runs(runs))
    assert _block(page, "compare-0") == {
        "measurement": "right",
        "sign": 1,
        "sides": [
            {"label": "a", "run": "0", "places": [0, 1, 2]},
            {"label": "b", "run": "1", "places": [2, 1, 0]},
            {"label": "c", "run": "2", "places": [0, -1, -1]},
        ],
        "before": [1.0, 0.0, 1.0],
        "after": [1.0, None, 0.0],
    }
    assert [one["label"] for one in _block(page, "compare-1")["sides"]] == ["a", "c", "b"]
    assert "Are b and c better than a on exam?" in page


def test_a_comparison_from_json_has_a_page_without_items():
    page = _page(comparison(row(), cannot_tell(test="bbh")))
    assert "Is B better than A on 2 tests?" in page
    assert 'aria-label="+4.3 points, from +1.5 to +7.1"' in page
    assert "Results of each system" not in page
    assert "Items side by side" not in page
    assert "#compare=" not in page


def test_one_matrix_ranks_systems_by_all_measurements():
    """A measurement that says whether a score passed has no column of its own."""
    names = ("right", "right.passed", "length")
    found = {name: Estimate(value, 40) for name, value in zip(names, (0.5, 0.5, 7.0), strict=True)}
    better = {"directions": dict.fromkeys(names, "higher")}
    runs = _runs(
        *(
            record(
                sut,
                *(item(at, dict.fromkeys(names, mean + at % 2)) for at in range(40)),
                result=found,
                **better,
            )
            for sut, mean in zip("abc", (2.0, 9.0, 5.0), strict=True)
        )
    )
    comparison = compare_runs(runs)
    assert len(comparison.leaderboard) == len(names)
    matrix, *differences = _tables(comparison_page(comparison, runs))
    assert [column.head for column in matrix.columns] == ["System", "right", "length"]
    ranked = comparison.leaderboard[0].systems
    assert matrix.columns[0].cells == [system.system for system in ranked]
    assert [get_words(cell) for cell in matrix.columns[1].cells] == [
        f"0.5rank {ranks(system)}" for system in ranked
    ]
    assert not any(column.head == "rank" for table in differences for column in table.columns)


def test_a_leaderboard_says_which_items_it_is_over():
    runs = _runs(*(record(name, *[item(place) for place in range(3)], **DIRECTION) for name in "abc"))
    page = _page(compare_runs(runs))
    assert "3 items that all systems have." in page
    runs = _runs(*(run.record for run in runs[:2]), record("c", item(0), item(1, None), item(2), **DIRECTION))
    assert "2 to 3 items of each system, compared in pairs." in _page(compare_runs(runs))


def _tables(blocks):
    return [block for block in blocks if isinstance(block, TableBlock)]


def test_which_way_is_better_is_said_by_the_direction():
    for direction, sides in {
        "higher": ("A better", "B better"),
        "lower": ("B better", "A better"),
        None: ("B lower", "B higher"),
    }.items():
        (table,) = _tables(comparison_page(comparison(row(direction=direction)), []))
        assert [column.sides for column in table.columns if column.sides] == [sides]


def test_the_best_is_marked_where_it_can_be_told_from_the_next():
    values = [item(place, float(place % 2)) for place in range(40)]
    better = [item(place) for place in range(40)]
    tests = ("exam", "quiz")
    said = {**DIRECTION, "result": {"right": Estimate(0.5, 40)}}
    runs = _runs(*(record("a", *values, run_id=f"a-{test}", test_uid=test, **said) for test in tests))
    runs += _runs(record("b", *better, run_id="b-exam", **said))
    runs += _runs(record("b", *values, run_id="b-quiz", test_uid="quiz", **said))
    found = compare_runs(runs)
    assert compared_runs(found) == runs
    matrix = _tables(comparison_page(found, runs))[0]
    assert "the drawing shows right from 0 to 1." in matrix.caption
    values = {column.head: [cell.beside for cell in column.cells] for column in matrix.columns[1:]}
    assert values == {
        "a": [(Text("0.5", "#run=0"),), (Text("0.5", "#run=1"),)],
        "b": [
            (Text("0.5", "#run=2", "best"), Text(" (best)", look="hidden")),
            (Text("0.5", "#run=3"),),
        ],
    }


def test_secrets_are_taken_out_of_names():
    page = _page(comparison(row()), redact=lambda text: text.replace("gsm8k", "***"))
    assert "Is B better than A on ***?" in page
    assert "gsm8k" not in page.partition("<script")[0]


def test_page_shows_no_internals_and_no_options_of_commands():
    rows = [row(test=f"test {place}", n_failed=place) for place in range(5)]
    page = _page(comparison(*rows)).partition("<script")[0]
    assert "test 4" in page
    assert "--json" not in page
    assert "more kind" not in page
    assert setting_text({"model": {"$opaque": "shop.Model"}, "sizes": {"$tuple": [1, 2]}}) == (
        '{"model": "shop.Model", "sizes": [1, 2]}'
    )
