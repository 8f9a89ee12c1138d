"""Orders: what is wrong with a form, and run files that say what the form said."""

import tomllib
from pathlib import Path

import pytest

from modelgauge.evals import EvaluationDataset, Golden
from modelgauge.plugins.discovery import discover
from modelgauge_workbench.starts.order import Order, Shelf


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    for number in (1, 2, 3):
        goldens = [Golden(input=f"{number}+2?", expected_output="4")]
        EvaluationDataset(goldens).push("capitals", data_dir=tmp_path, parent=number - 1 or None)
    path = tmp_path / "datasets" / "capitals" / "v0003.jsonl"
    path.unlink()
    path.symlink_to("/etc/passwd")
    EvaluationDataset([Golden(input="a")]).push("damaged", data_dir=tmp_path)
    (tmp_path / "datasets" / "damaged" / "versions.jsonl").write_text("{\n")
    return Shelf(discover(), [tmp_path])


def test_problems_stand_at_their_fields(shelf: Shelf) -> None:
    order = Order.of_fields(
        {
            "tests": ["demo_o1", " ", ""],
            "suts": ["demo_yesno", "replay/x.csv", "openai/../x", "openai/x?base_url=http%3A%2F%2Fevil"],
            "datasets": ["capital"],
            "metrics": ["exactmatch"],
            "judge": ["demo_yes"],
            "max_test_items": ["0"],
            "temperature": ["nan"],
            "max_tokens": ["many"],
            "max_errors": ["many"],
            "plugins": ["evil.py"],
        }
    )
    problems = order.problems(shelf)
    assert {*problems} == {
        "tests",
        "suts",
        "datasets",
        "metrics",
        "judge",
        "max_test_items",
        "temperature",
        "max_tokens",
        "max_errors",
    }
    assert "demo_01" in problems["tests"][0]
    assert "demo_yes_no" in problems["suts"][0]
    assert ["cannot be chosen on a page" in problem for problem in problems["suts"][1:]] == [True] * 3
    assert "capitals" in problems["datasets"][0]
    assert "exact_match" in problems["metrics"][0]
    assert problems["temperature"] == ["'nan' is not a number of 0 or more."]
    assert problems["max_tokens"] == ["'many' is not a whole number of 1 or more."]


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, {"suts", "tests"}),
        ({"suts": ["demo_yes_no"], "datasets": ["capitals"]}, {"metrics"}),
        ({"suts": ["demo_yes_no"], "tests": ["demo_01"], "metrics": ["exact_match"]}, {"datasets"}),
        ({"suts": ["small=openai/meta/llama-3", "demo_*"], "tests": ["bbh", "demo_01"]}, set()),
    ],
)
def test_what_is_missing(shelf: Shelf, fields: dict[str, list[str]], wrong: set[str]) -> None:
    assert {*Order.of_fields(fields).problems(shelf)} == wrong


def test_a_run_file_says_what_the_form_said(shelf: Shelf) -> None:
    order = Order.of_fields(
        {
            "datasets": ["capitals", "capitals@1"],
            "metrics": ["exact_match?strict_mode=true"],
            "suts": ['odd " \\ \x7f name=demo_yes_no'],
            "max_test_items": ["10"],
            "max_errors": ["5%"],
            "temperature": ["0.5"],
        }
    )
    labelled = {**order.names, "suts": ["odd=demo_yes_no"]}
    order = Order(labelled, order.options)
    text = order.run_file(shelf)
    said = tomllib.loads(text)
    assert [Path(one).name for one in said["datasets"]] == ["v0002.jsonl", "v0001.jsonl"]
    assert (said["max_test_items"], said["max_errors"], said["temperature"]) == (10, "5%", 0.5)
    again = Order.of_run_file(text, shelf)
    assert again.run_file(shelf) == text
    assert again.names["datasets"] == ("capitals", "capitals@1")
