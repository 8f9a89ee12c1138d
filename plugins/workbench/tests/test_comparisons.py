"""Runs beside each other and over time, as a person looks at them."""

import json
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from modelgauge import FunctionSUT, PromptWithContext, TestItem, compare, load_record, run_test
from modelgauge.data.estimates import Estimate
from modelgauge.data.item_records import TestItemRecord
from modelgauge.data.records import TestRecord
from modelgauge.data.results import GIVEN, PYTEST, Counts
from modelgauge.datasets.dataset_test import DatasetTest
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.engine.run_files.journal import make_line
from modelgauge.evals import EvaluationDataset, Golden
from modelgauge.metrics import ExactMatchMetric
from modelgauge.reports.comparisons.report import answers
from modelgauge_workbench.comparisons.trend_charts import Point, line_blocks, shared_axes

HOSTILE = "<script>alert(1)<b>"
LONG = "The answer that everybody gives to this question is, after some thought, "


def measured(data_dir, label, wrong=(), rows=12, **options):
    """A run of a data set, of which the SUT answers all but some right."""

    def answer(text):
        return LONG + ("no" if text in wrong else f"yes {text}") + "."

    goldens = [Golden(input=f"q{at}", expected_output=f"{LONG}yes q{at}.") for at in range(rows)]
    test = DatasetTest("questions", EvaluationDataset(goldens, name="questions"), [ExactMatchMetric()])
    sut = FunctionSUT(label, answer, version=len(wrong))
    return run_test(test, sut, data_dir=data_dir, hyperparameters={"prompt": len(wrong)}, **options).run_id


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return folder, [
        measured(folder, "app", [f"q{at}" for at in range(9)]),
        measured(folder, "app", ["q1"]),
        measured(folder, HOSTILE, ["q2"]),
        measured(folder, "app", ["q1"], rows=14),
    ]


@pytest.fixture(scope="module")
def workbench(runs, serve):
    return serve(runs[0])


def test_runs_that_are_chosen_in_the_list_are_compared(visit, workbench, runs, check_looks):
    folder, (first, second, _, _) = runs
    workbench.until_runs(4)
    page = visit(workbench, "/runs", width=320)
    for run in (second, first):
        page.locator(f"input[value='{run}']").check()
    page.keyboard.press("c")
    expected = compare(first, second, data_dir=folder)
    page.wait_for_selector("html[data-ready]")
    page.get_by_text("In words").click()
    shown = page.locator("main").inner_text()
    for answer in answers(expected):
        assert answer in shown
    row = page.locator("#settings + div tbody tr", has_text="prompt")
    assert row.inner_text().split() == ["prompt", "9", "1"]
    check_looks(page)
    page.locator(".forest a").first.click()
    page.locator(".table tbody tr[data-place]").first.click()
    page.locator(".sides ins").first.wait_for()
    assert "q0" in page.locator(".sides ins").first.inner_text()
    there = page.url
    page.reload()
    page.locator(".sides ins").first.wait_for()
    assert page.url == there
    page.goto(f"{workbench.address}/runs/{second}")
    page.keyboard.press("c")  # with the last run before it
    page.wait_for_url(f"**/compare?runs={first}&runs={second}")
    page.get_by_role("link", name="as baseline").click()
    page.wait_for_url("**baseline=*")
    page.wait_for_selector("html[data-ready]")
    assert page.locator(".verdict").first.inner_text() == "8 passed before and fail now; none the other way."
    page.get_by_text("In words").click()
    assert "is worse than" in page.locator(".more[open] p").first.inner_text()


