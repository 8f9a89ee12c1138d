"""The page of runs as a person uses it."""

import pytest

from modelgauge import PromptResponseSUT, PromptWithContext, SUTCompletion, SUTResponse, TestItem, Usage
from modelgauge.testing import FakeSUT, FakeTest

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>"
    "<style>*{display:none}</style>\u202egnp.exe\u200b\x1b[2J {{7*7}} javascript:alert(4)"
)


def _item(number, text):
    subject = "history" if number % 3 else "physics"
    return TestItem(
        [PromptWithContext(f"Think well.\n\nQuestion {number}: {text}")],
        context={"target": str(number), "subject": subject},
        id=f"q{number}",
    )


def _test(number=30, text="how many?"):
    def measure(item):
        return {"accuracy": item.text.endswith(item.context["target"]), "length": float(len(item.text))}

    return FakeTest("counting", [_item(place, text) for place in range(number)], measure)


def _answer(prompt):
    number = prompt.text.split("Question ")[1].split(":")[0]
    if number == "7":
        raise ValueError(f"no answer: {HOSTILE}")
    return f"I count.\n{number if int(number) % 2 else 'none'}"


@pytest.fixture
def page(report, visit, tmp_path, once):
    once(tmp_path, lambda: report((_test(), FakeSUT("half", _answer))))
    return visit((tmp_path / "page.html").as_uri())


def _listed(page):
    return page.locator("output").inner_text()


def test_the_first_screen_says_what_came_out_and_what_failed(page):
    assert page.locator("h1").inner_text() == "counting on half"
    assert page.locator(".verdict").inner_text().startswith("14 of 29: accuracy 0.483 (0.314 to 0.656).")
    assert "ValueError at SUT half no answer" in page.locator(".troubles").inner_text()
    row = page.locator(".results tbody tr").first
    assert row.locator("td").nth(3).inner_text() == "29"
    assert "0.467 to 0.500" in row.inner_text()
    assert row.locator("svg").get_attribute("aria-label").startswith("0.4828, from 0.31")


def test_items_are_searched_filtered_and_sorted_and_the_address_says_so(page):
    assert _listed(page) == "30 of 30"
    page.keyboard.press("/")
    page.keyboard.type("question 12")
    assert _listed(page) == "1 of 30"
    page.locator("input[type=search]").fill("")
    page.locator("select[name=show]").select_option("wrong")
    assert _listed(page) == "15 of 30"
    page.get_by_label("subject").select_option("physics")
    assert _listed(page) == "5 of 30"
    page.locator("select[name=sort]").select_option("length>")
    assert "show=wrong" in page.url
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert _listed(page) == "5 of 30"
    assert page.locator("select[name=sort]").input_value() == "length>"
    page.locator("select[name=show]").select_option("failed")
    assert _listed(page) == "0 of 30"
    assert "No item matches." in page.locator(".table").inner_text()


def test_whole_texts_are_searched(report, visit):
    answer = f"{'a ' * 3000}the needle{' z' * 3000}"
    page = visit(
        report((_test(5), FakeSUT("long", lambda prompt: answer if "Question 3" in prompt.text else "no")))
    )
    page.locator("input[type=search]").fill("NEEDLE")
    page.locator("output:text-is('1 of 5')").wait_for()
    assert "Question 3" in page.locator("tr[data-place]").inner_text()


def test_an_item_opens_by_keyboard_and_has_an_address_of_its_own(page, visit):
    for key in ("j", "j", "k", "Enter"):
        page.keyboard.press(key)
    heading = page.locator(".item h2")
    heading.wait_for()
    assert heading.inner_text() == "Item 2 q1"
    assert "Question 1: how many?" in page.locator(".item").inner_text()
    assert "accuracy = 1" in page.locator(".measured").inner_text()
    other = visit(page.url)
    other.locator(".item h2").wait_for()
    assert other.locator(".item h2").inner_text() == "Item 2 q1"
    page.keyboard.press("ArrowRight")
    page.locator(".item h2:has-text('q2')").wait_for()
    page.go_back()
    page.locator(".item h2:has-text('q1')").wait_for()
    page.keyboard.press("Escape")
    assert page.locator(".item").is_hidden()
    assert page.locator(".table").is_visible()


