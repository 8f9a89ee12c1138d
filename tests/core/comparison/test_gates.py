"""Gates: what passes, what fails and why, and what is refused."""

import pytest
from comparisons import cannot_tell, comparison, row, unpaired, worse

from modelgauge.comparison.gates import Gates
from modelgauge.comparison.result import MacroComparison, MarginTest
from modelgauge.errors import InvalidOptionError
from modelgauge.runs.conditions import Condition


def outcomes(gates, *rows, **other):
    return [
        (outcome.gate, outcome.passed, outcome.why) for outcome in gates.outcomes(comparison(*rows, **other))
    ]


def test_no_gate_says_nothing():
    assert not Gates()
    assert outcomes(Gates(), worse()) == []


@pytest.mark.parametrize(
    ("made", "passed"),
    [
        (row(), True),
        (cannot_tell(), True),
        (unpaired(direction="higher", n_failed_baseline=9, n_failed_candidate=9), True),
        (
            unpaired(direction="higher", n_failed_baseline=0, n_failed_candidate=9),
            False,
        ),  # it failed on every item
        (worse(), False),
        (worse(p_adjusted=0.05), True),
        (worse(p_value=0.003, p_adjusted=0.08), True),
        (worse(verdict="equivalent"), False),  # within a margin, and worse all the same
        (worse(direction="lower"), True),
        (row(direction="lower"), False),
    ],
)
def test_fail_if_worse_fails_where_the_adjusted_p_shows_that_it_is_worse(made, passed):
    assert outcomes(Gates(fail_if_worse=True), made) == [("--fail-if-worse", passed, made.verdict_text)]


def test_the_level_is_that_of_the_comparison():
    assert outcomes(Gates(fail_if_worse=True), worse(p_adjusted=0.08), alpha=0.1)[0][1] is False


def test_every_test_and_candidate_is_judged():
    rows = row(), worse(candidate="C"), worse(test="bbh")
    found = Gates(fail_if_worse=True).outcomes(comparison(*rows))
    assert [(one.test, one.candidate, one.passed) for one in found] == [
        ("gsm8k", "B", True),
        ("gsm8k", "C", False),
        ("bbh", "B", False),
    ]


def test_a_loss_that_only_all_tests_together_show_fails():
    said = {"verdict": "worse", "verdict_text": "B is worse than A by 2.0 points, on average over 2 tests."}
    mean = MacroComparison(
        measurement="accuracy", candidate="B", tests=("gsm8k", "bbh"), difference=-0.02, **said
    )
    rows = cannot_tell(), cannot_tell(test="bbh")
    *_, found = Gates(fail_if_worse=True).outcomes(comparison(*rows, macro=[mean]))
    assert (found.test, found.passed, found.why) == ("mean of 2 tests", False, said["verdict_text"])
    better = mean.replaced(verdict="better")
    assert all(
        outcome.passed for outcome in Gates(fail_if_worse=True).outcomes(comparison(*rows, macro=[better]))
    )
    assert (
        len(Gates(fail_if=(Condition.parse("accuracy < 0"),)).outcomes(comparison(*rows, macro=[mean]))) == 2
    )


def equivalence(p_value, not_worse):
    return MarginTest(margin=0.02, interval=(-0.01, 0.03), p_not_worse=p_value, not_worse=not_worse)


@pytest.mark.parametrize(
    ("made", "passed", "why"),
    [
        (
            cannot_tell(equivalence=equivalence(0.0123, True)),
            True,
            "B is not worse by 0.02 or more, one-sided p = 0.012",
        ),
        (
            cannot_tell(equivalence=equivalence(0.23, False)),
            False,
            "B may be worse by 0.02 or more, one-sided p = 0.23",
        ),
        (
            cannot_tell(equivalence=equivalence(None, None)),
            False,
            "no item of B was paired that could show it",
        ),
        (unpaired(direction="higher"), False, "no item of B was paired that could show it"),
    ],
)
def test_require_not_worse_fails_unless_it_is_shown(made, passed, why):
    gate = "--require-not-worse 0.02"
    assert outcomes(Gates(require_not_worse=0.02), made) == [(gate, passed, why)]


def test_fail_if_looks_at_the_value_of_the_candidate():
    condition = Condition.parse("accuracy < 0.6")
    gates = Gates(fail_if=(condition, Condition.parse("words>100")))
    found = outcomes(gates, row(), worse(n_paired=1), cannot_tell(measurement="words", candidate_value=100))
    assert found == [
        ("--fail-if 'accuracy < 0.6'", True, "B has 0.608 over 1,313 paired items"),
        ("--fail-if 'accuracy < 0.6'", False, "B has 0.522 over 1 paired item"),
        ("--fail-if 'words > 100'", True, "B has 100 over 1,313 paired items"),
    ]


def test_a_value_near_the_number_is_shown_on_its_side():
    near = row(candidate_value=0.59999999)
    assert outcomes(Gates(fail_if=(Condition("accuracy", "<", 0.6),)), near)[0][1:] == (
        False,
        "B has 0.59999999 over 1,313 paired items",
    )


def test_nothing_paired_passes_no_condition():
    why = "no item of B was paired, so it has no value"
    assert outcomes(Gates(fail_if=(Condition("accuracy", "<", 0),)), unpaired())[0][1:] == (False, why)


@pytest.mark.parametrize("gates", [Gates(fail_if_worse=True), Gates(require_not_worse=0.02)])
def test_without_a_direction_a_gate_refuses(gates):
    undirected = row(measurement="words", direction=None)
    with pytest.raises(InvalidOptionError) as refused:
        outcomes(gates, row(), undirected, undirected.replaced(measurement="time"), undirected)
    assert refused.value.problem.endswith(
        "cannot judge 'words', 'time': nothing says whether higher or lower values are better."
    )
    assert refused.value.fix == (
        "Give --higher-is-better NAME or --lower-is-better NAME for each, or compare others alone: "
        "--measurement NAME."
    )


def test_a_condition_needs_no_direction():
    undirected = row(direction=None)
    assert outcomes(Gates(fail_if=(Condition("accuracy", "<", 0.6),)), undirected)[0][1] is True


def test_an_unknown_measurement_is_refused_with_the_nearest():
    with pytest.raises(
        InvalidOptionError, match=r"Did you mean 'accuracy'\? The measurements that were compared"
    ):
        outcomes(Gates(fail_if=(Condition("acuracy", "<", 0.9),)), row())