def test_pinned_baseline_is_what_pages_compare_with(visit, serve, tmp_path, check_looks):
    first = measured(tmp_path, "app", ["q1"])
    second, third = measured(tmp_path, "app", ["q2"]), measured(tmp_path, "app", ["q1", "q2", "q3"])
    workbench = serve(tmp_path)
    workbench.until_runs(3)
    page = visit(workbench, f"/runs/{first}", width=390)
    assert page.get_by_label("of what").inner_text().split("\n") == [
        "of the data set 'questions'",
        "of the test 'questions'",
    ]
    page.keyboard.press("b")
    page.get_by_text("baseline of the data set 'questions'").wait_for()
    check_looks(page)
    assert "Baseline of the data set" in workbench.ask("/runs?dataset=questions")[2]
    page.goto(f"{workbench.address}/datasets/questions")  # nobody saved it: its runs are known all the same
    page.get_by_role("link", name="Compare the latest run with it").click()
    page.wait_for_url(f"**/compare?runs={first}&runs={third}&baseline={first}")
    assert page.locator(".verdict").first.inner_text() == "2 passed before and fail now; none the other way."
    page.goto(f"{workbench.address}/runs/{third}")
    page.keyboard.press("c")
    page.wait_for_url(f"**/compare?runs={first}&runs={third}&*")
    page.goto(f"{workbench.address}/compare?runs={second}&runs={first}&runs={third}")
    assert page.locator(".bar span").first.inner_text().startswith("baseline app")
    workbench.post(f"/runs/{third}/notes", tags="live")
    status, _, text = workbench.post(f"/runs/{second}/baseline", subject="tag:live")
    assert (status, "is not of" in text) == (303, False)
    page.goto(f"{workbench.address}/runs?tag=live")
    assert "Baseline of the tag 'live'" in page.locator("main").inner_text()
    page.goto(f"{workbench.address}/runs/{third}")
    page.keyboard.press("c")  # what people chose for it comes before its data set
    page.wait_for_url(f"**/compare?runs={second}&runs={third}&*")
    workbench.post(f"/runs/{second}/delete")
    page.goto(f"{workbench.address}/runs/{third}")
    page.keyboard.press("c")
    page.get_by_text(f"The baseline of the tag 'live', run {second}, is in the trash.").wait_for()
    page.get_by_text("Move it back on the page Trash, or pin another run on its page.").wait_for()
    page.goto(f"{workbench.address}/runs?tag=live")
    assert "is in the trash" in page.locator("main").inner_text()
    page.goto(f"{workbench.address}/runs/{first}")
    page.get_by_role("button", name="unpin").click()
    assert page.locator(".bar b").count() == 0
    assert "is not of the data set" in workbench.post(f"/runs/{first}/baseline", subject="dataset:x")[2]
    assert "dataset:NAME" in workbench.post(f"/runs/{first}/baseline", subject="<b>")[2]


def test_keys_of_the_items_come_first_and_are_listed(visit, workbench, runs):
    _, (first, second, *_) = runs
    page = visit(workbench, f"/compare?runs={first}&runs={second}")
    page.wait_for_selector("html[data-ready]")
    page.evaluate(  # a table of the workbench, in which j would go on, too
        """document.querySelector("main").insertAdjacentHTML("beforeend",
        "<table class=rows><tbody><tr><th><a href='/'>one</a></th></tr></tbody></table>")"""
    )
    page.keyboard.press("j")
    assert page.locator(".table tr.chosen").get_attribute("aria-rowindex") == "3"
    assert page.evaluate("document.activeElement.tagName") == "BODY"
    page.keyboard.press("Enter")
    page.locator(".item h2").wait_for()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys of this page")
    assert [one for one in keys.inner_text().split("\n") if "next, previous" in one] == ["next, previous"]
    page.keyboard.press("j")
    page.keyboard.press("Escape")
    assert not keys.is_visible()
    assert "2 of" in page.locator(".moves").inner_text()
    page.keyboard.press("Escape")
    page.locator(".table:visible").wait_for()


def test_several_systems_with_hostile_names(visit, workbench, runs, check_looks):
    _, (first, second, third, _) = runs
    page = visit(workbench, f"/compare?runs={first}&runs={second}&runs={third}")
    page.wait_for_selector("html[data-ready]")
    assert HOSTILE in page.locator("main").inner_text()
    check_looks(page)


