"""Data sets in the browser and by pull and push: edited by keyboard, by two at once, imported, restored, killed."""

import json
import signal
import threading
import time
from http.client import HTTPException

import pytest

from modelgauge import FunctionSUT, run_test
from modelgauge.data.test_cases import ConversationalGolden, Golden, Turn
from modelgauge.datasets.dataset import EvaluationDataset
from modelgauge.datasets.dataset_test import DatasetTest
from modelgauge.datasets.versions import VersionsFolder
from modelgauge.errors import DatasetConflictError, DownloadError, UnknownNameError, UsageError
from modelgauge.metrics import ExactMatchMetric

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def workbench(data_dir, serve):
    return serve(data_dir)


def pulled(data_dir, alias, version=None):
    return EvaluationDataset.pull(alias, version, data_dir=data_dir)


def cell(page, line, place):
    return page.locator(f'td[data-line="{line}"][data-place="{place}"]')


def save(page, says="Saved as version"):
    page.keyboard.press("Control+s")
    page.get_by_role("alert").filter(has_text=says).wait_for()


def test_a_person_makes_a_data_set_by_keyboard(visit, workbench, data_dir, tmp_path):
    page = visit(workbench, "/datasets")
    page.get_by_label("New data set").fill("first ones")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="add a row").click()
    cell(page, 0, 0).focus()
    page.keyboard.type(f"2+2? {HOSTILE}")
    page.keyboard.press("Tab")
    page.keyboard.type("5")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+z")
    assert cell(page, 0, 1).inner_text() == ""
    page.keyboard.press("Control+y")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+a")
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("New column").fill("topic")
    page.get_by_role("button", name="Add", exact=True).click()
    cell(page, 0, 2).focus()
    page.keyboard.type("sums")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Duplicate", exact=True).click()
    assert "2 rows are duplicates" in page.locator("#state").inner_text()
    page.get_by_label("Your name").fill("ann")
    page.get_by_label("What you changed").fill("The first")
    save(page)
    dataset = pulled(data_dir, "first ones")
    golden = Golden(f"2+2? {HOSTILE}", expected_output="4", custom_column_key_values={"topic": "sums"})
    assert dataset.goldens == [golden, golden]
    assert (dataset.pulled[1].author, dataset.pulled[1].message) == ("ann", "The first")

    file = tmp_path / "more.csv"
    file.write_text("input,expected_output,token_cost\nred,green,\nbad,x,much\n", encoding="utf-8")
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("alert").filter(has_text="1 row can be used, 1 cannot").wait_for()
    assert "'much' is not a number" in page.get_by_role("alert").inner_text()
    page.get_by_role("button", name="add 1 row to the table").click()
    page.get_by_text("Find and replace").click()
    page.get_by_label("Find", exact=True).fill("green")
    page.get_by_label("Replace by").fill("blue")
    page.get_by_role("button", name="replace in the rows shown").click()
    save(page)
    assert pulled(data_dir, "first ones").goldens[2].expected_output == "blue"
    page.get_by_role("link", name="versions").click()
    page.get_by_role("link", name="what changed in version 2").click()
    assert "1 added, 0 removed" in page.locator(".verdict").inner_text()
    page.go_back()
    page.get_by_role("button", name="restore version 1").click()
    assert pulled(data_dir, "first ones").pulled[1].number == 3
    assert len(pulled(data_dir, "first ones").goldens) == 2


def test_two_who_edit_at_once_see_both_and_choose(visit, workbench, data_dir):
    EvaluationDataset([Golden("a", expected_output="1"), Golden("b")]).push("both", data_dir=data_dir)
    first, second = (visit(workbench, "/datasets/both") for _ in range(2))
    for page, text in ((first, "theirs"), (second, "mine")):
        cell(page, 0, 1).focus()
        page.keyboard.type(text)
        page.keyboard.press("Enter")
    cell(first, 1, 1).focus()
    first.keyboard.type("only first")
    first.keyboard.press("Enter")
    save(first)
    save(second, "Somebody saved meanwhile")
    assert "theirs" in second.get_by_role("alert").inner_text()
    put = second.get_by_role("button", name="put both into the table")
    put.click()
    assert "Choose one in each place." in second.get_by_role("alert").inner_text()
    second.get_by_label("yours: mine").check()
    put.click()
    save(second, "Saved as version 3")
    found = pulled(data_dir, "both")
    assert [golden.expected_output for golden in found.goldens] == ["mine", "only first"]
    assert pulled(data_dir, "both", 2).goldens[0].expected_output == "theirs"


