"""Edits that are not saved, kept over a reload and a crash; edits of many rows at once, undone and redone."""

import subprocess
import time

import pytest
from browsers import program

from modelgauge.data.test_cases import ConversationalGolden, Golden, LLMTestCase, Turn
from modelgauge.datasets.dataset import EvaluationDataset

MANY = 10_000


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


def write(page, line, place, text, end="Enter"):
    cell(page, line, place).focus()
    page.keyboard.type(text)
    if end:
        page.keyboard.press(end)


def save(page, says="Saved as version"):
    page.keyboard.press("Control+s")
    page.get_by_role("alert").filter(has_text=says).wait_for()


def restore(page, says="Your edits are in the table again."):
    page.get_by_role("button", name="restore your unsaved edits").click()
    page.get_by_role("alert").filter(has_text=says).wait_for()


def outputs(data_dir, alias):
    return [golden.expected_output for golden in pulled(data_dir, alias).goldens]


# --- what is not saved yet


def test_what_is_not_saved_survives_a_reload_and_a_second_window(visit, workbench, data_dir):
    EvaluationDataset([Golden("a"), Golden("b"), Golden("c")]).push("kept", data_dir=data_dir)
    page = visit(workbench, "/datasets/kept")
    write(page, 0, 1, "first")
    cell(page, 2, 0).focus()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_label("What you changed").fill("half a message")
    write(page, 1, 1, "half a wo", end="")  # the cell is still open
    page.reload()
    offer = page.get_by_role("region", name="Unsaved edits")
    offer.get_by_text("of version 1").wait_for()
    assert "2 rows and 1 deleted row" in offer.inner_text()
    assert cell(page, 0, 1).inner_text() == ""  # nothing is applied unasked

    second = page.context.new_page()
    second.goto(page.url)
    second.get_by_role("button", name="discard").click()
    second.get_by_role("button", name="put the edits back").click()
    write(second, 0, 1, "second window")
    restore(second, "Save or undo what you changed here first")
    restore(page)
    texts = [cell(page, line, 1).inner_text() for line in (0, 1)]
    assert texts == ["first", "half a wo"]
    assert page.get_by_label("What you changed").input_value() == "half a message"
    page.reload()  # a restored draft is one of this visit
    page.locator("#dataset[data-ready]").wait_for()
    assert page.get_by_role("button", name="restore your unsaved edits").count() == 2  # that window has some
    offer.locator("p", has_text="2 rows and 1 deleted row").get_by_role("button", name="restore").click()
    page.get_by_role("alert").filter(has_text="Your edits are in the table again.").wait_for()
    save(page)
    assert outputs(data_dir, "kept") == ["first", "half a wo"]
    page.reload()
    offer.get_by_role("button", name="discard").click()
    page.reload()
    page.locator("#dataset[data-ready]").wait_for()
    second.keyboard.press("Control+z")  # a window that is still open keeps its edits, until there are none
    page.reload()
    page.locator("#dataset[data-ready]").wait_for()
    assert page.get_by_role("button", name="discard").count() == 0


def test_a_draft_is_never_put_over_what_somebody_saved_in_between(visit, workbench, data_dir):
    first = EvaluationDataset([Golden("a"), Golden("b")])
    first.push("between", data_dir=data_dir)
    page = visit(workbench, "/datasets/between")
    write(page, 0, 1, "mine")
    write(page, 1, 1, "only mine")
    other = pulled(data_dir, "between")
    other.goldens = [Golden("a", expected_output="theirs"), *other.goldens[1:], Golden("c")]
    other.push("between", author="ben", data_dir=data_dir)
    page.reload()
    page.get_by_text("Version 2 by ben was saved since").wait_for()
    assert cell(page, 0, 1).inner_text() == "theirs"
    restore(page, "version 2 is the latest: when you save, you see both")
    save(page, "Somebody saved meanwhile")
    page.get_by_label("theirs: theirs").check()
    page.get_by_role("button", name="put both into the table").click()
    save(page, "Saved as version 3")
    assert outputs(data_dir, "between") == ["theirs", "only mine", None]


