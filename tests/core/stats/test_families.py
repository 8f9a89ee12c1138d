import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from modelgauge.errors import InvalidDataError
from modelgauge.stats import holm


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()
    assert holm([0.7, 0.9]) == (1.0, 1.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_lies_between_no_correction_and_bonferroni(p_values):
    adjusted = holm(p_values)
    for raw, corrected in zip(p_values, adjusted, strict=True):
        assert raw <= corrected <= min(1.0, raw * len(p_values))
    assert adjusted == pytest.approx(multipletests(p_values, method="holm")[1], rel=1e-10)
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [adjusted[place] for place in order] == sorted(adjusted)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_holm_takes_p_values_only(bad):
    with pytest.raises(InvalidDataError, match="not p values"):
        holm([0.5, bad])
