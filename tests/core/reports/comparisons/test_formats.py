"""Comparisons as JSON, JUnit XML and for GitHub Actions: read by others' parsers, and hostile texts are text."""

import json
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from comparisons import A, B, cannot_tell, comparison, row, unpaired, worse
from hypothesis import example, given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml
from markdown_it import MarkdownIt

from modelgauge.comparison.gates import Gates
from modelgauge.comparison.item_pairs import FlippedItem
from modelgauge.comparison.result import Comparison, RunDifference
from modelgauge.documents.markdown import as_markdown
from modelgauge.reports.comparisons.exports import (
    annotations,
    comparison_as_json,
    junit_xml,
    without_commands,
)
from modelgauge.reports.comparisons.summary import summary_document
from modelgauge.runs.conditions import Condition

FIXED = ["schema_version", "baseline", "family", "comparisons", "differs", "flips"]
FIXED_OF_ROW = [
    *("test", "measurement", "candidate", "matched_by", "n_paired", "n_only_baseline", "n_only_candidate"),
    *(
        "n_failed",
        "baseline_value",
        "candidate_value",
        "difference",
        "stderr",
        "stderr_unpaired",
        "correlation",
    ),
    *(
        "interval",
        "interval_kind",
        "p_value",
        "p_kind",
        "p_adjusted",
        "wins",
        "losses",
        "ties",
        "bounds",
        "mde",
    ),
    *("direction", "verdict", "verdict_text"),
]
HOSTILE = (
    "\x1b[2J\u202e\x00 ::error::x\n::add-mask::y ##[error] | "
    "`code` **b** <script>&amp;]]> www.a.com https://b.c @d"
)
FLIP = FlippedItem(
    test="gsm8k",
    measurement="accuracy",
    candidate="B",
    item_id="1",
    candidate_item_id="1",
    baseline_value=1,
    candidate_value=0,
    won=False,
    prompts=["why?"],
    baseline_answers=["so"],
    candidate_answers=[HOSTILE],
)
GATES = Gates(fail_if_worse=True, fail_if=(Condition("accuracy", "<", 0.55),))


def hostile(text=HOSTILE):
    made = worse(test=text, measurement=text, candidate=text, verdict_text=text)
    return comparison(
        made,
        baseline=A.replaced(label=text),
        candidates=[B.replaced(label=text)],
        differs=[RunDifference(test=text, candidate=text, kind="sut", name=text, baseline=text)],
        notes=[text],
    )


def with_flips(read):
    """Paired items of which these flip."""
    return SimpleNamespace(flips=lambda _, most: read(most))


# --- JSON -------------------------------------------------------------------------------------------


def test_json_has_the_fixed_keys_and_all_flips():
    plain = comparison(row(), unpaired(test="bbh"))
    made = plain.with_items([with_flips(lambda most: [FLIP, FLIP][:most]), with_flips(lambda _: [])])
    outcomes = Gates(fail_if=(Condition("accuracy", "<", 0.9),)).outcomes(made)
    data = json.loads("".join(comparison_as_json(made, outcomes)))
    assert [name for name in data if name in FIXED] == FIXED
    assert all(set(FIXED_OF_ROW) <= one.keys() for one in data["comparisons"])
    assert data["flips"] == [FLIP.model_dump(mode="json")] * 2
    assert [one["passed"] for one in data["gates"]] == [False, False]
    known = {name: value for name, value in data.items() if name not in ("flips", "gates")}
    assert Comparison(**known) == plain


def test_json_without_flips_and_gates():
    data = json.loads("".join(comparison_as_json(comparison(row()))))
    assert data["flips"] == []
    assert "gates" not in data


def test_flips_are_written_as_they_are_read():
    def read(most):
        for number in range(3):
            seen.append(number)
            yield FLIP

    seen = []
    pieces = comparison_as_json(comparison(row()).with_items([with_flips(read)]))
    written = []
    for piece in pieces:
        written.append(piece)
        assert len(seen) <= sum('"item_id"' in one for one in written) + 1
    assert seen == [0, 1, 2]


def test_secrets_are_taken_out_of_what_is_known_of_runs():
    made = comparison(row(), notes=["sk-123"])
    text = "".join(comparison_as_json(made, (), lambda data: {**data, "notes": ["[REDACTED]"]}))
    assert "sk-123" not in text


# --- JUnit ------------------------------------------------------------------------------------------


def junit_of(made, gates=GATES):
    return JUnitXml.fromstring(junit_xml(made, gates.outcomes(made)).encode())


def test_each_gate_and_comparison_is_a_case():
    made = comparison(row(), worse(measurement="f1"), cannot_tell(test="bbh"))
    suites = list(junit_of(made))
    assert [(suite.name, suite.tests, suite.failures, suite.errors) for suite in suites] == [
        ("bbh", 2, 0, 0),
        ("gsm8k", 3, 1, 0),
    ]
    (failed,) = [case for suite in suites for case in suite if case.result]
    assert (failed.classname, failed.name) == ("gsm8k", "f1 of B against A: --fail-if-worse")
    (result,) = failed.result
    assert isinstance(result, Failure)
    assert result.message == result.text == worse().verdict_text


