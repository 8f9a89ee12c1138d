"""Numbers as a person reads them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.data.estimates import figure_beside, reaches
from modelgauge.wording.figures import decimals_for, duration, exact, figure, limit, p_phrase, p_text, size


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (0.62431, 0.0312, "0.624"),
        (0.0312, 0.0312, "0.031"),
        (0.5, 0.0996, "0.500"),
        (1234.5678, 12.3, "1,235"),
        (1234.5678, 0.5, "1,234.57"),
        (-0.001, 0.5, "0.00"),
        (-0.1, 0.5, "-0.10"),
        (0.00000123, 0.00000045, "1.23e-06"),
        (3e20, 1e18, "3e+20"),
        (0.0001, 0.00001, "0.000100"),
        (0.00005, 0.0001, "0.00005"),
        (0.00009994, 0.00001, "9.99e-05"),
        (999999999999999.0, 1.0, "999,999,999,999,999.0"),
        (1e15, 1e14, "1e+15"),
        (5.0, 1e15, "5"),
        (0.5, 1e-13, "0.500000000000"),
        (5.0, 1.0, "5.0"),
        (5.0, 10.0, "5"),
        (-1500.0, 10.0, "-1,500"),
    ],
)
def test_a_number_has_the_digits_that_its_error_leaves(value, error, shown):
    assert figure(value, error) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (1.0, "1"),
        (1319, "1,319"),
        (0.216831, "0.2168"),
        (0.5, "0.5"),
        (12.3456, "12.35"),
        (1234567.89, "1,234,567.9"),
        (0.00001234567, "1.235e-05"),
        (1e300, "1e+300"),
        (-2, "-2"),
        (-0.0, "0"),
        (0.0001, "0.0001"),
        (0.00012345, "0.0001234"),
        (0.00009999, "9.999e-05"),
        (-0.00001234567, "-1.235e-05"),
        (-0.25, "-0.25"),
        (999999999999999, "999,999,999,999,999"),
        (1e15, "1e+15"),
        (-1e15, "-1e+15"),
    ],
)
def test_a_number_without_an_error_has_four_digits(value, shown):
    assert figure(value) == figure(value, 0.0) == shown


@pytest.mark.parametrize(
    ("value", "threshold", "shown", "limited"),
    [
        (0.69999999, 0.7, "0.69999999", "≥ 0.7"),
        (0.6999999999, 0.7, "0.7", "≥ 0.7"),  # which passes
        (0.6999, 0.7, "0.6999", "≥ 0.7"),
        (0.12345678, 0.7, "0.1235", "≥ 0.7"),
        (0.69997, 0.69998, "0.69997", "≥ 0.69998"),
        (3.00001, 3, "3.00001", "≥ 3"),
        (1234.56789, 1234.5679, "1,234.56789", "≥ 1,234.5679"),
    ],
)
def test_no_number_is_rounded_across_the_threshold_beside_it(value, threshold, shown, limited):
    assert figure_beside(value, threshold) == shown
    assert limit(threshold, higher_is_better=True) == limited


@pytest.mark.parametrize(("higher_is_better", "shown"), [(True, "≥ 0.5"), (False, "≤ 0.5")])
def test_a_limit_tells_which_side_passes(higher_is_better, shown):
    assert limit(0.5, higher_is_better=higher_is_better) == shown
    assert limit(None, higher_is_better=higher_is_better) == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.1 + 0.2, "0.3"),
        (0.123456789012345, "0.123456789012345"),
        (0.1234567890123456, "0.123456789012346"),
        (2.0, "2"),
    ],
)
def test_an_exact_number_lacks_the_noise_of_floats_alone(value, shown):
    assert exact(value) == shown


@given(st.floats(-2000, 2000), st.integers(-2000, 2000), st.integers(1, 10**6))
def test_what_is_shown_passes_where_the_value_does(near, numerator, denominator):
    threshold = numerator / denominator
    for value in (near, threshold, threshold + near * 1e-9, threshold - 1.5e-9):
        shown = float(figure_beside(value, threshold).replace(",", ""))
        for up in (True, False):
            passes = reaches(value, threshold, higher_is_better=up)
            assert reaches(shown, threshold, higher_is_better=up) == passes


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e3))
def test_what_is_shown_is_within_a_twentieth_of_the_error(value, error):
    assert abs(float(figure(value, error).replace(",", "")) - value) <= max(
        error / 19, 0.5000001 * (error >= 10)
    )


@given(st.floats(1e-9, 1e9))
def test_an_error_is_shown_with_two_digits(error):
    shown = round(error, decimals_for(error))
    assert math.isclose(shown, error, rel_tol=0.051) or error >= 10


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (0.0042, "4 ms"),
        (0.0094, "9 ms"),
        (0.0095, "0.0095 s"),
        (0.01, "0.01 s"),
        (0.034, "0.034 s"),
        (1.26, "1.3 s"),
        (9.99, "10 s"),
        (10, "10 s"),
        (12.3, "12 s"),
        (59.6, "1 min 00 s"),
        (200, "3 min 20 s"),
        (60, "1 min 00 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 00 min"),
        (3720, "1 h 02 min"),
        (3600 * 1234 + 60 * 59 + 59, "1,234 h 59 min"),
    ],
)
def test_durations_have_their_natural_unit(seconds, shown):
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (94_200, "94.2 kB"),
        (99_900, "99.9 kB"),
        (100_000, "100 kB"),
        (2_500_000_000, "2.5 GB"),
        (123_456_789, "123 MB"),
        (5e12, "5.0 TB"),
    ],
)
def test_sizes(count, shown):
    assert size(count) == shown


@pytest.mark.parametrize(
    ("value", "alpha", "shown"),
    [
        (1.0, 0.05, "1.00"),
        (0.25, 0.05, "0.25"),
        (0.0321, 0.05, "0.032"),
        (0.04996, 0.05, "0.04996"),
        (0.05, 0.05, "0.050"),
        (0.0996, 0.1, "0.0996"),
        (0.00099, 0.05, "<0.001"),
        (1e-300, 0.05, "<0.001"),
        (0.0, 0.05, "<0.001"),
        (0.0004, 0.0005, "0.0004"),
        (0.0, 0.0005, "0"),
    ],
)
def test_a_p_value_stays_on_its_side_of_alpha(value, alpha, shown):
    assert p_text(value, alpha) == shown


def test_a_p_value_in_a_sentence_has_one_sign():
    assert p_phrase(0.032, 0.05) == "p = 0.032"
    assert p_phrase(1e-9, 0.05) == "p < 0.001"
