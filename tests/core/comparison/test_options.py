"""The options of comparisons: what each may be, and what is said where one is not."""

import pytest

from modelgauge import compare
from modelgauge.comparison.options import OPTIONS, CompareOptions
from modelgauge.errors import InvalidOptionError


def test_each_option_has_a_help_and_is_one_of_the_command():
    assert all(about.help.endswith(".") for about in OPTIONS.values())
    assert {about.metavar is None for name, about in OPTIONS.items() if name != "data_dir"} == {False}


def test_a_text_stands_for_a_list_of_one():
    made = CompareOptions.of(allow="data", measurements=["a", "b"], lower_is_better=None)
    assert (made.allow, made.measurements, made.lower_is_better) == (("data",), ("a", "b"), ())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alfa": 0.1}, r"There is no option 'alfa'. Did you mean 'alpha'\?"),
        ({"alpha": 0.5}, "alpha is 0.5. Give a number above 0 and below 0.5."),
        ({"alpha": 5}, "alpha is 5"),
        ({"alpha": None}, "alpha is None"),
        ({"margin": 0}, "margin is 0. Give a number above 0, or None."),
        ({"margin": "1"}, "margin is '1'"),
        ({"test": "t"}, "Give one of: permutation, wilcoxon, bootstrap, or None."),
        ({"allow": "everything"}, "Give one of: data, targets, reduction, thresholds, judge, test."),
        ({"measurements": [1]}, "measurements is 1. Give the name of a measurement."),
        ({"group_by": 1}, "group_by is 1. Give the name of a field"),
        ({"seed": -1}, "seed is -1. Give a whole number of 0 or more."),
        (
            {"lower_is_better": "a", "higher_is_better": ["b", "a"]},
            "'a' is in both lower_is_better and higher_is_better",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(given, message):
    with pytest.raises(InvalidOptionError, match=message):
        compare("no_such_run", "nor_this", **given)


def test_a_baseline_alone_is_refused():
    with pytest.raises(InvalidOptionError, match="nothing to compare the baseline with"):
        compare("latest")
