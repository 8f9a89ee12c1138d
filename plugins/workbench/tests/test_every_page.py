"""What holds of every page of every room, whatever is in the data: found by following all links from the first page."""

import json
import re
import time
from urllib.parse import urldefrag, urlsplit

import pytest

from modelgauge import FunctionSUT, PromptResponseTest, TestItem, run_test
from modelgauge.data.test_cases import ConversationalGolden, Golden, LLMTestCase, Turn
from modelgauge.datasets.dataset import EvaluationDataset

HOSTILE = (
    "<script>document.title='pwned'</script>\"'><img src=x onerror=\"document.title='pwned'\">\u202e{{ 7*7 }}"
)
LONG = "w" * 400
MOST_OF_A_KIND = 2


class Hostile(PromptResponseTest):
    """Each text that somebody else may write holds markup, characters that turn the line round, or no blank."""

    def make_test_items(self, dependencies):
        for number, text in enumerate((HOSTILE, LONG, "fails", "../../etc/passwd")):
            yield TestItem(text, id=f"{text} {number}", context={"target": text, HOSTILE: text})

    def measure_quality(self, item):
        return {HOSTILE: len(item.text), f"{LONG}": 1.0}


def answer(text):
    if text == "fails":
        raise ValueError(HOSTILE)
    return text[::-1] + text


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """Two runs with hostile names and texts everywhere, and ratings."""
    folder = tmp_path_factory.mktemp("data")
    for sut in (HOSTILE, LONG):
        run_test(Hostile(HOSTILE), FunctionSUT(sut, answer), data_dir=folder)
    for run in (folder / "runs").iterdir():
        notes = {"tags": [HOSTILE[:60], LONG[:60]], "note": HOSTILE, "favourite": True}
        (run / "notes.json").write_text(json.dumps(notes))
        rating = {"kind": "rating", "answers": ["x"], "rater": HOSTILE[:90], "score": 3, "reason": HOSTILE,
                  "id": "1", "time": "2026-01-01T00:00:00Z"}  # fmt: skip
        (folder / "ratings").mkdir(exist_ok=True)
        lines = [
            rating | {"item_id": f"{HOSTILE} 0"},
            rating | {"item_id": f"{LONG} 1", "rater": LONG[:90], "id": "2"},
        ]
        (folder / "ratings" / f"{run.name}.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in lines)
        )
    save_datasets(folder)
    return folder


def save_datasets(folder):
    """Two data sets with hostile texts everywhere, and a damaged one."""
    questions = EvaluationDataset()
    alias, texts = f"ß{LONG[:59]}", (HOSTILE, LONG, HOSTILE)
    questions.goldens = [
        Golden(
            text, expected_output=text, context=[text], custom_column_key_values={HOSTILE: text, LONG: text}
        )
        for text in texts
    ]
    questions.push(alias, author=HOSTILE[:90], message=HOSTILE, data_dir=folder)
    questions.goldens = [Golden(LONG[1:]), *questions.goldens[1:]]
    questions.add_test_case(LLMTestCase(LONG, actual_output=HOSTILE))
    questions.push(alias, author=LONG[:90], message=LONG, data_dir=folder)
    talks = EvaluationDataset()
    talks.goldens = [
        ConversationalGolden(text, turns=[Turn("user", text), Turn("assistant", text)]) for text in texts[:2]
    ]
    talks.push("Gespräche", data_dir=folder)
    (folder / "datasets" / "verlöscht").mkdir()
    (folder / "datasets" / "verlöscht" / "versions.jsonl").write_text("{\n")


@pytest.fixture(scope="module")
def workbench(serve, data_dir):
    served = serve(data_dir)
    served.post("/starts/demo")
    while "accuracy" not in (text := served.ask("/runs")[2]) or text.count("<tr") < 4:
        time.sleep(0.05)
    return served


def kind_of(address):
    """What pages of one kind have in common: the path without names of runs and items, and the names of its fields."""
    parts = urlsplit(address)
    path = re.sub(r"(?<=/)(\d{8}-[^/]*|\d+|[^/]*%[^/]*)(?=/|$)", "*", parts.path)
    return path, tuple(sorted({one.partition("=")[0] for one in parts.query.split("&")}))


def pages_of(page, workbench, *more):
    """Go to each kind of page that links lead to, a few of each; give its address."""
    left, seen, kinds = [f"{workbench.address}{path}" for path in ("/", *more)], set(), {}
    while left:
        address = urldefrag(left.pop(0))[0]
        kinds[kind_of(address)] = kinds.get(kind_of(address), 0) + (address not in seen)
        if address in seen or kinds[kind_of(address)] > MOST_OF_A_KIND:
            continue
        seen.add(address)
        headers = page.request.get(address).headers
        if headers["content-type"].startswith("text/html") and "content-disposition" not in headers:
            assert page.goto(address).ok, address
            yield address
            left += page.eval_on_selector_all("a[href]", "links => links.map(one => one.href)")


def queue_of(data_dir):
    """The fields of an address that name the queue of the rated runs."""
    return "&".join(f"run={one.stem}" for one in sorted((data_dir / "ratings").glob("*.jsonl")))


def wrong_with(page, axe=None):
    """What no page may be, at the size and in the colours that the browser has now."""
    for table in page.locator("#dataset").all():  # its rows come later
        table.and_(page.locator("[data-ready]")).wait_for()
    found = {
        "axe": axe(page) if axe else [],
        "markup": page.title() == "pwned" or page.locator("img[src=x]").count(),
        "wider than the screen": page.evaluate("document.documentElement.scrollWidth > innerWidth"),
        "title": not page.title().endswith("ModelGauge"),
        "headings": page.locator("h1:visible").count() != 1,
        "a message": page.locator("#message:visible").count(),
        "a template": "49" in page.title() or "{{" in page.inner_text("nav"),
    }
    return {name: value for name, value in found.items() if value}


def test_every_page_fits_is_accessible_and_shows_hostile_texts_as_texts(visit, workbench, data_dir, axe):
    page = visit(workbench)
    queue, wrong, seen = queue_of(data_dir), {}, set()
    more = (f"{one}?{queue}" for one in ("/ratings/queue", "/ratings/calibration"))
    for address in pages_of(page, workbench, *more):
        first_of_a_kind = kind_of(address) not in seen
        seen.add(kind_of(address))
        for width, colours in ((320, "dark"), (1280, "light")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=colours)
            if found := wrong_with(page, axe if first_of_a_kind else None):  # axe takes most of the time
                wrong[f"{address} at {width}"] = found
    assert wrong == {}, json.dumps(wrong, indent=1)
    assert {path for path, _ in seen} >= {
        "/runs",
        "/runs/*",
        "/runs/*/items/*",
        "/starts",
        "/starts/*",
        "/ratings",
        "/ratings/queue",
        "/ratings/rate",
        "/datasets",
        "/datasets/*",
        "/datasets/*/versions",
        "/datasets/*/cases",
        "/datasets/*/differences",
    }