def test_a_click_opens_a_failed_item_with_its_error(page):
    page.locator("select[name=show]").select_option("failed")
    page.locator("tr[data-place]").first.click()
    page.locator(".item h2").wait_for()
    shown = page.locator(".item").inner_text()
    assert "Failed at sut (half): ValueError" in shown
    assert "</script><script>alert(1)</script>" in shown


def test_hostile_texts_are_shown_and_do_nothing(report, visit):
    sut = FakeSUT("evil", SUTCompletion(text=HOSTILE, reasoning=HOSTILE, metadata={HOSTILE: HOSTILE}))
    page = visit(report((_test(3, HOSTILE), sut)))
    assert page.locator("tr[data-place]").count() == 3
    page.keyboard.press("Enter")
    page.locator(".item h2").wait_for()
    shown = page.locator(".item .answer").inner_text()
    assert shown == HOSTILE.replace("\u202e", "U+202E").replace("\u200b", "U+200B").replace("\x1b", "U+001B")
    assert page.locator(".item :is(img, script, style, svg)").count() == 0


def test_long_answers_are_cut_until_they_are_asked_for(report, visit):
    page = visit(report((_test(1), FakeSUT("long", "x" * 1_000_000))))
    page.keyboard.press("Enter")
    answer = page.locator(".item .answer")
    answer.wait_for()
    assert len(answer.inner_text()) == 20_000
    page.get_by_text("Show all 1,000,000 characters").click()
    assert len(answer.inner_text()) == 1_000_000


def test_several_runs_begin_with_all_of_them(report, visit):
    page = visit(report((_test(), FakeSUT("half", _answer)), (_test(), FakeSUT("none", "no"))))
    rows = page.get_by_role("region", name="All runs").locator("tbody tr:not(.ruler)")
    assert rows.count() == 2
    assert "0 of 30" in rows.nth(1).inner_text()
    rows.nth(1).locator("a").click()
    page.locator('.run[data-run="1"]').wait_for()
    assert page.locator("h1:visible").inner_text() == "counting on none"
    page.get_by_text("all 2 runs").locator("visible=true").click()
    page.locator(".overview").wait_for()


def test_without_texts_there_are_none(report, visit, tmp_path):
    address = report((_test(3, "a secret question"), FakeSUT("s", "a secret answer")), options=["--redact"])
    page = visit(address)
    assert page.locator("tr[data-place]").all_inner_texts() == [
        "1\tq0\t0\t15",
        "2\tq1\t0\t15",
        "3\tq2\t0\t15",
    ]
    assert "Prompts, answers, contexts" in page.locator(".note").first.inner_text()
    page.keyboard.press("Enter")
    page.locator(".item h2").wait_for()
    assert "secret" not in page.content()
    data = page.evaluate("Promise.all(['rows', 'texts', 'part-0'].map((name) => embedded(`run-0-${name}`)))")
    assert "secret" not in str(data)


def test_nothing_overflows_and_axe_finds_nothing(report, visit, check_all_looks):
    address = report((_test(), FakeSUT("half", _answer)), (_test(), FakeSUT("none", "no")))
    for place in ("", "#run=0", "#run=0&item=q7"):
        check_all_looks(visit(address + place))


def test_a_long_uid_stands_in_the_title_by_its_last_part(report, visit):
    uid = "replay//srv/data/answers/of/the/best/model.jsonl?prompt=question"
    page = visit(report((_test(3), FakeSUT(uid, "a"))))
    assert page.locator("h1").inner_text() == "counting on model.jsonl"
    _open_parts(page)
    assert uid in page.locator("details.more", has_text="How it was run").inner_text()


@pytest.mark.parametrize("place", ["", "#run=0"])
def test_charts_are_whole_on_a_narrow_screen(report, visit, place):
    address = report((_test(), FakeSUT("half", _answer)), (_test(), FakeSUT("none", "no")))
    charts = visit(address + place, width=320).locator("td.chart svg:visible").all()
    ends = [(box["x"], box["x"] + box["width"]) for box in (chart.bounding_box() for chart in charts)]
    assert len(ends) >= 3
    assert all(start >= 0 and end <= 320 for start, end in ends)


