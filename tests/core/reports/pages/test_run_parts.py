"""The parts of a run's page below its first screen: what each says, and the items that it leads to."""

import random
from types import SimpleNamespace
from urllib.parse import parse_qs

import pytest

from modelgauge import (
    PromptResponseSUT,
    PromptWithContext,
    SUTCompletion,
    SUTResponse,
    TestItem,
    Usage,
    run_test,
)
from modelgauge.data.results import ConcurrencyChange
from modelgauge.documents.document import (
    Charts,
    Conclusion,
    Quotes,
    Reliability,
    Section,
    StepChart,
    TableBlock,
    Text,
    Troubles,
)
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.evals import Golden, evaluate, observe
from modelgauge.metrics import ExactMatchMetric
from modelgauge.reports.pages import item_data
from modelgauge.reports.pages.classes import classified, ending_of
from modelgauge.reports.pages.columns import Labels
from modelgauge.reports.pages.item_data import ItemTable
from modelgauge.reports.pages.run_parts import parts_of
from modelgauge.reports.pages.run_view import overview_table, run_document
from modelgauge.runs.recorded_run import recorded_run
from modelgauge.testing import FakeSUT, FakeTest


class _Paid(PromptResponseSUT):
    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        number = int(request)
        if number % 10 == 3:
            raise TimeoutError(f"no answer to {number}")
        right = "Yes" if number % 2 else "No"
        wrong = "No" if number % 2 else "maybe"
        return f"I think.\nSo the answer is {wrong if number % 5 == 0 else right}."

    def translate_response(self, request, response):
        usage = Usage(input_tokens=10, output_tokens=int(request), cost_usd=0.01)
        return SUTResponse([SUTCompletion(response)], usage)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    items = [
        TestItem(
            [PromptWithContext(str(number))],
            context={"target": "yes" if number % 2 else "no"},
            id=str(number),
        )
        for number in range(40)
    ]

    def measure(item):
        right = item.context["target"] in item.text.lower().split("is ")[1]
        return {"right": right, "sure": random.Random(item.test_item.id).random()}

    record = run_test(
        FakeTest("exam", items, measure),
        _Paid("paid"),
        data_dir=folder,
        max_retries=0,
        hyperparameters={"t": 0.5},
    )
    return recorded_run(RunFolder(folder / "runs" / record.run_id))


def _table(run, **options):
    table = ItemTable(**options)
    list(table.parts(run))
    return table


def _run_of(lines):
    """Return the part of a run that gives its lines."""
    items = SimpleNamespace(lines=lambda: iter(lines))
    return SimpleNamespace(items=lambda: items, record=SimpleNamespace(thresholds={}))


def _parts(run, **options):
    return {one.title: one for one in parts_of("#run=0&{}", run, _table(run), without_texts=False, **options)}


def _blocks(kind, blocks):
    return [block for block in blocks if isinstance(block, kind)]


def _cells(part):
    """The heads of the columns of a part's table, with their cells."""
    (table,) = _blocks(TableBlock, part.blocks)
    return {column.head: column.cells for column in table.columns}


def test_a_confusion_counts_every_answer_and_leads_to_its_items(run):
    part = _parts(run)["Confusion"]
    right, *answered = _cells(part).items()
    assert right == ("right \\ answered", ["no", "yes"])
    counts = {head: [int(cell.text) for cell in cells] for head, cells in answered}
    assert counts == {"no": [16, 4], "yes": [0, 12], "other": [4, 0]}
    assert part.summary == "the right one of 2 classes at the end of 28 of 36 answers"
    wrong = dict(answered)["no"][1]
    assert parse_qs(wrong.address[1:]) == {"run": ["0"], "is-target": ["yes"], "is-answered class": ["no"]}


def test_usage_is_summed_and_leads_to_the_dearest(run):
    part = _parts(run)["Tokens and cost"]
    assert part.summary == "360 input tokens, 708 output tokens, $0.36"
    assert _cells(part)["an item took"][1] == "output tokens"
    assert _cells(part)["most"][1] == Text("39", "#run=0&sort=output+tokens%3E")


def test_usage_shows_means_and_percentiles_of_tokens_and_dollars(run):
    cells = _cells(_parts(run)["Tokens and cost"])
    assert cells["an item took"] == ["input tokens", "output tokens", "dollars"]
    assert cells["all"] == ["360", "708", "$0.36"]
    # 708 output tokens of 36 items; 0 to 39 without those that end in 3.
    assert cells["mean"] == ["10", "20", "$0.01"]
    assert cells["median"] == ["10", "19", "$0.01"]
    assert cells["95th percentile"] == ["10", "38", "$0.01"]
    assert cells["items"] == ["36", "36", "36"]


def test_scores_are_held_against_what_was_right(run):
    part = _parts(run)["Calibration of sure"]
    assert "against right of 36 items" in part.summary
    ((caption, chart),) = _blocks(Charts, part.blocks)[0].charts
    assert caption == "sure against right"
    assert isinstance(chart, Reliability)
    assert chart.what == "right"


def test_how_it_was_run_has_settings_and_manifest(run):
    part = _parts(run)["How it was run"]
    assert part.summary == "t 0.5"
    (commands,) = _blocks(Quotes, part.blocks)
    assert [title for title, _ in commands.texts] == ["In a terminal"]
    ((_, manifest),) = _blocks(Section, part.blocks)[0].blocks[0].texts
    assert f'"run_id": "{run.record.run_id}"' in manifest
    assert manifest.endswith("more characters in run.json")
    kept = parts_of("#run=0&{}", run, _table(run, without_texts=True), without_texts=True)[-1]
    assert kept.summary.startswith("test exam")
    names, values = (column.cells for column in _blocks(TableBlock, kept.blocks)[0].columns)
    assert [*zip(names, values, strict=True)][:2] == [("test", "exam"), ("SUT", "paid")]
    assert not _blocks(Section, kept.blocks)