def test_drafts_of_another_data_set_with_the_same_name_are_not_offered(visit, workbench, data_dir):
    EvaluationDataset([Golden("here")]).push("named alike", data_dir=data_dir)
    page = visit(workbench, "/datasets/named alike")
    page.locator("#dataset[data-ready]").wait_for()
    page.evaluate(
        """() => localStorage.setItem("modelgauge draft /datasets/named%20alike x", JSON.stringify(
            { base: { number: 1, content_hash: "of another folder" }, list: [], extra: [], time: 0 }))"""
    )
    page.reload()
    page.locator("#dataset[data-ready]").wait_for()
    assert page.get_by_role("button", name="discard").count() == 0
    write(page, 0, 1, "x" * 10)
    page.evaluate(
        "() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') } }"
    )
    write(page, 0, 1, "y")
    page.get_by_text("too much for this browser to keep over a reload").wait_for()


def browser_process(program, profile):
    """A browser in a process of its own, and the address at which it is controlled."""
    file = profile / "DevToolsActivePort"
    file.unlink(missing_ok=True)
    options = ("--headless=new", "--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={profile}")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([program, *options, "about:blank"], **quiet)
    while not (file.exists() and file.read_text().count("\n")):
        assert process.poll() is None, "the browser ended"
        time.sleep(0.05)
    return process, f"http://127.0.0.1:{file.read_text().splitlines()[0]}"


def test_what_is_not_saved_survives_a_browser_that_is_killed(chromium, workbench, data_dir, tmp_path):
    EvaluationDataset([Golden("a")]).push("crash", data_dir=data_dir)
    disk = tmp_path / "Default" / "Local Storage" / "leveldb"
    for begins in (True, False):
        process, address = browser_process(program("chromium"), tmp_path)
        try:
            browser = chromium.browser_type.connect_over_cdp(address)
            page = browser.contexts[0].new_page()
            page.goto(f"{workbench.address}/datasets/crash")
            if begins:
                write(page, 0, 1, "outlives-it", end="")
                while not any(b"outlives-it" in one.read_bytes() for one in disk.glob("*.log")):
                    time.sleep(0.05)  # the browser writes to its disk now and then
            else:
                restore(page)
                save(page)
        finally:
            process.kill()
            process.wait()
    assert outputs(data_dir, "crash") == ["outlives-it"]


# --- many rows at once


def choose_all(page):
    page.get_by_label("choose all rows shown").check()


def open_part(page, name):
    page.get_by_text(name, exact=True).click()


def test_many_questions_are_filled_replaced_sorted_deleted_undone_and_redone(visit, workbench, data_dir):
    goldens = [Golden(f"question {n}", tags=["new"], comments="test") for n in range(MANY)]
    dataset = EvaluationDataset(goldens)
    dataset.add_test_case(LLMTestCase("question x", actual_output="test"))
    dataset.push("many", data_dir=data_dir)
    page = visit(workbench, "/datasets/many")
    state, undo, redo = (
        page.locator("#state"),
        *(page.get_by_role("button", name=name, exact=True) for name in ("Undo", "Redo")),
    )
    page.get_by_text("10,001 of 10,001 rows").wait_for()

    open_part(page, "Fill a column")
    page.locator("[name=filled]").select_option("expected_output")
    page.get_by_label("Value").fill("filled")
    page.get_by_role("button", name="write into the chosen rows").click()
    page.get_by_role("alert").filter(has_text="Choose rows first").wait_for()
    page.get_by_label("Filter").fill("question 99")
    choose_all(page)
    assert "111 of 10,001 rows · 111 chosen" in state.inner_text()
    page.get_by_role("button", name="write into the chosen rows").click()
    page.get_by_role("alert").filter(has_text="111 rows changed.").wait_for()

    page.get_by_label("Filter").fill("")
    open_part(page, "Find and replace")
    page.get_by_label("Find", exact=True).fill("test")
    page.get_by_label("Replace by").fill("$& user")  # no pattern
    page.get_by_role("button", name="replace in the rows shown").click()
    page.get_by_role("alert").filter(has_text="10,001 rows changed.").wait_for()

    page.get_by_role("button", name="input", exact=True).click()
    page.get_by_role("button", name="input ↑").click()
    assert cell(page, 0, 0).inner_text() == "question x"
    assert cell(page, 1, 0).inner_text() == "question 9999"  # by number
    page.get_by_role("button", name="keep this order").click()
    page.get_by_role("button", name="Delete", exact=True).click()  # the 111 that are chosen
    page.get_by_text("9,890 of 9,890 rows").wait_for()
    for _ in range(4):
        undo.click()
    assert "not saved" not in state.inner_text()
    assert "10,001 of 10,001 rows" in state.inner_text()
    for _ in range(4):
        redo.click()
    undo.click()  # the rows are there again
    save(page)

    saved = pulled(data_dir, "many")
    assert [case.actual_output for case in saved.test_cases] == ["$& user"]
    expected = [
        Golden(
            one.input,
            expected_output="filled" if n // 100 == 99 or n // 10 == 99 or n == 99 else None,
            tags=["new"],
            comments="$& user",
        )
        for n, one in enumerate(goldens)
    ]
    assert saved.goldens == expected[::-1]


