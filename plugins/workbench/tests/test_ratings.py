"""Ratings: a queue that several people work on, what comes out of it, and what must not happen to it."""

import json
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException

import pytest

from modelgauge import FunctionSUT, PromptResponseTest, TestItem, run_test
from modelgauge_workbench.people.guidelines import Guidelines, OtherVersionError, add_version, versions

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e"


class Polite(PromptResponseTest):
    def make_test_items(self, dependencies):
        for number in range(8):
            yield TestItem(f"{number} {HOSTILE}", id=f"{HOSTILE} {number}", context={"target": HOSTILE})

    def measure_quality(self, item):
        return {"polite": "please" in item.text, "warmth": len(item.text) % 10 / 10}


def polite(text):
    return f"please {text[0]} {HOSTILE}" if text[0] in "0246" else f"no {text[0]}"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def runs(data_dir):
    suts = (FunctionSUT(f"secret-{name}", polite) for name in ("apple", "pear"))
    return [run_test(Polite("polite"), sut, data_dir=data_dir).run_id for sut in suts]


@pytest.fixture(scope="module")
def workbench(data_dir, runs, serve):
    served = serve(data_dir)
    wait_for(served, runs)
    return served


def wait_for(served, runs):
    """Wait until the index has all items."""
    queue = "&".join(f"run={run}" for run in runs)
    served.until(f"/ratings/queue?{queue}", f"of {8 * len(runs)} answers")


def press_at_once(page, keys, result):
    """Press keys without waiting between them, until the page has a text."""
    page.wait_for_load_state()
    page.keyboard.type(keys)
    page.locator("main").get_by_text(result).first.wait_for()


def lines(data_dir):
    return [
        json.loads(line)
        for file in data_dir.glob("ratings/*.jsonl")
        for line in file.read_text().splitlines()
    ]


def test_two_people_rate_blindly_by_keyboard_and_their_agreement_shows(visit, workbench, data_dir, runs):
    pages = []
    for name in ("ann", f"ben {HOSTILE[:40]}"):
        page = visit(workbench, "/ratings")
        for box in page.get_by_role("checkbox").all():
            box.check()
        page.get_by_label("Answers, drawn at random").fill("10")
        page.get_by_role("button", name="Rate these answers").click()
        page.get_by_label("Your name").first.fill(name)
        page.get_by_role("button", name="Begin").click()
        pages.append(page)
    ann, ben = pages
    for page in pages:
        assert "secret" not in page.content()
        assert HOSTILE[:-1] in page.locator("main").inner_text().replace("\n", "")
    ann.wait_for_load_state()
    ann.keyboard.type(f"54wwhy 5 {HOSTILE[:20]}")
    ann.keyboard.press("Escape")
    ann.keyboard.type("3s1u")
    ann.wait_for_url("**&answer=*")  # of the rating that was taken back
    assert "4 of 10, 1 skipped" in ann.locator(".when").inner_text()
    press_at_once(ann, "2", "5 of 10, 1 skipped")
    ann.reload()
    press_at_once(ann, "12345", "You have seen all 10 answers")
    press_at_once(ben, "2212345432", "You have seen all 10 answers")
    given = lines(data_dir)
    assert sum(one["kind"] == "undo" for one in given) == 1
    by_ann = [one for one in given if one.get("rater") == "ann"]
    assert [one["order"] for one in sorted(by_ann, key=lambda one: one["time"])] == [
        0,
        1,
        2,
        3,
        4,
        4,
        *range(5, 10),
    ]
    assert any(one["reason"] and one["reason"].startswith("why 5 <script>") for one in by_ann)

    ann.get_by_role("link", name="Back to the queue").first.click()
    ann.get_by_role("link", name="Agreement of raters").click()
    text = ann.locator("main").inner_text()
    assert re.search(r"On 9 answers 2 people agree with an alpha of", text)
    assert "secret-apple" in text
    ann.keyboard.press("q")
    ann.get_by_role("link", name="Judges beside people").click()
    assert "polite and people agree" in ann.locator("main").inner_text()
    ann.get_by_label("Judge").select_option("warmth")
    ann.get_by_role("button", name="Show").click()
    assert ann.locator("svg").count() == 1
    ann.keyboard.press("q")
    ann.get_by_role("button", name="Make a run of the ratings").click()
    assert ann.get_by_role("status").inner_text().count("run 2") == len(runs)


