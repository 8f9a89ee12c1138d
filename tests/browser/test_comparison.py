"""The page of a comparison as a person uses it."""

import re
from typing import ClassVar

import pytest
from recorded import folder, item, record

from modelgauge import PromptWithContext, TestItem, run_test
from modelgauge.cli.main import cli
from modelgauge.testing import FakeSUT, FakeTest

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202egnp.exe & {{7*7}}"


class _WorkCounter(FakeTest):
    measurement_directions: ClassVar = {"accuracy": "higher"}


def _test(name="counting", number=60):
    items = [
        TestItem(
            [PromptWithContext(f"Think well.\n\nQuestion {place}: how many?")],
            context={"target": str(place), "subject": "history" if place % 3 else "physics"},
            id=f"q{place}",
        )
        for place in range(number)
    ]

    def measure(item):
        right = item.text.split()[-1] == item.context["target"]
        return {"accuracy": right, "length": float(len(item.text))}

    return _WorkCounter(name, items, measure)


def _sut(uid, knows, said="I think that the number is"):
    """Answer the questions for which `knows` is true; to question 7 there is no answer."""

    def answer(prompt):
        number = int(re.search(r"Question (\d+)", prompt.text)[1])
        if number == 7:
            raise ValueError("no answer")
        return f"{said} {number if knows(number) else 'unknown'}"

    return FakeSUT(uid, answer)


OLD = _sut("old", lambda number: number % 2 == 0)  # right on 30
NEW = _sut("new", lambda number: number > 9)  # right on 50: lost are 0, 2, 4, 6 and 8, won 25


@pytest.fixture
def page(report, visit, tmp_path, once):
    once(tmp_path, lambda: report((_test(), OLD), (_test(), NEW)))
    return visit((tmp_path / "page.html").as_uri())


def _listed(page):
    return page.locator("output:visible").inner_text()


def _choose(page, name, value):
    page.locator(f"select[name={name}]:visible").select_option(value)


def _open(page, place=0):
    page.locator("tr[data-place]:visible").nth(place).click()
    page.locator(".item h2:visible").wait_for()
    return page.locator(".item:visible")


def test_the_first_screen_has_question_answer_and_differences(page):
    assert page.locator("h1:visible").inner_text() == "Is new better than old on counting?"
    assert "Baseline: old" in page.locator("header:visible").inner_text()
    assert (
        page.locator(".verdict")
        .first.inner_text()
        .startswith("accuracy: new is better than old by 34 points")
    )
    tables = page.get_by_role("region", name="Differences")
    assert tables.count() == 2  # points and characters have no axis in common
    row = tables.first.locator("tbody tr").first
    assert row.locator("th").inner_text() == "accuracy"
    bar = row.get_by_role("img")
    assert bar.get_attribute("aria-label").startswith("+33.9 points, from +1")
    zero, dot = bar.locator(".mark").bounding_box(), bar.locator(".dot").bounding_box()
    assert zero["x"] < dot["x"]
    assert "25/5/29" in row.inner_text()
    assert "better" in tables.first.locator("thead").inner_text()
    assert "1 failed (1 in both)" in page.locator(".facts").first.inner_text()


def test_numbers_lead_to_the_items_behind_them(page):
    page.get_by_role("region", name="Differences 1").get_by_role("link", name="25").click()
    page.locator("output:text-is('25 of 60')").wait_for()
    assert {"won"} == set(page.locator("tr[data-place] td:last-child").all_inner_texts())
    _choose(page, "show", "lost")
    assert _listed(page) == "5 of 60"
    _choose(page, "show", "failed")
    assert page.locator("tr[data-place]").inner_text().endswith("failed → failed\tfailed")
    _choose(page, "show", "different")
    page.get_by_label("subject").first.select_option("physics")
    assert _listed(page) == "10 of 60"
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("q30")
    assert _listed(page) == "0 of 60"
    assert "show=different" in page.url


def test_items_are_sorted_by_what_was_lost(page):
    _choose(page, "sort", "lost")
    outcomes = page.locator("tr[data-place] td:last-child").all_inner_texts()
    assert outcomes[:6] == [*["lost"] * 5, "equal"]
    _choose(page, "sort", "won")
    assert page.locator("tr[data-place] td:last-child").first.inner_text() == "won"