def test_what_a_bulk_edit_makes_wrong_is_marked_until_it_is_undone(visit, workbench, data_dir):
    EvaluationDataset([Golden(f"n {n}", additional_metadata={"page": n}) for n in range(MANY)]).push(
        "wrong", data_dir=data_dir
    )
    page = visit(workbench, "/datasets/wrong")
    page.get_by_text("10,000 of 10,000 rows").wait_for()
    choose_all(page)
    open_part(page, "Fill a column")
    page.locator("[name=filled]").select_option("additional_metadata")
    page.get_by_label("Value").fill("much")
    page.get_by_role("button", name="write into the chosen rows").click()
    page.get_by_text("10,000 rows cannot be saved").wait_for()
    save(page, "Row 1 cannot be saved")
    page.get_by_role("button", name="Undo", exact=True).click()
    assert "cannot be saved" not in page.locator("#state").inner_text()


def test_conversations_are_begun_by_a_choice_and_edited_as_turns_also_many(visit, workbench, data_dir):
    page = visit(workbench, "/datasets")
    page.get_by_label("New data set").fill("talks")
    page.get_by_label("of conversations").check()
    page.get_by_role("button", name="Open its table").click()
    assert "A golden is a conversation" in page.locator("main").inner_text()
    page.get_by_role("button", name="add a row").click()
    write(page, 0, 0, "asks for a user")
    cell(page, 0, 1).focus()
    page.keyboard.press("Enter")
    for text in ("I am a user", "hello user"):
        page.get_by_role("button", name="add a turn").click()
        page.keyboard.type(text)
    page.reload()  # the form was still open
    restore(page)
    assert cell(page, 0, 1).inner_text() == "user: I am a user\nassistant: hello user"
    for _ in range(9):
        choose_all(page)
        page.get_by_role("button", name="Duplicate", exact=True).click()
    open_part(page, "Find and replace")
    page.get_by_label("Find", exact=True).fill("user")
    page.get_by_label("Replace by").fill("guest")
    page.get_by_role("button", name="replace in the rows shown").click()
    page.get_by_role("alert").filter(has_text="512 rows changed.").wait_for()
    save(page)
    talk = ConversationalGolden(
        "asks for a guest", turns=[Turn("user", "I am a guest"), Turn("assistant", "hello guest")]
    )
    assert pulled(data_dir, "talks").goldens == [talk] * 512


def test_what_the_page_asks_fits_and_is_accessible_on_a_phone(
    visit, workbench, data_dir, tmp_path, check_looks
):
    hostile, wide = "<b>{{ 7*7 }}\u202e</b>", "w" * 400
    EvaluationDataset([Golden(hostile), Golden(wide)]).push("asks", data_dir=data_dir)
    page = visit(workbench, "/datasets/asks", width=320)
    assert "U+202E" in cell(page, 0, 0).inner_text()
    for name in ("Columns", "Find and replace", "Fill a column", "Import"):
        open_part(page, name)
    check_looks(page)
    file = tmp_path / f"{'w' * 200}.csv"
    file.write_text(f'input,{wide},"{hostile}"\n{wide},=1,2\n{wide}\n', encoding="utf-8")
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="look at it").click()
    page.get_by_role("alert").filter(has_text="1 row can be used, 1 cannot").wait_for()
    check_looks(page)
    page.get_by_role("button", name="add 1 row to the table").click()
    write(page, 0, 1, wide)
    other = pulled(data_dir, "asks")
    other.goldens = [Golden(hostile, expected_output=hostile), *other.goldens[1:]]
    other.push("asks", author=wide[:90], message=wide, data_dir=data_dir)
    page.reload()
    page.get_by_role("button", name="restore your unsaved edits").wait_for()
    check_looks(page)
    restore(page)
    save(page, "Somebody saved meanwhile")
    check_looks(page)
