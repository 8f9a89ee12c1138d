"""Differences in JSON: flat, with the keys of their kind in a fixed order."""

import json

import pytest
from tests.core.comparison.comparisons import comparison, row

from modelgauge.comparison.difference import GroupDifference, MacroComparison
from modelgauge.comparison.result import Comparison

GROUP = GroupDifference(group="x", n_paired=5, baseline_value=0.2, candidate_value=0.4, difference=0.2)
MEAN = MacroComparison(
    measurement="accuracy",
    candidate="B",
    tests=("a", "b"),
    difference=0.1,
    verdict="cannot_tell",
    verdict_text="Cannot tell.",
)


def test_row_is_flat_in_json():
    keys = list(json.loads(row().model_dump_json()))
    assert keys[:5] == ["test", "measurement", "candidate", "matched_by", "n_paired"]
    assert keys[-2:] == ["verdict", "verdict_text"]
    assert len(keys) == 43


@pytest.mark.parametrize("made", [GROUP, MEAN], ids=["group", "mean"])
def test_group_and_mean_write_the_keys_of_their_kind(made):
    assert tuple(json.loads(made.model_dump_json())) == tuple(made.model_dump()) == made.written
    assert "stderr" not in made.model_dump(exclude_none=True)


def test_comparison_comes_back_from_json():
    made = comparison(row(groups=(GROUP,)), macro=(MEAN,))
    assert Comparison.load(json.loads(made.model_dump_json())) == made


def test_comparison_of_an_older_version_is_read():
    data = json.loads(comparison(row(), macro=(MEAN,)).model_dump_json())
    for name in ("n_failed_baseline", "n_unmeasured", "candidate_bounds"):
        del data["comparisons"][0][name]
    for name in ("n_paired", "bounds", "p_if_worst"):
        del data["macro"][0][name]
    found = Comparison.load(data)
    assert (found.comparisons[0].n_failed_baseline, found.macro[0].n_paired) == (0, 0)
    assert found.comparisons[0].difference == row().difference


@pytest.mark.filterwarnings("ignore:Skipped fields")
def test_comparison_of_a_newer_version_is_read():
    data = json.loads(comparison(row()).model_dump_json())
    data["comparisons"][0]["later"] = 1
    assert Comparison.load(data) == comparison(row())