def test_an_item_opens_side_by_side_with_what_differs_marked(page, visit):
    _choose(page, "show", "lost")
    for key in ("Escape", "j", "Enter"):
        page.keyboard.press(key)
    item = page.locator(".item:visible")
    item.locator("h2").wait_for()
    assert item.locator("h2").inner_text() == "Item 3 q2"
    assert item.locator(".verdict").inner_text() == "lost: accuracy 1 → 0"
    old, new = item.locator(".side").all()
    assert old.locator("h3").first.inner_text() == "old"
    assert old.bounding_box()["y"] == new.bounding_box()["y"]
    assert old.locator("del").all_inner_texts() == ["2"]
    assert new.locator("ins").all_inner_texts() == ["unknown"]
    assert "accuracy = 0" in new.inner_text()
    page.keyboard.press("ArrowRight")
    page.locator(".item h2:has-text('q4')").wait_for()
    other = visit(page.url)
    other.locator(".item h2").wait_for()
    assert other.locator(".item h2").inner_text() == "Item 5 q4"
    new.locator("h3 a").click()
    page.locator('.run[data-run="1"]').wait_for()
    page.locator(".run:visible .item h2").wait_for()
    assert page.locator(".run:visible .item h2").inner_text() == "Item 5 q4"


def test_a_failed_item_opens_with_its_error(page):
    _choose(page, "show", "failed")
    assert "Failed at sut (new): ValueError" in _open(page).inner_text()


def test_other_measurements_have_items_of_their_own(page):
    _choose(page, "compare", "length")
    page.locator(".overview th.number:last-of-type").first.wait_for()
    page.get_by_role("columnheader", name="length").wait_for()
    assert _listed(page) == "60 of 60"
    _choose(page, "compare", "accuracy")
    page.get_by_role("columnheader", name="accuracy").wait_for()


def test_the_items_of_a_run_are_filtered_by_its_baseline(page):
    page.get_by_role("link", name="counting").nth(1).click()
    page.locator('.run[data-run="1"]').wait_for()
    page.get_by_label("accuracy against old").select_option("lost")
    assert _listed(page) == "5 of 60"
    page.get_by_label("accuracy against old").select_option("different")
    assert _listed(page) == "30 of 60"


def test_three_systems_have_ranks_and_stand_beside_each_other(report, visit):
    third = _sut("third", lambda number: number % 5 == 0)
    page = visit(
        report(*((_test(name), sut) for sut in (OLD, NEW, third) for name in ("counting", "adding")))
    )
    assert page.locator("h1:visible").inner_text() == "Are new and third better than old on 2 tests?"
    matrix = page.get_by_role("region", name="Results of each system")
    rows = matrix.locator("tbody tr")
    assert rows.count() == 4  # two tests, two measurements
    assert rows.first.inner_text().split() == [
        *("counting", "accuracy", "0.508", "rank", "2", "0.847", "(best)", "rank", "1"),
        *("0.203", "rank", "3"),
    ]
    assert matrix.locator(".best").first.inner_text() == "0.847"
    assert matrix.get_by_role("img").first.get_attribute("aria-label").startswith("0.508, 95 % interval 0.3")
    assert _open(page).locator(".side").count() == 3
    matrix.get_by_role("link", name="0.508").first.click()
    page.locator('.run[data-run="0"]').wait_for()


def test_groups_are_parts_of_the_plot(visit, tmp_path):
    runs = [run_test(_test(), sut, data_dir=tmp_path / "data").run_id for sut in (OLD, NEW)]
    page = tmp_path / "page.html"
    options = ["--group-by", "subject", "--measurement", "accuracy", "--html", str(page)]
    assert (
        cli.main(["compare", *runs, "--data-dir", str(tmp_path / "data"), *options], standalone_mode=False)
        == 0
    )
    page = visit(page.as_uri())
    rows = page.get_by_role("region", name="Differences").locator("tbody th")
    assert rows.all_inner_texts() == ["accuracy", "history (39)", "physics (20)"]
    assert page.locator(".part").count() == 2
    assert (
        "Cannot tell whether the difference is the same in all groups."
        in page.locator(".facts").first.inner_text()
    )
    assert page.get_by_role("link", name="25 won").is_visible()


