"""The list of runs, of real runs."""

import json
import shutil

import pytest

from modelgauge import FunctionSUT, run_test
from modelgauge.datasets.dataset_test import DatasetTest
from modelgauge.evals import EvaluationDataset, Golden
from modelgauge.metrics import ExactMatchMetric
from modelgauge.testing import FakeSUT, FakeTest

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two data folders: of one the second run has notes; in the other lies a damaged one, and a copy of the first."""
    first, second = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second")
    runs = [
        run_test(FakeTest(uid, ["one", "two"]), FakeSUT("fake-sut"), data_dir=first).run_id
        for uid in ("apples", "pears", HOSTILE)
    ]
    notes = {"tags": ["keep", HOSTILE], "note": "look at ducks", "favourite": True}
    (first / "runs" / runs[1] / "notes.json").write_text(json.dumps(notes))
    shutil.copytree(first / "runs" / runs[0], second / "runs" / runs[0])
    (second / "runs" / "broken").mkdir()
    (second / "runs" / "broken" / "run.json").write_text("{")
    return first, second, runs


@pytest.fixture(scope="module")
def workbench(folders, serve):
    return serve(*folders[:2])


def listed(page):
    return [one.inner_text() for one in page.locator("tbody th > a").all()]


def shown(visit, workbench, path, count):
    """The list, when the index has all runs."""
    workbench.until_runs(count)
    return visit(workbench, path)


def test_runs_are_found_sorted_and_filtered(visit, workbench, folders):
    page = shown(visit, workbench, "/runs", 5)
    assert sorted(listed(page)) == sorted(["?", "apples", "apples", "pears", HOSTILE])
    for path, names in {
        "/runs?q=pea": ["pears"],
        "/runs?q=ducks": ["pears"],
        "/runs?q=fake-sut+apples": ["apples", "apples"],
        "/runs?favourite=1": ["pears"],
        "/runs?tag=keep": ["pears"],
        "/runs?state=damaged": ["?"],
        "/runs?test=apples&sort=oldest": ["apples", "apples"],
        "/runs?since=2999-01-01": [],
        "/runs?page=99&test=pears": ["pears"],
        "/runs?q=%22%27*%28&page=x&since=never": ["?", "apples", "apples", "pears", HOSTILE],
    }.items():
        page.goto(f"{workbench.address}{path}")
        assert sorted(listed(page)) == sorted(names), path


def test_a_person_searches_by_keyboard(visit, workbench):
    page = shown(visit, workbench, "/runs", 5)
    page.keyboard.press("/")
    page.keyboard.type("pears")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs?q=pears*")
    assert listed(page) == ["pears"]
    assert page.get_by_label("Search").input_value() == "pears"
    page.go_back()
    assert len(listed(page)) == 5


def test_tags_and_notes_are_edited_in_the_list_by_keyboard_and_undone(visit, workbench, check_looks):
    page = shown(visit, workbench, "/runs", 5)
    page.goto(f"{workbench.address}/runs?test=apples&sort=oldest")
    page.set_viewport_size({"width": 320, "height": 900})
    page.get_by_role("checkbox", name="compare apples").first.check()
    page.keyboard.press("j")
    page.keyboard.press("e")
    page.keyboard.type(f"ripe, {HOSTILE[:60]}")
    check_looks(page)
    page.keyboard.press("Tab")
    page.keyboard.type("red ones")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("status").get_by_text("are saved").wait_for()
    assert "sort=oldest" in page.url
    row = page.locator("#runs tbody tr").first
    assert "ripe" in row.inner_text()
    assert "red ones" in row.inner_text()
    check_looks(page)
    page.keyboard.press("e")  # of the row that was saved, which has the focus
    assert page.get_by_label("Tags, separated by commas").first.input_value().startswith("ripe, <script>")
    page.keyboard.press("Escape")
    with page.expect_navigation(url="**/runs?*noted=*"):
        page.keyboard.press("u")
    assert listed(page) == ["apples", "apples"]
    assert page.get_by_text("red ones").count() == 0


def test_a_run_appears_in_the_list_while_a_person_chooses_others(visit, serve, tmp_path):
    for uid in ("figs", "dates"):
        run_test(FakeTest(uid, ["one"]), FakeSUT("s"), data_dir=tmp_path)
    page = shown(visit, serve(tmp_path), "/runs", 2)
    page.get_by_role("checkbox", name="compare figs").check()
    page.get_by_role("link", name="dates").focus()
    run_test(FakeTest("plums", ["one"]), FakeSUT("s"), data_dir=tmp_path)
    page.get_by_role("link", name="plums").wait_for()
    assert page.locator("#count").inner_text() == "3"
    assert page.get_by_role("checkbox", name="compare figs").is_checked()
    assert page.evaluate("document.activeElement.textContent") == "dates"


def app_run(folder, right, **settings):
    """A run of an app on four goldens, of which it answers the first ones right, and the last one not at all."""

    def answer(text):
        if text == "3":
            raise ValueError("away")
        return text if int(text) < right else "no"

    goldens = [Golden(input=str(number), expected_output=str(number)) for number in range(4)]
    test = DatasetTest("pets", EvaluationDataset(goldens, name="pets"), [ExactMatchMetric()])
    sut = FunctionSUT("app", answer)
    return run_test(test, sut, data_dir=folder, hyperparameters=settings, max_retries=0).run_id


@pytest.fixture(scope="module")
def app(serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("app")
    settings = [("small", "v1"), ("large", "v1"), ("small", HOSTILE), ("large", "v2")]
    runs = [
        app_run(folder, right, model=model, prompt=prompt, top_k=5)
        for right, (model, prompt) in enumerate(settings)
    ]
    run_test(FakeTest("figs", ["one"]), FakeSUT("s"), data_dir=folder)
    served = serve(folder)
    served.until_runs(5)
    return served, runs


def test_list_shows_verdicts_data_sets_and_settings_that_differ(visit, app, check_looks):
    workbench, _ = app
    page = visit(workbench, "/runs?sort=oldest", width=320)
    check_looks(page)
    row = page.locator("#runs tbody tr").nth(2)
    assert row.locator("svg.portions").get_attribute("aria-label") == "2 passed, 1 failed, 1 not judged"
    assert "2 of 3 passed · 1 not judged" in row.inner_text()
    assert row.locator(".settings").inner_text().split()[:3] == ["model", "small", "prompt"]
    assert "top_k" not in page.locator("#runs").inner_text()
    assert "n 1" in page.locator("#runs tbody tr").nth(4).inner_text()
    row.get_by_role("link", name="pets").nth(1).click()
    page.wait_for_url("**/runs?dataset=pets")
    assert page.locator("#count").inner_text() == "4 found"


def test_runs_are_filtered_and_grouped_by_settings(visit, app):
    workbench, runs = app
    page = visit(workbench, "/runs")
    page.locator("select[name=is-model]").select_option("large")
    page.wait_for_url("**is-model=large*")
    assert page.locator("#count").inner_text() == "2 found"
    page.get_by_label("Group").select_option("is-prompt")
    page.wait_for_url("**group=is-prompt*")
    assert page.locator(".group").all_inner_texts() == ["prompt: v1", "prompt: v2"]
    page.goto(f"{workbench.address}/runs?group=is-prompt&sort=oldest")
    assert page.locator(".group").all_inner_texts() == [
        f"prompt: {HOSTILE}",
        "prompt: v1",
        "prompt: v2",
        "prompt: none",
    ]
    boxes = page.locator("#runs tbody [type=checkbox]").all()
    assert [box.input_value() for box in boxes[:4]] == [runs[2], runs[0], runs[1], runs[3]]


def test_filters_without_runs_can_be_removed_one_by_one(visit, app):
    workbench, _ = app
    page = visit(workbench, "/runs?is-model=small&is-prompt=v2&q=pets")
    page.get_by_role("link", name="Remove prompt: v2").click()
    page.wait_for_url("**/runs?is-model=small&q=pets")
    assert page.locator("#count").inner_text() == "2 found"


def test_space_chooses_the_row_that_j_reached(visit, app):
    workbench, runs = app
    page = visit(workbench, "/runs?sort=oldest")
    page.keyboard.press("c")
    page.get_by_text("Choose two runs or more").wait_for()
    page.keyboard.type("j jj c")
    page.wait_for_url(f"**/compare?runs={runs[0]}&runs={runs[2]}")


def test_an_empty_folder_makes_a_first_run_at_the_press_of_a_button(visit, serve, tmp_path):
    workbench = serve(tmp_path / "none")
    page, other = visit(workbench), visit(workbench)
    assert "There are no runs in" in page.locator("main").inner_text()
    assert "modelgauge run-test" in page.locator("main").inner_text()
    page.get_by_role("button", name="Make the demo run").click()
    other.locator("#runs").get_by_text("finished").wait_for()  # which nobody loaded again
    assert listed(other) == ["demo_01"]


def test_the_trash_gives_runs_back(visit, serve, tmp_path):
    name = run_test(FakeTest("plums", ["one"]), FakeSUT("s"), data_dir=tmp_path).run_id
    (tmp_path / "trash" / "no-run").mkdir(parents=True)
    (tmp_path / "runs" / name).rename(tmp_path / "trash" / f"{name}~3")
    page = visit(serve(tmp_path), "/trash")
    assert page.locator("tbody th").inner_text().split() == ["plums", "s"]
    page.get_by_role("button", name="move back").click()
    page.wait_for_url(f"**/runs/{name}")
    page.goto(f"{page.url.partition('/runs')[0]}/trash")
    assert "The trash is empty" in page.locator("main").inner_text()
