"""The options of `evaluate`, checked when they are given."""

import pytest

from modelgauge.errors import InvalidOptionError
from modelgauge.evals import LLMTestCase, evaluate


@pytest.mark.parametrize(
    "option",
    ["run_async", "show_indicator", "print_results", "use_cache", "ignore_errors", "skip_on_missing_params"],
)
def test_what_only_looks_like_no_is_refused(option):
    with pytest.raises(InvalidOptionError, match=rf"{option} is 'no'\. Give True or False"):
        evaluate([LLMTestCase("a", "b")], ["exact_match"], **{option: "no"})