def test_failures_are_kinds_that_lead_to_their_items(run):
    (troubles,) = _blocks(Troubles, run_document(run, _table(run)))
    (failure,) = troubles.facts
    assert failure.label == (
        "4 \N{MULTIPLICATION SIGN} ",
        Text("TimeoutError at SUT paid", "#run=0&failure=1"),
    )
    assert failure.text.startswith("no answer to ")


def test_what_limits_did_is_told(run):
    changes = (
        ConcurrencyChange(seconds=0.5, limit=8, why="saturated"),
        ConcurrencyChange(seconds=2, limit=4, why="rate limited"),
    )
    cut = run.record.replaced(concurrency={"paid": changes})
    part = _parts(type(run)(cut, run.folder))["Limits"]
    assert part.summary == "paid 4 to 8 calls at once, cut 1 time"
    (charts,) = _blocks(Charts, part.blocks)
    assert charts.charts == [("paid", StepChart([(0.5, 8), (2, 4)], run.record.seconds, "calls at once"))]


def test_the_latency_of_an_app_is_told(tmp_path):
    @observe
    def app(question):
        return question.upper()

    goldens = [Golden(input=f"q{number}", expected_output="Q1") for number in range(8)]
    evaluate(goldens=goldens, observed_callback=app, metrics=[ExactMatchMetric()], data_dir=tmp_path)
    (folder,) = (tmp_path / "runs").iterdir()
    part = _parts(recorded_run(RunFolder(folder)))["Latency"]
    assert part.summary.endswith("of 8 items")
    assert len(_blocks(Charts, part.blocks)[0].charts) == 2


def test_a_plain_run_has_no_parts_without_data(tmp_path):
    record = run_test(
        FakeTest("plain", ["a", "b"], lambda _: {"x": 1.0}), FakeSUT("s", "c"), data_dir=tmp_path
    )
    parts = _parts(recorded_run(RunFolder(tmp_path / "runs" / record.run_id)))
    assert set(parts) <= {"How it was run", "Limits"}


@pytest.mark.parametrize(
    ("answers", "read"),
    [
        (["So the answer is (B).", "(A)", "b"], ["(B)", "(A)", "other"]),
        (["not valid", "invalid", "Valid!"], ["valid", "invalid", "valid"]),
    ],
)
def test_answers_are_of_the_class_they_end_with(answers, read):
    classes = sorted({*read} - {"other"})
    expected, endings = Labels(), Labels()
    for place, answer in enumerate(answers * 4):
        expected.add(place, classes[place % 2])
        endings.add(place, ending_of(answer))
    _, answered = classified(expected, endings)
    assert [[*answered.values][at] for at in answered.of[:3]] == read


def test_free_texts_are_no_classes():
    expected, endings = Labels(most=3), Labels()
    for place in range(8):
        expected.add(place, f"answer {place}")
        endings.add(place, f"answer {place}")
    assert classified(expected, endings) is None


def test_a_page_has_few_controls(tmp_path):
    context = {f"label {number}": "x" for number in range(40)} | {"n" * 100: "x"}
    items = [
        TestItem(
            [PromptWithContext(str(place))], context=dict.fromkeys(context, "xy"[place % 2]), id=str(place)
        )
        for place in range(10)
    ]
    record = run_test(FakeTest("many", items, lambda _: {"x": 1.0}), FakeSUT("s", "c"), data_dir=tmp_path)
    facets = _table(recorded_run(RunFolder(tmp_path / "runs" / record.run_id))).facets
    assert len(facets) == 16
    assert "label 15" in facets


def test_row_of_run_says_how_many_results_it_leaves_out(run):
    (verdict,) = overview_table([run], ["paid"]).columns[2].cells
    assert verdict.text.endswith(" 1 more result.")
    alone = type(run)(run.record.replaced(result={"right": run.record.result["right"]}), run.folder)
    (verdict,) = overview_table([alone], ["paid"]).columns[2].cells
    assert "more result" not in verdict.text


def test_a_stopped_run_says_how_it_goes_on(run):
    stopped = type(run)(run.record.replaced(cancelled=True), run.folder)
    troubles, _ = _blocks(Troubles, run_document(stopped, _table(run)))
    assert [fact.label for fact in troubles.facts] == ["stopped", "to go on"]
    assert troubles.facts[1].text.startswith("modelgauge.resume(")
    going_on = type(run)(run.record, run.folder, ended=False, going_on=True)
    (verdict,) = _blocks(Conclusion, run_document(going_on, _table(run)))
    assert "going on" in verdict.text


def test_parts_of_long_items_are_those_of_short_groups_and_hold_few_lines_at_once(run, monkeypatch):
    lines = list(run.items().lines()) * 3  # more than a part
    whole = list(ItemTable().parts(_run_of(lines)))
    held, most = 0, 0

    def counted():
        nonlocal held, most
        for line in lines:
            held += 1
            most = max(most, held)
            yield line

    monkeypatch.setattr(item_data, "_MOST_BYTES", 1)
    table = ItemTable()
    taken = table.taken(_run_of(counted()))
    sizes = []
    for records in taken:
        sizes.append(len(records))
        held = 0
    assert (set(sizes), most) == ({1}, 1)
    assert list(ItemTable().parts(_run_of(lines))) == whole