def test_runs_that_cannot_be_compared_say_why(visit, workbench, runs, serve, tmp_path):
    folder, (first, *_) = runs
    record = load_record(folder / "runs" / first)
    other = tmp_path / "runs" / "20300101-000000-000000"
    other.mkdir(parents=True)
    for name in ("run.json", "items.jsonl", "record.json"):
        (other / name).write_bytes((folder / "runs" / first / name).read_bytes())
    changed = json.loads((other / "record.json").read_text())
    changed["test_initialization"] |= {"class_name": "elsewhere:Test"}
    (other / "record.json").write_text(json.dumps(changed))
    two = serve(folder, tmp_path)
    two.until_runs(5)
    page = visit(two, f"/compare?runs={first}&runs={other.name}")
    page.get_by_text("These runs did not measure the same.").wait_for()
    assert "test: questions, class" in page.locator("main").inner_text()
    assert "can then come from another test," in page.locator("main").inner_text()
    page.get_by_role("button", name="Compare anyway").click()
    page.wait_for_selector("html[data-ready]")
    assert "did not measure the same" not in page.locator("main").inner_text()
    assert record.test_uid == "questions"


def test_a_result_over_time_is_marked_where_the_data_changed(visit, workbench, runs, check_looks):
    _, (first, *_, last) = runs
    workbench.until_runs(4)
    page = visit(workbench, "/trends?test=questions", width=320)
    rows = page.locator("section", has=page.get_by_role("heading", name="app")).locator("tbody tr")
    assert rows.count() == 4  # and the axis
    assert "data set" in rows.nth(0).inner_text()
    assert "data set" not in rows.nth(1).inner_text()
    assert "◆1 data set: " in rows.nth(0).inner_text()
    assert "prompt: 9 → 1" in rows.nth(1).inner_text()
    (mark,) = page.locator("svg.plot line.mark").all()
    intervals = {bar.get_attribute("x1") for bar in page.locator("svg.plot line.bar").all()}
    assert mark.get_attribute("x1") not in intervals  # it is between two runs
    check_looks(page)
    page.get_by_label("Result").select_option("passed")
    page.get_by_role("button", name="Show").click()
    assert "result=passed" in page.url
    rows.nth(0).get_by_role("link").click()
    page.wait_for_url(f"**/runs/{last}")
    page.go_back()
    page.locator(".plot a").first.click()
    page.wait_for_url(f"**/runs/{first}")
    page.go_back()
    for at in (0, 2):
        page.locator(".plot a").nth(at).click(modifiers=["Shift"])
    for _ in range(2):  # what is chosen twice is not
        page.locator(".plot a").nth(1).dispatch_event("click", {"shiftKey": True})  # it may lie below another
    assert page.locator(".plot a.chosen").count() == 2
    page.keyboard.press("c")
    page.wait_for_url(f"**/compare?runs={last}&runs={first}")
    page.goto(f"{workbench.address}/runs/{last}")
    page.keyboard.press("t")
    page.wait_for_url("**/trends?test=questions")


def test_axis_says_where_it_starts_unless_that_is_0():
    def drawn(low):
        values = (Estimate(value, 10, interval=(value, value + 0.05)) for value in (low, low + 0.1))
        points = [
            Point(str(day), datetime(2026, 1, day, tzinfo=UTC), value) for day, value in enumerate(values, 1)
        ]
        return "".join(line_blocks("app", points, shared_axes("accuracy", points)))

    assert "accuracy; the axis starts at 0.8" in drawn(0.8)
    assert "starts at" not in drawn(0.0)


def test_what_is_not_there_is_said(workbench, runs):
    _, (first, *_) = runs
    for path, words in {
        "/compare": "0 runs are chosen",
        "/compare?runs=none": "There is no run",
        f"/compare?runs={first}": "no earlier run",
        "/compare/0/..%2F..%2Fx": "",
        "/compare/0/rows": "kept no more",
    }.items():
        status, _, text = workbench.ask(path)
        assert status in (400, 404), path
        assert words in text, path
    assert workbench.ask("/trends?test=none")[0] == 200