def test_two_who_change_the_guidelines_at_once_see_both_texts(visit, workbench, runs):
    first, second = (visit(workbench, f"/ratings/queue?run={runs[0]}") for _ in range(2))
    for page, text in ((first, "mine"), (second, "yours")):
        page.wait_for_load_state()
        page.keyboard.press("e")
        page.locator("textarea").fill(text)
    first.get_by_role("button", name="Save").click()
    assert first.get_by_role("region", name="Guidelines").first.inner_text() == "mine"
    with second.expect_response("**/ratings/guidelines*") as answer:
        second.get_by_role("button", name="Save").click()
    assert answer.value.status == 409
    assert "Somebody changed the guidelines" in second.get_by_role("alert").inner_text()
    assert second.get_by_role("region", name="Guidelines").first.inner_text() == "mine"
    second.get_by_role("button", name="Save").click()
    assert second.get_by_role("region", name="Guidelines").first.inner_text() == "yours"
    assert second.get_by_text("Earlier versions").count() == 1


def form_of(text):
    return {
        name: re.search(f'name="{name}" value="([^"]*)"', text)[1] for name in ("csrf", "answer", "digests")
    }


def test_a_server_that_is_killed_while_people_rate_loses_nothing_that_it_confirmed(serve, runs, data_dir):
    served, confirmed = serve(data_dir), []
    wait_for(served, runs[:1])

    def rate_on(rater):
        path = f"/ratings/rate?run={runs[0]}&rater={rater}"
        try:
            while True:
                form = form_of(served.ask(path)[2])
                status, headers, _ = served.ask(path, "POST", form | {"score": "4"})
                confirmed.append((rater, form["answer"]))
                assert (status, headers["location"][:13]) == (303, "/ratings/rate")
        except (OSError, HTTPException, TypeError):  # it was killed; or all is rated
            return

    raters = [threading.Thread(target=rate_on, args=(f"rater-{number}",)) for number in range(3)]
    for one in raters:
        one.start()
    while len(confirmed) < 8:
        time.sleep(0.001)
    served.stop(signal.SIGKILL)
    for one in raters:
        one.join()
    again = serve(data_dir)
    wait_for(again, runs[:1])
    queue = again.ask(f"/ratings/queue?run={runs[0]}")
    for rater in {rater for rater, _ in confirmed}:
        seen = int(re.search(rf">{rater}</a></th><td class=\"number\">(\d+) of", queue[2])[1])
        assert seen >= sum(one == rater for one, _ in confirmed)


def test_what_cannot_be_rated_is_refused_with_what_to_do(workbench, runs):
    path = f"/ratings/rate?run={runs[0]}&rater=ann-2"
    form = form_of(workbench.ask(path)[2])
    for wrong, says in (
        ({"score": "6"}, "no rating from 1 to 5"),
        ({"score": "4", "answer": "x"}, "not in the queue"),
        ({"score": "4", "digests": "x"}, "has changed since it was shown"),
        ({"score": "4", "csrf": "x"}, "The form comes from another page"),
    ):
        status, _, text = workbench.ask(path, "POST", form | wrong)
        assert status in (400, 403)
        assert says in text
    for wrong, says in (
        (f"rate?run={runs[0]}", "A rater has a name"),
        ("queue", "No run is named"),
        ("queue?run=../../etc", "There is no run"),
        (f"calibration?run={runs[0]}&measurement=none", "none"),
        (f"agreement?run={runs[0]}&n=x", "Agreement"),
    ):
        assert says in workbench.ask(f"/ratings/{wrong}")[2], wrong


def test_a_damaged_file_of_ratings_leaves_the_other_queues(workbench, runs, data_dir):
    file = data_dir / "ratings" / f"{runs[1]}.jsonl"
    file.parent.mkdir(exist_ok=True)
    before = file.read_bytes() if file.exists() else b""
    file.write_bytes(before + b"{damaged\n")
    line = before.count(b"\n") + 1
    try:
        status, _, text = workbench.ask("/ratings")
        assert status == 200
        assert f"{file.name}, line {line} is not a rating" in text
        assert "Correct the line, or remove it." in text
        assert f'value="{runs[0]}"' in text
        assert f'value="{runs[1]}"' not in text
    finally:
        file.write_bytes(before)
    assert f'value="{runs[1]}"' in workbench.ask("/ratings")[2]


def test_exactly_one_of_concurrent_versions_is_kept(tmp_path):
    first = versions(tmp_path, "queue")[-1].digest

    def add(number):
        try:
            add_version(tmp_path, "queue", Guidelines(text=f"text {number}"), first)
        except OtherVersionError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(add, range(40)))
    assert sum(taken) == 1
    assert [made.text for made in versions(tmp_path, "queue")] == [f"text {taken.index(True)}"]
