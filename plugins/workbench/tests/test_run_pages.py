"""The page of a run and of its items: what a person looks for and does there."""

import errno
import itertools
import json
import re
import shutil
import signal
import threading
from typing import ClassVar

import pytest

from modelgauge import (
    ChatMessage,
    ChatPrompt,
    ChatRole,
    FunctionSUT,
    PromptWithContext,
    SUTCompletion,
    TestItem,
    run_test,
)
from modelgauge.evals import LLMTestCase, evaluate, observe
from modelgauge.metrics import ContainsMetric, Metric
from modelgauge.testing import FakeAnnotator, FakeSUT, FakeTest
from modelgauge_workbench.runs.run import _cell
from modelgauge_workbench.runs.summary import Summary

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u202e"


def answer(prompt):
    text = prompt.text if hasattr(prompt, "text") else prompt.messages[-1].text
    if "fails" in text:
        return RuntimeError(f"no answer to {text}")
    reasoning = "I think, so I am." if "even" in text else None
    return SUTCompletion(HOSTILE if "hostile" in text else f"yes to {text}", reasoning=reasoning)


def fruit_test(count=60):
    """Items of two groups, of which some are wrong, two fail, and one is hostile."""
    items = [
        TestItem(
            [
                PromptWithContext(
                    f"{'even' if n % 2 == 0 else 'odd'} question {n}",
                    context={"parity": "even" if n % 2 == 0 else "odd"},
                )
            ],
            id=f"q{n}",
        )
        for n in range(count)
    ]
    chat = ChatPrompt(
        [ChatMessage(ChatRole.system, "Be short."), ChatMessage(ChatRole.user, f"hostile {HOSTILE}")]
    )
    items += [
        TestItem([PromptWithContext(f"fails {n}", context={"parity": "odd"})], id=f"f{n}") for n in range(2)
    ]
    items += [TestItem([PromptWithContext(chat, context={"parity": HOSTILE})], id=f"h/{HOSTILE}")]

    def measure(item):
        return {"right": not item.text.endswith("7"), "length": float(len(item.text))}

    judge = FakeAnnotator("judge", {"score": 0.5, "reason": "half of it is right"})
    return FakeTest("fruits", items, measure, annotators={"judged": judge})


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def runs(data):
    """Two runs of a test; the items of the second are looked at."""
    return [
        run_test(fruit_test(), FakeSUT(sut, answer), data_dir=data, max_retries=0).run_id
        for sut in ("first", "second")
    ]


@pytest.fixture(scope="module")
def workbench(serve, data, runs):
    return serve(data)


@pytest.fixture
def run(workbench, runs, visit):
    """The page of the second run, when the index has it."""

    def of(path="", **options):
        workbench.until("/runs?q=second", runs[1])
        return visit(workbench, f"/runs/{runs[1]}{path}", **options)

    return of


def press(page, key):
    """Press a key when the page listens to it, which is so when all of it is loaded."""
    page.wait_for_load_state()
    page.keyboard.press(key)


def places(page):
    return [one.inner_text() for one in page.locator("#rows tbody th").all()]


def test_a_run_shows_its_report_and_leads_to_the_items_behind_it(run, runs):
    page = run()
    assert page.locator("h1").inner_text() == "fruits on second"
    page.get_by_role("link", name="RuntimeError at SUT").click()
    assert places(page) == ["61", "62"]
    page.go_back()
    page.locator("select[name=show]").select_option("wrong")
    page.wait_for_url("**show=wrong**")
    assert places(page) == ["8", "18", "28", "38", "48", "58"]
    page.locator("select[name=is-parity]").select_option("odd")
    page.wait_for_url("**is-parity=odd**")
    page.locator("select[name=sort]").select_option("length>")
    page.wait_for_url("**sort=length%3E**")
    assert places(page) == ["18", "28", "38", "48", "58", "8"]
    press(page, "j")
    press(page, "j")
    press(page, "Enter")
    page.wait_for_url("**/items/28?*")
    assert "2 of 6 listed" in page.locator(".bar").inner_text()
    press(page, "j")
    page.wait_for_url("**/items/38?*")
    press(page, "ArrowLeft")
    page.wait_for_url("**/items/28?*")
    press(page, "Escape")
    page.wait_for_url(f"**/runs/{runs[1]}?show=wrong**")
    assert places(page)[0] == "18"