def test_hostile_names_of_systems_are_texts(report, visit):
    evil = _sut(HOSTILE, lambda number: number > 9)
    page = visit(report((_test(), OLD), (_test(), evil)))
    shown = HOSTILE.replace("\u202e", "U+202E")
    assert shown.replace("U+202E", "\\u202e") in page.locator("h1:visible").inner_text()
    _choose(page, "show", "lost")
    assert shown in _open(page).inner_text()
    assert page.locator("main :is(img[src], script:not([type]))").count() == 0


def test_runs_that_are_not_compared_are_named_first_and_stand_above_the_items(report, visit):
    others = [(_test(f"other_{place}"), NEW) for place in range(5)]
    page = visit(report((_test(), OLD), (_test(), NEW), *others))
    assert page.title() == "Is new better than old on counting? And 5 more runs"
    said = page.get_by_text("Also on this page, but not compared")
    assert said.inner_text().endswith("5 more runs of other_0, other_1, other_2 and 2 more tests.")
    runs = page.get_by_role("region", name="All runs")
    assert said.bounding_box()["y"] < page.get_by_role("region", name="Differences").first.bounding_box()["y"]
    assert runs.bounding_box()["y"] < page.get_by_text("Items side by side").bounding_box()["y"]
    said.get_by_role("link").click()
    page.locator("#runs:target").wait_for()
    assert page.locator("#runs").bounding_box()["y"] < 300
    assert runs.get_by_role("link", name="other_4").is_visible()


def test_captions_and_numbers_are_whole_on_a_narrow_screen(page):
    page.set_viewport_size({"width": 320, "height": 900})
    for part in page.locator("caption > span:visible, .ends:visible, .forest td:visible").all():
        assert part.bounding_box()["x"] + part.bounding_box()["width"] <= 320


def test_runs_that_cannot_be_compared_say_why(report, visit):
    page = visit(report((_test(), OLD), (_test("other"), NEW)))
    assert page.locator("h1:visible").inner_text() == "2 runs"
    assert page.get_by_text("Not compared").count() == 0
    other = FakeTest("counting", list(_test(number=5).items), lambda item: {"right": True})
    page = visit(report((_test(), OLD), (other, NEW)))
    assert page.locator("h1:visible").inner_text() == "2 runs"
    assert "Not compared: " in page.locator(".overview .note").inner_text()


def test_nothing_overflows_and_axe_finds_nothing(report, visit, check_all_looks):
    suts = (OLD, NEW, _sut("a_system_of_a_very_long_name_" * 3, lambda number: number % 5 == 0))
    address = report(*((_test(name), sut) for sut in suts for name in ("counting", "adding")))
    for place in ("", "#compare=1&show=lost", "#compare=1&item=q2", "#run=2"):
        check_all_looks(visit(address + place))


def _session(data_dir, name, *, right, broken):
    """Record test cases of which each has some of the metrics; one fails in its metric."""
    cases = [item(n, {"exact": 1.0, "exact.passed": 1.0}, item_id=f"e{n}") for n in range(4)]
    values = {"contains": 1.0, "contains.passed": 1.0, "f1": 0.1, "f1.passed": 0.0}
    cases += [item(n, {**values, "contains": float(right)}, item_id=f"c{n}") for n in range(4, 7)]
    cases.append(item(7, None if broken else {"contains": 1.0, "contains.passed": 1.0}, item_id="b"))
    folder(data_dir, record(name, *cases, run_id=f"20260131-12000{name}"))