def session(folder, run_id, *files, uid="pytest", context=None):
    """The finished run of a session of pytest with a case of each test file."""
    run = RunFolder(folder / "runs" / run_id)
    run.path.mkdir(parents=True)
    made = {"uid": uid, "class_name": PYTEST, "cache_version": 0, "arguments": {}, "opaque": []}
    items = [
        TestItemRecord(
            index=place,
            test_item=TestItem([PromptWithContext("q", context=context)], id=f"{file}::test_a"),
            interactions=(),
            measurements={"passed": 1.0},
            binary=("passed",),
        )
        for place, file in enumerate(files)
    ]
    record = TestRecord(
        run_id=run_id,
        invocation_id=run_id,
        run_timestamp=f"2026-01-31T12:00:{run_id[13:15]}+00:00",
        test_uid=uid,
        test_initialization=made,
        sut_uid=GIVEN,
        sut_initialization={**made, "class_name": GIVEN},
        counts=Counts(items=len(items), scored=len(items)),
    )
    run.write_manifest(record.model_dump(mode="json", exclude={"counts", "result"}), str)
    run.journal.write_bytes(b"".join(make_line(item, "t", str)[1] for item in items))
    run.write_record(record, str)
    return run_id


@pytest.fixture(scope="module")
def sessions(serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sessions")
    ids = [f"20260131-1200{second:02}-aaaaa" for second in range(1, 8)]
    app, other, both = ("test_app.py",), ("test_other.py",), ("test_app.py", "test_other.py")
    files = [
        (app, "pytest"),
        (both, "pytest"),
        (other, "v1"),
        (app, "v2"),
        (("test_new.py",), "v2"),
        (both, "v2"),
        (app, "pytest"),
    ]
    for run_id, (of_run, uid) in zip(ids, files, strict=True):
        session(folder, run_id, *of_run, uid=uid)
    served = serve(folder)
    served.until_runs(7)
    return served, ids


def test_trend_of_test_file_is_of_its_cases_alone(visit, sessions):
    workbench, ids = sessions
    page = visit(workbench, "/trends")
    page.locator("select[name=of]").select_option(label="test_other.py")
    page.wait_for_url("**of=file%3Atest_other.py*")
    boxes = [box.get_attribute("value") for box in page.locator("tbody [type=checkbox]").all()]
    assert sorted(boxes) == [ids[1], ids[5]]
    assert [row.inner_text().split()[-1] for row in page.locator("tbody tr:has(input)").all()] == [
        "1",
        "1",
    ]  # n
    page.goto(f"{workbench.address}/runs?file=test_other.py")
    assert page.locator("#count").inner_text() == "3 found"


@pytest.mark.parametrize(("run", "before"), [(6, 3), (3, 0), (5, 1), (2, 1), (1, 0), (4, None), (0, None)])
def test_last_run_is_that_of_the_same_test_files_whatever_its_identifier(sessions, run, before):
    """Prefer a run of all the test files, else take one of some of them. An identifier is only a label."""
    workbench, ids = sessions
    status, headers, text = workbench.ask(f"/compare?runs={ids[run]}")
    if before is None:
        assert (status, "no earlier run of the same test files" in text) == (400, True)
        assert 'data-key="c"' not in workbench.ask(f"/runs/{ids[run]}")[2]
    else:
        assert parse_qs(urlsplit(headers["Location"]).query)["runs"] == [ids[before], ids[run]]
        assert 'data-key="c"' in workbench.ask(f"/runs/{ids[run]}")[2]


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ({"expected_output": "a"}, {"expected_output": "b"}, "other expected answers"),
        ({"context": ["a"]}, {"context": ["b"]}, "another context"),
        (
            {"expected_output": "a", "context": ["a"]},
            {"context": ["b"]},
            "other expected answers and another context",
        ),
    ],
)
def test_refusal_says_what_differs(before, after, reason, serve, tmp_path):
    ids = [
        session(tmp_path, f"20260131-12000{second}-aaaaa", "test_app.py", context={"input": "q", **fields})
        for second, fields in enumerate((before, after), start=1)
    ]
    workbench = serve(tmp_path)
    workbench.until_runs(2)
    page = workbench.ask(f"/compare?runs={ids[0]}&runs={ids[1]}")[2]
    assert f"A difference can then come from {reason}, and not from the system alone." in page