def test_verdicts_lead_to_their_items(tmp_path, serve, visit):
    case = LLMTestCase(input="Do they fit?", actual_output="yes", expected_output="no", completion_time=1e-6)
    case_run = evaluate(
        [case, LLMTestCase(input="Really?", actual_output="yes", expected_output="yes")],
        [ContainsMetric()],
        data_dir=tmp_path,
        print_results=False,
    )
    workbench = serve(tmp_path)
    workbench.until("/runs", case_run.run_id)
    page = visit(workbench, f"/runs/{case_run.run_id}")
    page.get_by_role("link", name="1 failed").click()
    page.wait_for_url("**passed=no**")
    assert places(page) == ["1"]
    assert page.locator("select[name=passed]").input_value() == "no"
    assert "below 1: ContainsMetric" in page.locator("#rows tbody").inner_text()
    page.locator("#rows tbody th a").click()
    page.wait_for_selector("html[data-ready]")
    text = page.locator("#item").inner_text()
    assert "Expected" in text
    assert "under 1 ms" in text
    assert "null" not in text


class _Marks(Metric):
    def score(self, case):
        return self.marks[case.input]


class Style(_Marks):
    marks: ClassVar = {"a": 1, "b": 1, "c": 0.2, "d": 1}


class Tone(_Marks):
    marks: ClassVar = {"a": 1, "b": 0.1, "c": 0.2, "d": 1}

    def score(self, case):
        if case.input == "d":
            raise ValueError("no tone")
        return super().score(case)


def test_failed_items_come_first_and_chosen_columns_stay_in_the_address(tmp_path, serve, visit):
    cases = [LLMTestCase(name, f"answer {name}", "expected") for name in "abcd"]
    metrics = [Style(threshold=0.5), Tone(threshold=0.7)]
    app_run = evaluate(cases, metrics, data_dir=tmp_path, print_results=False, ignore_errors=True).run_id
    workbench = serve(tmp_path)
    workbench.until(f"/runs/{app_run}", "4 of 4")
    page = visit(workbench, f"/runs/{app_run}")

    def heads():
        return page.locator("#rows thead th").all_inner_texts()

    assert places(page) == ["2", "3", "4", "1"]
    reasons = [text.strip() for text in page.locator("#rows td.reason").all_inner_texts()]
    assert reasons[:2] == ["below 0.7: Tone", "below 0.5: Style; below 0.7: Tone"]
    assert reasons[2:] == ["not judged: ValueError at annotator", "passed"]
    assert heads() == ["#", "question", "result", "answer", "Tone", "Style"]
    assert page.locator("select[name='Tone.passed']").is_hidden()
    page.get_by_text("columns", exact=True).click()
    page.get_by_role("checkbox", name="Style").uncheck()
    page.get_by_label("expected", exact=True).check()
    chosen = ["#", "question", "result", "answer", "expected", "Tone"]
    page.locator("#rows thead", has_text="expected").wait_for()
    assert heads() == chosen
    page.locator("#rows tbody th a").first.click()
    page.wait_for_selector("html[data-ready]")
    assert "1 of 4 listed" in page.locator(".bar").inner_text()
    press(page, "Escape")
    page.wait_for_url(f"**/runs/{app_run}?columns=**")
    assert heads() == chosen
    page.locator("select[name=sort]").select_option("place")
    page.wait_for_url("**sort=place**")
    assert (places(page), heads()) == (["1", "2", "3", "4"], chosen)


def test_items_are_searched_and_paged(run):
    page = run()
    assert len(places(page)) == 50
    press(page, "n")
    page.wait_for_url("**page=2**")
    assert places(page) == [str(n) for n in range(51, 64)]
    for query, found in {
        "q=quest*+17": ["18"],
        "q=quest+17": [],
        "q=nowhere": [],
        "q=fails": ["61", "62"],
        "is-parity=even&q=2*": 6,
        "failure=9&show=none&page=0": 50,
        "right.passed=maybe": 50,
        "sort=length<&q=1*": 13,
    }.items():
        page.goto(f"{page.url.partition('?')[0]}?{query}")
        assert (places(page) if isinstance(found, list) else len(places(page))) == found, query


def test_an_item_shows_what_was_asked_answered_and_judged(run, workbench, runs):
    page = run("/items/1")
    page.wait_for_selector("html[data-ready]")
    text = page.locator("main").inner_text()
    for part in (
        "q0",
        "even question 0",
        "yes to even question 0",
        "judged\t0.5",
        "half of it is right",
        "right = 1",
        "reasoning, 5 words",
    ):
        assert part in text, part
    assert "I think" not in text
    page.get_by_role("link", name="first").click()
    page.wait_for_url(f"**/runs/{runs[0]}/items/1")
    page.goto(f"{workbench.address}/runs/{runs[1]}/items/61")
    assert "no answer to fails 0" in page.locator("#item").inner_text()
    assert workbench.ask(f"/runs/{runs[1]}/items/64")[0] == 404
    assert workbench.ask("/runs/nothing/items/1")[0] == 404