def test_a_failing_item_becomes_a_golden_and_runs_and_versions_lead_to_each_other(visit, workbench, data_dir):
    EvaluationDataset([Golden("hi", expected_output="hello")]).push("greetings", data_dir=data_dir)
    test = DatasetTest("greetings", pulled(data_dir, "greetings"), [ExactMatchMetric()])
    run = run_test(test, FunctionSUT("app", lambda text: f"no {text}"), data_dir=data_dir).run_id
    EvaluationDataset([Golden("hi")]).push("damaged", data_dir=data_dir)
    (data_dir / "datasets" / "damaged" / "versions.jsonl").write_text("{\n")
    page = visit(workbench, "/datasets")
    page.get_by_text("versions.jsonl").wait_for()
    workbench.until("/datasets/greetings/versions", run)
    page.goto(f"{workbench.address}/datasets/greetings/versions")
    page.get_by_role("link", name="app,").click()
    assert run in page.url
    page.get_by_role("link", name="greetings, version 1").click()
    (answered,) = page.locator("tbody tr").all()
    assert [one in answered.inner_text() for one in ("hi", "expected_output: hello", "no hi")] == [True] * 3
    answered.get_by_role("link", name="app,").click()
    assert page.url == f"{workbench.address}/runs/{run}/items/1"
    page.get_by_role("link", name="greetings, version 1").click()
    assert page.locator("tr.chosen th").inner_text() == "1"
    page.get_by_role("link", name="← the table").click()
    assert "Version 1 ran in app," in page.locator("#ran").inner_text()
    page.goto(f"{workbench.address}/runs/{run}/items/1")
    assert page.get_by_label("Add it to the data set").input_value() == "greetings"
    page.get_by_label("Add it to the data set").fill("failures")
    page.get_by_role("button", name="Open it there").click()
    page.get_by_role("alert").filter(has_text="row 1, with its input and what is expected. Look").wait_for()
    save(page)
    (golden,) = pulled(data_dir, "failures").goldens
    assert (golden.input, golden.expected_output, golden.actual_output) == ("hi", "hello", None)
    assert golden.additional_metadata["run"] == run
    for says in ("which asks the same, with its input and what is expected, and its answer", "has this item"):
        page.goto(f"{workbench.address}/runs/{run}/items/1")
        page.get_by_label("Add it to the data set").fill("failures")
        page.get_by_label("with its answer").check()
        page.get_by_role("button", name="Open it there").click()
        page.get_by_role("alert").filter(has_text=says).wait_for()
        if "not saved yet" in page.locator("#state").inner_text():
            save(page)
    assert pulled(data_dir, "failures").goldens[0].actual_output == "no hi"


def test_file_with_other_columns_becomes_data_set_that_its_run_leads_to(visit, serve, tmp_path, check_looks):
    file = tmp_path / "goldens.csv"
    file.write_text("question,answer\nhi,hello\nbye,ciao\n", encoding="utf-8")
    dataset = EvaluationDataset.from_file(file, input_col_name="question", expected_output_col_name="answer")
    test = DatasetTest("goldens.csv", dataset, [ExactMatchMetric()])
    run = run_test(test, FunctionSUT("app", lambda text: "ciao"), data_dir=tmp_path).run_id
    workbench = serve(tmp_path)
    page = visit(workbench, f"/runs/{run}", width=390)
    assert page.get_by_role("link", name="version 1").count() == 0
    page.goto(f"{workbench.address}/datasets")
    page.get_by_label("New data set").fill("greetings")
    page.keyboard.press("Enter")
    page.locator("[data-ready]").wait_for()
    page.get_by_label("File").set_input_files(file)  # the form is open: there is nothing in the table yet
    page.get_by_text("2 rows can be used, 0 cannot").wait_for()
    check_looks(page)
    page.get_by_label("answer becomes").select_option("left out")
    page.get_by_role("region", name="The first rows").filter(has_not_text="hello").wait_for()
    assert page.evaluate("document.activeElement.name") == "answer"
    page.get_by_label("answer becomes").select_option("expected_output")
    page.get_by_role("region", name="The first rows").filter(has_text="hello").wait_for()
    page.get_by_role("button", name="add 2 rows to the table").click()
    page.get_by_role("alert").filter(has_text="2 rows added to the table, and not saved yet").wait_for()
    save(page)
    assert page.locator("#state").inner_text() == "2 of 2 rows"
    assert pulled(tmp_path, "greetings").content_hash == dataset.content_hash
    assert "Version 1 ran in app," in page.locator("#ran").inner_text()
    save(page, "Version 1 has these rows already")
    page.get_by_role(
        "button", name="Duplicate", exact=True
    ).click()  # no message says any more what is not so
    assert page.locator("#message").text_content() == ""
    page.get_by_role("button", name="undo").click()
    page.goto(f"{workbench.address}/runs/{run}")
    page.get_by_role("link", name="greetings, version 1").click()
    assert "ciao" in page.locator("tbody tr").nth(1).inner_text()