def test_without_gates_every_comparison_is_a_case_that_passes():
    (suite,) = junit_of(comparison(worse(), unpaired(measurement="f1")), Gates())
    assert [case.name for case in suite] == [
        "accuracy of B against A: compared",
        "f1 of B against A: compared",
    ]
    assert all(case.is_passed for case in suite)
    assert [case.system_out for case in suite] == [worse().verdict_text, unpaired().verdict_text]


def test_hostile_texts_are_text_in_xml():
    (suite,) = junit_of(hostile(), Gates(fail_if_worse=True))
    (case,) = suite
    (result,) = case.result
    assert not isinstance(result, Error)
    assert "<script>&amp;]]>" in result.text
    assert r"\x1b[2J\u202e\x00" in suite.name
    assert not set(suite.name + case.name + result.text) & set("\x1b\u202e\x00")


@given(st.text().filter(lambda text: not re.search("[\ud800-\udfff]", text)))
def test_any_text_is_well_formed_xml(text):
    (suite,) = junit_of(hostile(text), Gates(fail_if_worse=True))
    assert len(list(suite)) == 1


# --- GitHub -----------------------------------------------------------------------------------------


def test_a_failed_gate_is_an_annotation():
    made = comparison(row(), worse(measurement="f1", verdict_text="100 % worse,\nreally: yes"))
    found = list(annotations(Gates(fail_if_worse=True).outcomes(made)))
    assert found == ["::error title=--fail-if-worse%3A gsm8k%2C f1::100 %25 worse,%0Areally: yes"]


@given(st.text().filter(lambda text: not re.search("[\ud800-\udfff]", text)))
def test_no_text_ends_an_annotation(text):
    made = hostile(text)
    (found,) = annotations(Gates(fail_if_worse=True).outcomes(made))
    command = re.fullmatch(r"::error title=([^:,\r\n]*)::([^\r\n]*)", found)
    assert command is not None
    assert not re.search(r"%(?!25|0A|3A|2C)", command[1] + command[2])


def test_nothing_between_is_a_command():
    first, *between, last = without_commands(HOSTILE).split("\n")
    assert last == f"::{first.removeprefix('::stop-commands::')}::"
    assert last.strip(":") not in "\n".join(between)
    assert without_commands("x") != without_commands("x")


class Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.text, self.cells = [], "", []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, *attrs))
        self.cells += [""] if tag == "td" else []

    def handle_data(self, data):
        self.text += data
        if self.tags and self.tags[-1][0] == "td":
            self.cells[-1] += data


def markdown(made, outcomes):
    return as_markdown(summary_document(made, outcomes))


def rendered(text):
    tags = Tags()
    tags.feed(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))
    return tags


def test_the_summary_has_the_answer_the_gates_and_a_table():
    made = comparison(row(), worse(measurement="f1"), notes=["A note."])
    page = rendered(markdown(made, GATES.outcomes(made)))
    lines = [line for line in page.text.split("\n") if line]
    assert lines[0] == "Is B better than A on gsm8k?"
    assert f"accuracy: {row().verdict_text}" in lines
    assert f"Failed --fail-if-worse: gsm8k, f1: {worse().verdict_text}" in lines
    assert "2 of 3 gates passed." in lines
    cells = lines[lines.index("Verdict") + 1 :][:8]
    assert cells == [
        *("gsm8k", "accuracy", "B", "0.565 → 0.608"),
        *("+4.3 points", "+1.5 to +7.1", "0.003", "better"),
    ]
    assert lines[-1] == "A note."


SAFE = {"h3", "ul", "li", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}


def test_hostile_texts_are_text_in_markdown():
    made = hostile()
    page = rendered(markdown(made, Gates(fail_if_worse=True).outcomes(made)))
    assert {tag for tag, *_ in page.tags} <= SAFE
    assert [tag for tag, *_ in page.tags].count("strong") == 1
    assert "**b** <script>&amp;]]> www.a.com https://b.c @d" in page.text
    source = markdown(made, ())
    assert not re.search(r"(?m)^\s*::|##\[|www\.|https?://|[\x1b\u202e\x00]", source)


@given(st.text(alphabet="a123 \n#*_`|<>&[]()!~:/.+-=@$\\\"'\t\x1b", max_size=30))
@example("1)")
@example("12. a")
def test_any_text_is_shown_as_it_is_in_markdown(text):
    made = comparison(row(test=text or "x", verdict_text=text))
    page = rendered(markdown(made, ()))
    assert {tag for tag, *_ in page.tags} <= SAFE
    assert all(len(tag) == 1 for tag in page.tags)
    plain = " ".join(text.replace("\x1b", r"\x1b").split())
    assert plain in " ".join(page.text.split())
    assert [cell.strip() for cell in page.cells[:2]] == [plain or ("" if text else "x"), "accuracy"]


def test_of_very_many_rows_the_first_are_shown():
    made = comparison(*(row(test=f"t{place}") for place in range(600)))
    text = markdown(made, ())
    assert text.count("| accuracy |") == 500
    assert "100 more comparisons are left out." in text
    assert len(text) < 2**20


@pytest.mark.parametrize("made", [comparison(unpaired()), comparison(row(direction=None, verdict="higher"))])
def test_what_is_not_known_stays_empty(made):
    assert "None" not in markdown(made, ())