def test_hostile_texts_are_texts(run):
    page = run("/items/63")
    page.wait_for_selector("html[data-ready]")
    assert page.locator("main img, main script:not([type])").count() == 0
    assert "</script><script>alert(1)</script>" in page.locator("#item").inner_text()
    assert "U+202E" in page.locator("#item").inner_text()
    page = run("?q=hostile")
    assert places(page) == ["63"]
    assert page.locator("main img, main script").count() == 0


def test_notes_are_kept_in_files_and_undone(run, data, runs, workbench):
    file = data / "runs" / runs[1] / "notes.json"
    page = run()
    press(page, "f")
    page.get_by_text("★ favourite").wait_for()
    press(page, "e")
    page.get_by_label("Tags").fill(f"good,  later , {HOSTILE[:40]}, good")
    page.locator("textarea").fill("look\nagain")
    page.get_by_role("button", name="Save").click()
    page.locator(".notes pre", has_text="look\nagain").wait_for()
    assert json.loads(file.read_text())["favourite"] is True
    assert json.loads(file.read_text())["tags"] == ["good", "later", HOSTILE[:40]]
    press(page, "u")
    page.get_by_text("Add tags or a note").wait_for()
    assert json.loads(file.read_text())["note"] == ""
    press(page, "u")
    page.locator(".notes pre", has_text="look\nagain").wait_for()
    page.goto(f"{workbench.address}/runs?favourite=1&tag=good")
    assert page.locator("tbody tr").count() == 1


def test_a_run_has_its_page_before_the_folders_are_looked_at_again(serve, data, runs, tmp_path):
    workbench = serve(tmp_path)
    for name, address, shown in zip(
        runs, (f"/runs/{runs[0]}", f"/compare?runs={runs[1]}"), (200, 303), strict=True
    ):
        assert "There is no run" in workbench.ask(address)[2]
        shutil.copytree(data / "runs" / name, tmp_path / "runs" / name)
        assert workbench.ask(address)[0] == shown


def test_a_run_goes_to_the_trash_and_comes_back(visit, workbench, data, runs):
    page = visit(workbench, f"/runs/{runs[0]}")
    page.get_by_role("button", name="move to the trash").click()
    page.wait_for_url("**deleted=**")
    assert not (data / "runs" / runs[0]).exists()
    assert page.locator(f"a[href='/runs/{runs[0]}']").count() == 0
    press(page, "u")
    page.wait_for_url(f"**/runs/{runs[0]}")
    assert page.locator("h1").inner_text() == "fruits on first"


def test_a_run_is_shared_as_one_file(run, visit, workbench, tmp_path, chromium):
    page = run()
    for name, has_texts in {"share as a file": True, "without texts": False}.items():
        with page.expect_download() as begun:
            page.get_by_role("link", name=name).click()
        begun.value.save_as(tmp_path / "run.html")
        shared = chromium.new_page()
        shared.goto((tmp_path / "run.html").as_uri())
        shared.wait_for_selector("html[data-ready]")
        assert ("even question 0" in shared.locator(".table").inner_text()) == has_texts
        shared.close()


def test_a_run_is_shown_while_it_goes_on(visit, workbench, data):
    steps, asked, is_up = threading.Semaphore(0), threading.Semaphore(0), threading.Event()

    calls = itertools.count(1)

    def slow(_):
        asked.release()
        assert steps.acquire(timeout=100)
        number = next(calls)
        if number == 2:
            raise RuntimeError("it broke")
        if number > 2 and not is_up.is_set():
            raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody there")
        return "done"

    test = FakeTest("slow", [TestItem([one], id=one) for one in ("one", "two", "three")])
    options = {"data_dir": data, "concurrency": 1, "max_retries": 1, "max_cost": 5}
    going_on = threading.Thread(target=run_test, args=(test, FunctionSUT("slow", slow)), kwargs=options)
    going_on.start()
    try:
        assert asked.acquire(timeout=100)
        workbench.until("/runs", "slow")
        page = visit(workbench, "/runs?test=slow")
        assert "running" in page.locator("tbody").inner_text()
        page.locator("tbody th a").click()
        page.get_by_text("So far, 0").wait_for()
        steps.release()
        page.get_by_text("So far, 1 of 3 items").wait_for()
        page.locator("#rows").get_by_text("done").wait_for()
        assert page.locator("select[name=sort] option:checked").inner_text() == "latest first"
        page.get_by_text("columns", exact=True).click()
        page.get_by_role("checkbox", name="answer").uncheck()
        page.locator("#rows").get_by_text("done").wait_for(state="detached")
        steps.release()
        page.locator("#progress li", has_text="RuntimeError at sut slow").get_by_text("it broke").wait_for()
        for _ in range(99):
            steps.release()
        page.get_by_text("'slow' cannot be reached: its calls wait for it.").wait_for()
        assert "$0.00 of at most $5.00" in page.locator("#progress").inner_text()
        assert page.get_by_role("button", name="trash").count() == 0
        assert page.locator("#rows thead th").all_inner_texts()[:2] == ["#", "question"]
        assert page.locator("#rows").get_by_text("done").count() == 0
    finally:
        is_up.set()
        steps.release()
        going_on.join()
    page.get_by_text("answered 1", exact=False).first.wait_for()