def test_data_set_is_tagged_renamed_copied_deleted_and_restored(visit, serve, tmp_path, check_looks):
    EvaluationDataset([Golden("hi", expected_output="hello")]).push("old", data_dir=tmp_path)
    test = DatasetTest("t", pulled(tmp_path, "old"), [ExactMatchMetric()])
    run = run_test(test, FunctionSUT("app", lambda text: "hello"), data_dir=tmp_path).run_id
    workbench = serve(tmp_path)
    workbench.until_runs(1)
    workbench.post(f"/runs/{run}/baseline", subject="dataset:old")
    page, other = visit(workbench, "/datasets/old", width=390), visit(workbench, "/datasets/old")
    cell(page, 0, 1).focus()
    page.keyboard.type("unsaved")
    page.keyboard.press("Enter")
    page.get_by_text("Tags, name, copy, delete").click()
    page.get_by_label("New name").fill("new")
    page.get_by_role("button", name="rename").click()
    assert "Save or undo your edits first" in page.get_by_role("alert").inner_text()
    page.get_by_role("button", name="undo").click()
    page.get_by_label("Tags, separated by commas").fill(f"smoke, {HOSTILE}")
    page.get_by_role("button", name="save tags").click()
    page.get_by_role("link", name="smoke").wait_for()
    page.get_by_text("Tags, name, copy, delete").click()
    check_looks(page)
    page.get_by_label("New name").fill("new")
    page.get_by_role("button", name="rename").click()
    page.wait_for_url("**/datasets/new")
    assert "Baseline of the data set 'new': app" in page.locator("main").inner_text()
    assert "Version 1 ran in app," in page.locator("#ran").inner_text()
    page.goto(f"{workbench.address}/runs/{run}")
    page.get_by_role("link", name="new, version 1").wait_for()
    cell(other, 0, 1).focus()  # somebody else still has the table open under its old name
    other.keyboard.type("mine")
    other.keyboard.press("Enter")
    save(other, "If it was renamed, push it under its new name")
    workbench.post("/datasets/new/copy", name="copy")
    assert pulled(tmp_path, "copy").goldens == pulled(tmp_path, "new").goldens
    assert pulled(tmp_path, "copy").pulled[1].message == "Copy of new, version 1"
    assert "new, version 1" in workbench.ask(f"/runs/{run}")[2]  # not the copy, which has the same goldens
    for path, name in (
        ("copy/rename", "new"),
        ("copy/copy", "new"),
        ("copy/rename", "../x"),
        ("none/rename", "x"),
    ):
        assert workbench.post(f"/datasets/{path}", name=name)[0] == 400, (path, name)
    page.goto(f"{workbench.address}/datasets?tag=smoke")
    assert page.locator("tbody tr").count() == 1
    page.get_by_role("link", name="new", exact=True).click()
    page.keyboard.press("e")
    page.get_by_role("button", name="move to the trash").click()
    page.get_by_text("The data set new is in the trash").wait_for()
    with pytest.raises(UnknownNameError):
        pulled(tmp_path, "new")
    page.goto(f"{workbench.address}/trash")
    page.get_by_role("button", name="move back new").click()
    page.wait_for_url("**/datasets/new")
    page.get_by_role("link", name="smoke").wait_for()
    assert pulled(tmp_path, "new").pulled[1].number == 1


