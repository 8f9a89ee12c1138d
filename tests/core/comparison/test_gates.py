"""Gates: what passes, what fails and why, and what is refused."""

import numpy as np
import pytest
from comparisons import cannot_tell, comparison, row, unpaired, worse
from pairs import items_of, runs_of

from modelgauge.comparison.compare import compare_pairs
from modelgauge.comparison.difference import MacroComparison, MarginTest
from modelgauge.comparison.gates import Gates
from modelgauge.comparison.options import CompareOptions
from modelgauge.config.allowance import Allowance
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


MISSING = (
    "6 of 1,319 items failed and are left out; with them the difference is at least 3.8, at most 4.8 points."
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
            f"B may be worse by 0.02 or more, one-sided p = 0.23. {MISSING}",
        ),
        (
            cannot_tell(equivalence=equivalence(None, None)),
            False,
            "B differs by the same amount on 1,313 items, which without a range does not show how much others vary",
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


# --- failed items -------------------------------------------------------------------------------------------


def with_failures(n_failed, *, side="candidate", n=100, direction="higher", **about):
    """Make two systems with the same answers, half of them right, one of which failed on the first items."""
    values = np.arange(n) % 2 == (direction == "higher")
    sides = {name: values.astype(float) for name in ("baseline", "candidate")}
    sides[side] = np.where(np.arange(n) < n_failed, np.nan, sides[side])
    return items_of(sides["baseline"], sides["candidate"], directions={"accuracy": direction}, **about)


def gated(gates, items, **options):
    """Return the only outcome of a gate on a comparison of such items."""
    made = compare_pairs(runs_of(items), CompareOptions(margin=gates.require_not_worse, **options))
    (outcome,) = gates.outcomes(made)
    return outcome


@pytest.mark.parametrize("side", ["baseline", "candidate"])
@pytest.mark.parametrize("direction", ["higher", "lower"])
@pytest.mark.parametrize(
    "gates", [Gates(require_not_worse=0.1), Gates(fail_if_worse=True)], ids=["not worse", "worse"]
)
def test_gate_fails_where_failed_items_could_make_it_fail(gates, direction, side):
    assert gated(gates, with_failures(0, direction=direction)).passed
    assert gated(gates, with_failures(1, direction=direction, side=side)).passed
    outcome = gated(gates, with_failures(25, direction=direction, side=side))
    assert not outcome.passed
    assert "25 of 100 items failed and are left out; with them the difference is" in outcome.why


def test_failed_items_on_which_the_candidate_cannot_lose_pass():
    baseline, candidate = np.zeros(100), np.zeros(100)
    candidate[:25], candidate[25:50], baseline[25:50] = np.nan, 1, 1
    assert gated(Gates(require_not_worse=0.1), items_of(baseline, candidate)).passed


def test_gate_fails_where_failed_items_of_an_unknown_range_could_change_anything():
    generator = np.random.default_rng(0)
    before = generator.normal(10, 1, 100)
    after = before + generator.normal(0, 0.1, 100)
    assert gated(Gates(require_not_worse=1), items_of(before, after)).passed
    after[0] = np.nan
    outcome = gated(Gates(require_not_worse=1), items_of(before, after))
    assert not outcome.passed
    assert outcome.why.endswith("1 of 100 items failed and is left out.")
    above = gated(Gates(fail_if=(Condition.parse("accuracy > 20"),)), items_of(before, after))
    assert not above.passed
    assert above.why.endswith(
        "with its 1 failed item it may have any value, since 'accuracy' declares no range"
    )


@pytest.mark.parametrize(
    ("condition", "passed", "why"),
    [
        ("accuracy < 0.351", False, "; with its 30 failed items it may have at least 0.35 and at most 0.65"),
        ("accuracy < 0.34", True, ""),
        ("accuracy > 0.6", False, "; with its 30 failed items it may have at least 0.35 and at most 0.65"),
        ("accuracy == 0.6", False, "; with its 30 failed items it may have at least 0.35 and at most 0.65"),
        ("accuracy == 0.7", True, ""),
        ("accuracy >= 0.4", False, ""),
    ],
)
def test_condition_is_about_every_value_that_failed_items_allow(condition, passed, why):
    outcome = gated(Gates(fail_if=(Condition.parse(condition),)), with_failures(30))
    assert (outcome.passed, outcome.why) == (passed, f"B has 0.5 over 70 paired items{why}")


def test_half_open_range_bounds_the_condition_at_its_known_end():
    items = items_of([5.0, 5.0], [np.nan, 4.0], ranges={"accuracy": (0, np.inf)})
    assert gated(Gates(fail_if=(Condition.parse("accuracy < 1"),)), items).passed
    above = gated(Gates(fail_if=(Condition.parse("accuracy > 9"),)), items)
    assert (above.passed, above.why.partition("; ")[2]) == (
        False,
        "with its 1 failed item it may have at least 2",
    )


@pytest.mark.parametrize(
    ("allowed", "passed"), [("0", False), ("24", False), ("25", True), ("24.9%", False), ("25%", True)]
)
def test_more_failed_items_than_allowed_fail(allowed, passed):
    outcome = gated(Gates(max_failed=Allowance.parse(allowed)), with_failures(25))
    assert (outcome.gate, outcome.passed) == (f"--max-failed {allowed}", passed)
    assert outcome.why == "25 of 100 items failed"