def test_a_server_that_is_killed_leaves_whole_notes(serve, tmp_path):
    """Notes are written again and again until the process is gone, at whatever moment."""
    record = run_test(FakeTest("t", ["one"]), FakeSUT("s"), data_dir=tmp_path)
    for _ in range(3):
        workbench = serve(tmp_path)
        workbench.until("/runs", record.run_id)
        token = re.search(r'name="csrf" value="(\w+)"', workbench.ask(f"/runs/{record.run_id}")[2])[1]
        written = threading.Semaphore(0)

        def write(token=token, workbench=workbench, written=written):
            number = 0
            while True:
                number += 1
                try:
                    workbench.ask(
                        f"/runs/{record.run_id}/notes", "POST", {"csrf": token, "note": f"{number} " * 1000}
                    )
                except OSError:
                    return
                written.release()

        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(20):
            assert written.acquire(timeout=100)
        assert workbench.stop(signal.SIGKILL) != 0
        writer.join()
        notes = json.loads((tmp_path / "runs" / record.run_id / "notes.json").read_text())["note"]
        assert len(set(notes.split())) == 1
        assert len(notes.split()) == 1000


def test_spans_stand_as_a_tree(visit, serve, tmp_path):
    @observe(type="retriever")
    def look_up(text):
        return [text]

    @observe
    def app(text):
        return "".join(look_up(text))

    run_id = run_test(FakeTest("t", ["one"]), FunctionSUT("app", app), data_dir=tmp_path).run_id
    workbench = serve(tmp_path)
    workbench.until("/runs", run_id)
    page = visit(workbench, f"/runs/{run_id}/items/1")
    assert [text.split()[0] for text in page.locator(".spans summary").all_inner_texts()] == [
        "app",
        "look_up",
    ]


@pytest.mark.parametrize(
    ("measured", "state", "cell"),
    [
        ({"a": 0.2, "a.passed": 0.0, "b": 1.0, "b.passed": 1.0}, "below threshold", ("0.2", "missed")),
        ({"a": 0.2, "a.passed": 1.0, "b": 0.0, "b.passed": 0.0}, "below threshold", ("0.2", "")),
        ({"a": 0.0, "b": 1.0}, "wrong", ("0", "missed")),
        ({"b": 0.0, "a": 1.0}, "wrong", ("1", "")),
        ({"b": 1.0}, "ok", ("not measured", "not-measured")),
        ({}, "failed", ("failed", "missed")),
    ],
)
def test_score_has_the_look_of_its_own_threshold(measured, state, cell):
    assert _cell("a", measured, state, Summary("", "")) == cell


def test_failed_item_does_not_lack_a_measurement_that_only_some_items_have():
    assert _cell("a", {}, "failed", Summary("", "", of_some=["a"])) == ("not measured", "not-measured")


def test_what_could_not_be_judged_is_no_failure_of_an_app():
    assert _cell("a", {}, "failed", Summary("", "", measured=["passed"])) == ("not judged", "not-measured")


def test_items_show_value_not_measured_or_failed(serve, tmp_path):
    items = [
        TestItem([f"{kind} {n}"], id=f"{kind}{n}") for kind in ("long", "short", "fails") for n in range(2)
    ]

    def measure(item):
        return {"right": True} | ({"length": float(len(item.text))} if "long" in item.test_item.id else {})

    run_id = run_test(
        FakeTest("mixed", items, measure), FakeSUT("s", answer), data_dir=tmp_path, max_retries=0
    ).run_id
    workbench = serve(tmp_path)
    workbench.until(f"/runs/{run_id}", "6 of 6")
    page = workbench.ask(f"/runs/{run_id}")[2]
    cells = re.findall(r'<td class="number ([\w-]*)" data-name="(\w+)">([^<]*)<', page)
    unmeasured = ("not-measured", "length", "not measured")
    assert cells == [
        *[("", "right", "1"), ("", "length", "13")] * 2,
        *[("", "right", "1"), unmeasured] * 2,
        *[("missed", "right", "failed"), unmeasured] * 2,
    ]
