import math

import pytest
from scipy import stats as scipy_stats

from modelgauge.errors import InvalidDataError
from modelgauge.stats import detectable_difference


@pytest.mark.parametrize(("power", "alpha", "family"), [(0.8, 0.05, 1), (0.9, 0.01, 12)])
def test_the_detectable_difference_is_that_of_the_z_test(power, alpha, family):
    z = scipy_stats.norm.isf(alpha / family / 2) + scipy_stats.norm.ppf(power)
    found = detectable_difference(0.3, power=power, alpha=alpha, family=family)
    assert found == pytest.approx(0.3 * z, rel=1e-12)


@pytest.mark.parametrize(
    ("stderr", "options"),
    [(0, {}), (math.nan, {}), (math.inf, {}), (1, {"power": 1}), (1, {"alpha": 0}), (1, {"family": 0})],
)
def test_what_finds_nothing_is_refused(stderr, options):
    with pytest.raises(InvalidDataError):
        detectable_difference(stderr, **options)