def test_numbers_lead_to_the_items_behind_them(page):
    page.locator(".troubles a").click()
    page.locator("output:text-is('1 of 30')").wait_for()
    assert "Question 7" in page.locator("tr[data-place]").inner_text()
    page.locator("select[name=failure]").select_option("")
    page.locator("output:text-is('30 of 30')").wait_for()


def test_parts_below_the_first_screen_open_and_are_printed(page):
    part = page.locator("details.more", has_text="How it was run")
    assert part.locator("h2").first.is_hidden()
    part.locator("summary").first.click()
    assert "modelgauge show" in part.inner_text()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.more:not([open])").count() == 0


@pytest.mark.parametrize("allowed", [True, False])
def test_the_link_to_an_item_can_be_copied(report, visit, allowed):
    options = {"permissions": ["clipboard-read", "clipboard-write"]} if allowed else {}
    page = visit(f"{report((_test(3), FakeSUT('s', 'a')))}#run=0&item=q1", **options)
    button = page.get_by_text("copy link to this item")
    if allowed:
        button.click()
        page.get_by_text("copied").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == page.url
    else:
        page.evaluate("() => { navigator.clipboard.writeText = async () => { throw new Error('no'); }; }")
        button.click()
        assert page.get_by_label("Link to this item").input_value() == page.url


class _Metered(PromptResponseSUT):
    """Answers yes or no, mostly right, with reasoning and usage; a few calls fail with a hostile message."""

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        number = int(request.split("Number ")[1])
        if number % 17 == 5:
            raise ValueError(HOSTILE)
        return "yes" if (number % 2 == 0) != (number % 7 == 0) else "no"

    def translate_response(self, request, response):
        completion = SUTCompletion(f"I think.\nIt is {response}.", reasoning="Let me see.")
        return SUTResponse([completion], Usage(input_tokens=50, output_tokens=len(request), cost_usd=0.0123))


@pytest.fixture
def classes_page(report, tmp_path, once):
    items = [
        TestItem(
            [PromptWithContext(f"Number {number}")],
            context={"target": "yes" if number % 2 == 0 else "no", HOSTILE: f"{HOSTILE}{number % 3}"},
            id=f"{HOSTILE}{number}",
        )
        for number in range(60)
    ]

    def measure(item):
        number = int(item.test_item.id.removeprefix(HOSTILE))
        right = item.text.endswith(f"{item.context['target']}.")
        return {"right": right, "sure": 0.4 + 0.5 * right + number / 1000, f"{HOSTILE} size": float(number)}

    test = FakeTest(f"classes {HOSTILE}", items, measure)
    once(tmp_path, lambda: report((test, _Metered("metered"))))
    return (tmp_path / "page.html").as_uri()


def _open_parts(page):
    page.evaluate("dispatchEvent(new Event('beforeprint'))")


def test_classes_lead_to_the_items_that_were_taken_for_others(classes_page, visit):
    page = visit(classes_page)
    _open_parts(page)
    table = page.get_by_role("region", name="Confusion")
    wrong = table.locator("tbody tr", has_text="yes").locator("td").first
    count = wrong.inner_text()
    wrong.locator("a").click()
    page.locator(f".items output:text-is('{count} of 60')").wait_for()
    assert page.locator("select[name='is-answered class']").input_value() == "no"
    assert "$0.69" in page.locator("details", has_text="Tokens and cost").inner_text()
    page.locator("select[name=sort]").select_option("dollars>")


def test_hostile_names_and_labels_are_texts(classes_page, visit):
    page = visit(f"{classes_page}#run=0&show=wrong")
    _open_parts(page)
    assert page.locator("h1").inner_text().startswith("classes </script><script>alert(1)")
    assert page.locator("body :is(img, iframe, object, link, base, style)").count() == 0
    assert page.locator("[onerror], [onload]").count() == 0
    page.locator("tr[data-place]").first.click()
    page.locator(".item h2").wait_for()
    page.get_by_text("next →").click()
    assert page.locator(".item :is(img, script, style, svg)").count() == 0


def test_the_parts_of_a_page_fit_and_axe_finds_nothing(classes_page, visit, check_all_looks):
    page = visit(classes_page)
    _open_parts(page)
    check_all_looks(page)