def test_items_without_a_measurement_are_grey_and_no_failures(visit, tmp_path):
    _session(tmp_path, "0-aaaaa", right=0, broken=False)
    _session(tmp_path, "1-bbbbb", right=1, broken=True)
    page = tmp_path / "page.html"
    command = ["compare", "20260131-120000-aaaaa", "20260131-120001-bbbbb", "--html", str(page)]
    assert cli.main([*command, "--data-dir", str(tmp_path)], standalone_mode=False) == 0
    shown = visit(page.as_uri())
    shown.locator("select[name=compare]").select_option(label="contains")
    shown.locator("output:text-is('8 of 8')").wait_for()
    rows = shown.locator("tr[data-place]")
    outcomes = rows.locator("td:last-child").all_inner_texts()
    assert outcomes == [*["not measured"] * 4, *["won"] * 3, "failed"]
    changes = rows.locator("td:nth-last-child(2)").all_inner_texts()
    assert changes == [*["not measured"] * 4, *["0 → 1"] * 3, "1 → failed"]
    colours = rows.locator("td:last-child").evaluate_all(
        "cells => cells.map((cell) => getComputedStyle(cell).color)"
    )
    assert len({*colours[:4]}) == 1
    assert colours[0] not in colours[4:]
    options = shown.locator("select[name=show] option").all_inner_texts()
    assert options == ["all 8", "won or lost 3", "won 3", "failed 1", "not measured 4"]
    assert "1 failed (1 in 1-bbbbb alone)" in shown.locator(".facts").first.inner_text()


def test_score_has_the_colour_of_its_own_threshold(visit, tmp_path):
    _session(tmp_path, "1-bbbbb", right=1, broken=True)
    page = tmp_path / "page.html"
    command = ["report", "20260131-120001-bbbbb", "--data-dir", str(tmp_path), "-o", str(page)]
    assert cli.main(command, standalone_mode=False) == 0
    shown = visit(page.as_uri())
    cells = shown.locator("tr[data-place] td.number:not(:first-child)")
    text, looks = (
        cells.all_inner_texts(),
        cells.evaluate_all(
            "cells => cells.map((cell) => cell.className.replace(/number|spare/g, '').trim())"
        ),
    )
    none = ("not measured", "not-measured")
    by_row = [*zip(text, looks, strict=True)]
    assert by_row[:3] == [("1", ""), none, none]
    assert by_row[12:15] == [none, ("1", ""), ("0.1", "missed")]
    assert by_row[21:] == [none] * 3  # it failed, and nobody knows which of these it would have had
    shown.locator("tr[data-place]").nth(4).click()
    metrics = shown.locator(".metrics tbody tr")
    metrics.first.wait_for()
    rows = [[cell.strip() for cell in row.split("\t")] for row in metrics.all_inner_texts()]
    assert [row[:3] for row in rows] == [["f1", "0.1", "failed"], ["contains", "1", "passed"]]
    assert metrics.first.get_attribute("class") == "missed"


class _TwoShares(FakeTest):
    measurement_directions: ClassVar = {"accuracy": "higher", "brevity": "higher"}


def test_tables_of_several_tests_are_not_clipped_and_keep_their_heads(report, visit):
    def measure(item):
        right = item.text.split()[-1] == item.context["target"]
        return {"accuracy": right, "brevity": len(item.text) < 30}

    tests = [
        _TwoShares(name, list(_test(number=12).items), measure) for name in ("counting_things", "adding")
    ]
    address = report(*((test, sut) for sut in (OLD, NEW) for test in tests))
    page = visit(address)
    for table in page.locator(".overview .scroll:visible").all():
        assert table.evaluate("each => each.scrollWidth <= each.clientWidth"), table.inner_text()
    assert "worst to best" in page.locator(".forest").first.inner_text()
    narrow = visit(address, width=400)
    for table in narrow.locator(".overview .scroll:visible").all():
        assert table.evaluate("each => each.scrollWidth <= each.clientWidth"), table.inner_text()
    head = "each => getComputedStyle(each, '::before').content"
    row = narrow.locator(".forest tbody tr").first
    assert row.locator("th.name").evaluate(head).startswith('"Test')
    assert row.locator("td.name").evaluate(head).startswith('"Measurement')
    assert narrow.locator(".matrix td:not(.name)").first.evaluate(head).startswith('"old')


def test_one_sentence_stands_before_the_first_picture(page):
    above = page.evaluate(
        "[...document.querySelectorAll('.overview > *')].map(each => each.className)"
        ".join(' ').split('scroll')[0].trim().split(/\\s+/)"
    )
    assert above == ["verdict"]