def test_conversations_are_edited_as_turns_and_ten_thousand_rows_stay_usable(visit, workbench, data_dir):
    EvaluationDataset([ConversationalGolden("greets", turns=[Turn("user", "hi")])]).push(
        "talks", data_dir=data_dir
    )
    page = visit(workbench, "/datasets/talks")
    cell(page, 0, 1).focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="add a turn").click()
    page.keyboard.type("hello")
    page.get_by_role("button", name="done").click()
    save(page)
    assert [turn.content for turn in pulled(data_dir, "talks").goldens[0].turns] == ["hi", "hello"]

    EvaluationDataset([Golden(f"number {n}") for n in range(10_000)]).push("many", data_dir=data_dir)
    page = visit(workbench, "/datasets/many")
    page.get_by_text("page 1 of 100").wait_for()
    assert page.locator("tbody tr").count() == 100
    page.get_by_label("Filter").fill("number 9999")
    page.get_by_text("page 1 of 1", exact=True).wait_for()
    cell(page, 0, 0).focus()
    page.keyboard.type("last")
    page.keyboard.press("Enter")
    save(page)
    assert pulled(data_dir, "many").goldens[9999].input == "last"


def test_programs_pull_and_push_over_http(workbench, data_dir, monkeypatch, tmp_path, serve):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MODELGAUGE_WORKBENCH_URL", workbench.address)
    dataset = EvaluationDataset([Golden("a\u2028b", context=["x | y"])])
    assert dataset.push("von Köln", message="Erste").number == 1
    other = EvaluationDataset.pull("von Köln")
    assert other.goldens == dataset.goldens == pulled(data_dir, "von Köln").goldens
    dataset.add_golden(Golden("c"))
    assert dataset.push("von Köln").number == 2
    other.add_golden(Golden("d"))
    with pytest.raises(DatasetConflictError, match="has version 2"):
        other.push("von Köln")
    with pytest.raises(UnknownNameError, match="no version 9"):
        EvaluationDataset.pull("von Köln", 9)
    guarded = serve(data_dir, options=("--read-only", "--token", "0123456789abcdef"))
    monkeypatch.setenv("MODELGAUGE_WORKBENCH_URL", guarded.address)
    with pytest.raises(UsageError, match="MODELGAUGE_WORKBENCH_TOKEN"):
        EvaluationDataset.pull("von Köln")
    monkeypatch.setenv("MODELGAUGE_WORKBENCH_TOKEN", "0123456789abcdef")
    assert EvaluationDataset.pull("von Köln").pulled[1].number == 2
    with pytest.raises(UsageError, match="reading only"):
        other.push("von Köln", parent=2)
    monkeypatch.setenv("MODELGAUGE_WORKBENCH_URL", "http://127.0.0.1:1")
    with pytest.raises(DownloadError, match="modelgauge serve"):
        EvaluationDataset.pull("x")


def test_what_is_wrong_is_refused_with_what_to_do(workbench):
    def send(rows, alias="wrong"):
        status, _, text = workbench.ask(
            f"/datasets/{alias}/versions.json", "POST", json.dumps(rows), Content_Type="application/json"
        )
        return status, text

    assert send({"rows": [{"input": 1}]})[0] == 400
    assert '"row":1' in send({"rows": [{"input": "a"}, {"scenario": "b"}]})[1]
    assert "says no rows" in send([1])[1]
    assert "cannot be the alias" in send({"rows": []}, "..%5Cx")[1]
    assert "has no version 3" in send({"rows": [{"input": "a"}], "parent": 3})[1]
    for path in (
        "/datasets/none/versions",
        "/datasets/none/file.csv",
        "/datasets/%3Cb%3E",
        "/datasets/none/rows.json",
    ):
        assert workbench.ask(path)[0] in (400, 404), path


def test_a_server_that_is_killed_while_it_saves_leaves_whole_versions(serve, data_dir):
    served, confirmed = serve(data_dir), []

    def save_on():
        parent, rows = None, [{"input": "x" * 1000} for _ in range(1000)]
        try:
            while True:
                sent = json.dumps({"parent": parent, "rows": [*rows, {"input": str(parent)}]})
                _, _, text = served.ask(
                    "/datasets/killed/versions.json", "POST", sent, Content_Type="application/json"
                )
                parent = json.loads(text)["version"]["number"]
                confirmed.append(parent)
        except (OSError, HTTPException):  # it was killed
            return

    saving = threading.Thread(target=save_on)
    saving.start()
    while len(confirmed) < 4:
        time.sleep(0.001)
    served.stop(signal.SIGKILL)
    saving.join()
    store = VersionsFolder(data_dir)
    there = [version.number for version in store.versions("killed")]
    assert there[: len(confirmed)] == confirmed
    for number in there:
        assert pulled(data_dir, "killed", number).content_hash == store.version("killed", number).content_hash
