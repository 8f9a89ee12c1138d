"""Starting runs from pages, as a person does it."""

import shutil
from pathlib import Path

import pytest

HOSTILE = "<script>alert(1)<b>"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    return Path(shutil.copy(Path(__file__).with_name("slow_sut.py"), tmp_path_factory.mktemp("plugin")))


@pytest.fixture(scope="module")
def workbench(serve, plugin, tmp_path_factory):
    return serve(tmp_path_factory.mktemp("data"), options=("--plugin", str(plugin)))


def test_a_person_orders_looks_at_the_estimate_starts_cancels_and_resumes(
    visit, workbench, plugin, check_looks
):
    page = visit(workbench, "/starts", width=320)
    page.keyboard.press("/")
    page.keyboard.type("demo_o1")
    assert page.get_by_label("Test 2").is_visible()  # one more field
    page.get_by_label("SUT 1").fill(f"{HOSTILE}=slow")
    page.get_by_role("button", name="Estimate").click()
    assert "Did you mean 'demo_01'" in page.locator("#tests-problem-1").inner_text()
    assert page.get_by_label("Test 1").get_attribute("aria-invalid") == "true"
    check_looks(page)
    page.get_by_label("Test 1").fill("demo_01")
    page.get_by_text("how many items").click()
    page.get_by_label("Items, at most").fill("3")
    page.get_by_label("Items, at most").press("Enter")

    page.get_by_text("To pay: 3 calls, about").wait_for()
    assert not (workbench.data_dirs[0] / "runs").exists()
    check_looks(page)
    page.keyboard.press("s")
    running = page.get_by_role("link", name=f"demo_01 on {HOSTILE}")
    running.wait_for()
    assert page.get_by_role("status").inner_text() == "Running."
    job = page.url
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled: what was answered is kept.").wait_for()
    check_looks(page)

    page.get_by_role("link", name=f"demo_01 on {HOSTILE}").click()
    page.get_by_role("button", name="resume").click()
    page.get_by_text("To pay: 2 calls, about").wait_for()  # of the three items one has a record
    page.get_by_role("button", name="Start").click()
    page.get_by_role("status").get_by_text("Running.").wait_for()
    (plugin.parent / "go").touch()
    page.get_by_role("status").get_by_text("Done.").wait_for()
    assert page.locator("td", has_text="finished").count() == 1
    page.go_back()
    page.goto(job)
    page.keyboard.press("a")
    page.wait_for_url("**/starts?job=*")
    assert page.get_by_label("Items, at most").input_value() == "3"
    assert page.get_by_label("SUT 1").input_value() == f"{HOSTILE}=slow"
    assert page.locator("#queue tbody tr").count() == 2
    check_looks(page)


def test_what_is_withdrawn_can_be_put_back(visit, workbench):
    page = visit(workbench, "/starts?tests=demo_01&suts=demo_yes_no")
    page.keyboard.press("e")
    page.get_by_role("button", name="Start").wait_for()
    page.keyboard.type("xua")  # without waiting
    page.wait_for_url("**/starts?job=*")
    page.get_by_role("link", name="demo_01 on demo_yes_no").click()
    page.get_by_role("button", name="Withdraw").wait_for()
    assert "Withdrawn." not in page.locator("main").inner_text()


def test_keys_pressed_before_page_is_loaded_are_followed(visit, workbench):
    page = visit(workbench, "/starts?tests=demo_01&suts=demo_yes_no")
    page.keyboard.press("e")
    page.get_by_role("button", name="Start").wait_for()
    scripts = []
    page.route("**/keys.js", lambda script: scripts.append(script))  # noqa: PLW0108  Playwright marks handlers
    page.goto(page.url, wait_until="commit")
    page.get_by_role("button", name="Withdraw").wait_for()
    page.keyboard.type("x")
    scripts[0].continue_()
    page.get_by_text("Withdrawn.").wait_for()


def test_a_run_that_cannot_start_says_why(visit, workbench):
    page = visit(workbench, "/starts?tests=demo_01&suts=openai/x")
    page.get_by_role("button", name="Estimate").click()
    page.get_by_text("OPENAI_API_KEY").wait_for()
    assert page.get_by_role("button", name="Start").count() == 0


def test_pairs_that_do_not_fit_are_named_with_the_estimate(visit, workbench):
    page = visit(workbench, "/starts?tests=demo_01&tests=slow_c*&suts=slow")
    page.get_by_role("button", name="Estimate").click()
    page.get_by_text("Left out: slow_chat on slow.").wait_for()
    assert "needs AcceptsChatPrompt" in page.locator("main").inner_text()
    page.get_by_role("button", name="Start").wait_for()


def test_as_many_jobs_run_at_once_as_the_server_was_told(serve, plugin, tmp_path):
    plugin = Path(shutil.copy(plugin, tmp_path))
    served = serve(tmp_path / "data", options=("--plugin", str(plugin), "--parallel", "2"))
    order = {"tests": "demo_01", "suts": "slow", "max_test_items": "2"}
    jobs = [served.post("/starts", **order)[1]["location"] for _ in range(3)]
    for job in jobs:
        served.post(f"{job}/start")
    for job in jobs[:2]:
        served.until(job, "Running.")
    assert "Running." not in served.ask(jobs[2])[2]
    (tmp_path / "go").touch()
    for job in jobs:
        served.until(job, "Done.")


def test_what_no_page_orders_is_refused(workbench, serve):
    status, _, text = workbench.post("/starts", tests="demo_01", suts="replay/../../etc/passwd")
    assert status == 200
    assert "names a file or an address" in text
    assert workbench.post("/starts/resume", run="../../elsewhere")[0] == 400
    assert workbench.ask("/starts/..%2F..%2Fx")[0] in (400, 404)
    readers = serve(workbench.data_dirs[0], options=("--read-only",))
    assert readers.post("/starts/demo")[0] == 403
    assert "Estimate</button>" not in readers.ask("/starts")[2]
