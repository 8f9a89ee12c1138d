"""One person's story from an empty folder to a shared run: every step of it, with a real app in a real pytest."""

from children import run

APP = """
import pytest
from modelgauge.evals import EvaluationDataset, assert_test
from modelgauge.metrics import ExactMatchMetric

dataset = EvaluationDataset.pull("capitals")

@pytest.mark.parametrize("golden", dataset.goldens)
def test_capitals(golden):
    answer = {"Capital of Peru?": "Lima", "Capital of Australia?": "Canberra"}[golden.input]
    assert_test(golden.to_test_case(actual_output=answer), [ExactMatchMetric()])
"""


def write_goldens(page, *goldens):
    """Add rows to the table of a data set by keyboard, and save them."""
    for golden in goldens:
        page.get_by_role("button", name="add a row").click()
        for text in golden:
            page.keyboard.type(text)
            page.keyboard.press("Tab")
    save(page)


def save(page):
    page.keyboard.press("Control+s")
    page.get_by_role("alert").filter(has_text="Saved as version").wait_for()


def test_from_a_data_set_to_a_shared_run(visit, serve, check_looks, chromium, tmp_path):
    (tmp_path / "test_app.py").write_text(APP, encoding="utf-8")
    workbench = serve(tmp_path / "run_data")
    page, list_of_runs = visit(workbench, width=320), visit(workbench)

    def check_looks_of(page):
        page.wait_for_load_state()  # with its styles
        check_looks(page)

    def test_app():
        """Run the app's tests, and return the address of their run, which appears in the open list by itself."""
        there = list_of_runs.locator("#runs tbody tr").count()
        ended = run("-m", "modelgauge", "test", "run", "test_app.py", cwd=tmp_path)
        list_of_runs.locator("#runs tbody tr").nth(there).wait_for()
        assert list_of_runs.locator("#count").inner_text() == str(there + 1)
        address = list_of_runs.get_by_role("link", name="pytest").first.get_attribute("href")
        return ended.returncode, f"{workbench.address}{address}"

    # A data set is made in the browser, with a mistake in it.
    page.get_by_role("link", name="Datasets").click()
    page.get_by_label("New data set").fill("capitals")
    page.keyboard.press("Enter")
    write_goldens(page, ("Capital of Peru?", "Lima"), ("Capital of Australia?", "Sydney"))
    assert "No run has judged version 1 yet." in page.locator("#ran").inner_text()
    check_looks_of(page)

    # The app pulls it and runs; the failing item is opened, and leads to its golden.
    code, first = test_app()
    assert code == 1
    page.goto(first)
    page.locator("tr.below-threshold a").click()
    check_looks_of(page)
    page.get_by_role("link", name="capitals, version 1").click()
    assert "Canberra" in page.locator("tr.chosen").inner_text()
    assert "Sydney" in page.locator("tr.chosen").inner_text()
    check_looks_of(page)
    page.get_by_role("link", name="pytest,").last.click()

    # It is brought into the data set, into the row that asks the same, and what was expected is corrected.
    page.get_by_role("button", name="Open it there").click()
    page.get_by_role("alert").filter(has_text="Row 2 has this item already").wait_for()
    assert "Version 1 ran in pytest," in page.locator("#ran").inner_text()
    page.locator('td[data-line="1"][data-place="1"]').focus()
    page.keyboard.type("Canberra")
    page.keyboard.press("Enter")
    save(page)

    # The next run passes, and is compared with the one before: what differs is said first.
    code, second = test_app()
    assert code == 0
    page.goto(second)
    page.keyboard.press("c")
    page.get_by_text("other expected answers").wait_for()
    check_looks_of(page)
    page.keyboard.press("y")
    page.wait_for_selector("html[data-ready]")
    runs = [address.rpartition("/")[2] for address in (first, second)]
    command = ("compare", *runs, "--allow", "targets", "--data-dir", "run_data")
    said = " ".join(run("-m", "modelgauge", *command, cwd=tmp_path).stdout.split())
    verdicts = [" ".join(text.split()) for text in page.get_by_text("Cannot tell whether").all_inner_texts()]
    assert verdicts
    assert [verdict for verdict in verdicts if verdict not in said] == []

    # Both versions lead to their runs.
    page.goto(f"{workbench.address}/datasets/capitals/versions")
    ran_in = [
        one.get_by_role("link", name="pytest,").get_attribute("href")
        for one in page.locator("tbody tr").all()
    ]
    assert ran_in == [f"/runs/{name}" for name in reversed(runs)]
    check_looks_of(page)

    # A person rates both answers by keys, once the index has both.
    workbench.until(f"/ratings/queue?run={runs[1]}", "of 2 answers")
    page.goto(second)
    page.keyboard.press("r")
    page.get_by_label("Your name").first.fill("ann")
    for key in ("Enter", "5", "4"):
        with page.expect_navigation():
            page.keyboard.press(key)
    page.get_by_text("You have seen all 2 answers.").wait_for()
    page.keyboard.press("q")
    page.get_by_role("cell", name="ann").or_(page.get_by_role("rowheader", name="ann")).wait_for()
    check_looks_of(page)

    # The run is shared as one file, which needs nothing else.
    page.goto(second)
    with page.expect_download() as downloading:
        page.get_by_role("link", name="share as a file").click()
    downloading.value.save_as(tmp_path / "shared.html")
    asked = []
    context = chromium.new_context(viewport={"width": 320, "height": 900})
    shared = context.new_page()
    shared.on("request", lambda request: asked.append(request.url))
    shared.goto((tmp_path / "shared.html").as_uri())
    shared.wait_for_selector("html[data-ready]")
    assert "All items passed their thresholds." in shared.locator("body").inner_text()
    shared.get_by_role("link", name="2", exact=True).click()
    shared.locator("pre").get_by_text("Canberra", exact=True).first.wait_for()
    context.close()
    assert [one for one in asked if not one.startswith(("file:", "data:", "blob:"))] == []
