"""Plans: the items that a comparison needs and what it can find, by scipy and statsmodels, and from two runs."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from measured_runs import measured_run
from scipy import stats
from statsmodels.stats.power import NormalIndPower, TTestIndPower, TTestPower

from modelgauge import plan_comparison
from modelgauge.comparison.plan import LOOK_ONCE
from modelgauge.errors import InvalidDataError, InvalidOptionError, RecordError, UnknownNameError
from modelgauge.stats import paired_difference

GSM8K = Path(__file__).parents[5] / "shared" / "data" / "gsm8k"


def mcnemar(losses, wins, n, alpha=0.05):
    """The power of McNemar's exact test, over all numbers of items on which the systems disagree."""
    m = np.arange(n + 1)
    least = stats.binom.isf(alpha / 2, m, 0.5)
    tails = stats.binom.sf(least, m, wins / (losses + wins)) + stats.binom.sf(
        least, m, losses / (losses + wins)
    )
    return float((stats.binom.pmf(m, n, losses + wins) * tails).sum())


def shares(rate, other, correlation):
    both = rate * other + correlation * math.sqrt(rate * (1 - rate) * other * (1 - other))
    return rate - both, other - both


# --- numbers that are given -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect", "alpha", "comparisons"), [(0.05, 0.05, 1), (-0.1, 0.05, 4), (0.1, 0.01, 1)]
)
def test_the_items_for_a_rate_are_the_first_that_reach_the_power(effect, alpha, comparisons):
    plan = plan_comparison(
        rate=0.7, correlation=0.5, effect=effect, alpha=alpha, comparisons=comparisons, items=200
    )
    exact, _, separate = plan.designs
    level = alpha / comparisons
    assert mcnemar(*shares(0.7, 0.7 + effect, 0.5), exact.items, level) >= 0.8
    assert mcnemar(*shares(0.7, 0.7 + effect, 0.5), exact.items - 1, level) < 0.8
    assert exact.power == pytest.approx(mcnemar(*shares(0.7, 0.7 + effect, 0.5), 200, level), rel=1e-9)
    size = abs(effect) / math.sqrt((0.7 + effect / 2) * (0.3 - effect / 2))
    around = NormalIndPower().solve_power(size, alpha=level, power=0.8)
    assert separate.items == pytest.approx(around, rel=0.01)


@pytest.mark.parametrize(("effect", "spread"), [(0.05, 0.05), (0.1, 0.3), (-0.1, 0.1)])
def test_items_for_scores_of_a_declared_range_reach_the_power_of_their_test(effect, spread):
    """The test adds imaginary items, with which as many items as for plain numbers find next to nothing."""
    rng = np.random.default_rng(0)

    def draw(n, effect):
        before = rng.uniform(0.4, 0.6, n)
        return before, before + rng.uniform(effect - spread, effect + spread, n)

    earlier = [dict(zip(map(str, range(500)), values.tolist(), strict=True)) for values in draw(500, 0.0)]
    runs = [
        measured_run(sut, values, ranges={"right": (0.0, 1.0)})
        for sut, values in zip("ab", earlier, strict=True)
    ]
    planned = plan_comparison(*runs, effect=effect).designs[0].items
    found = [
        paired_difference(*draw(planned, effect), declared=(0.0, 1.0)).p_value < 0.05 for _ in range(1_000)
    ]
    assert 0.76 < np.mean(found) < 0.84
    plain = [measured_run(sut, values) for sut, values in zip("ab", earlier, strict=True)]
    assert plan_comparison(*plain, effect=effect).designs[0].items < planned


def test_what_items_find_has_the_power_that_was_planned():
    exact, normal, separate = plan_comparison(rate=0.7, correlation=0.5, items=500, power=0.9).designs
    assert mcnemar(*shares(0.7, 0.7 + exact.gain, 0.5), 500) == pytest.approx(0.9, abs=1e-9)
    assert mcnemar(*shares(0.7, 0.7 - exact.loss, 0.5), 500) == pytest.approx(0.9, abs=1e-9)
    assert exact.items is exact.power is None
    assert normal.gain < exact.gain < separate.gain


@pytest.mark.parametrize("correlation", [-0.3, 0.0, 0.4, 0.95])
@pytest.mark.parametrize("rate", [0.05, 0.5, 0.97])
def test_no_gain_or_loss_is_more_than_there_can_be(rate, correlation):
    for design in plan_comparison(rate=rate, correlation=max(correlation, -0.03), items=3000).designs:
        for found, sign in ((design.gain, 1), (design.loss, -1)):
            if design.samples == "paired" and found is not None:
                assert min(shares(rate, rate + sign * found, max(correlation, -0.03))) >= -1e-12
            assert found is None or 0 < rate + sign * found < 1


def test_few_items_find_nothing_and_that_is_said_by_none():
    assert [design.gain for design in plan_comparison(rate=0.9, correlation=0.5, items=20).designs[:2]] == [
        None,
        None,
    ]


def test_the_items_for_other_numbers_are_those_of_the_t_test():
    paired, separate = plan_comparison(stddev=0.3, correlation=0.5, effect=0.05).designs
    # Of differences: sqrt(2 * 0.3² * (1 - 0.5)) = 0.3.
    assert paired.items == math.ceil(TTestPower().solve_power(0.05 / 0.3, alpha=0.05, power=0.8))
    assert separate.items == math.ceil(TTestIndPower().solve_power(0.05 / 0.3, alpha=0.05, power=0.8))
    paired, separate = plan_comparison(stddev=0.3, correlation=0.5, items=paired.items).designs
    assert paired.gain == paired.loss == pytest.approx(0.05, rel=2e-3)


def test_failures_and_clusters_take_more_items():
    plain = plan_comparison(stddev=1, correlation=0, effect=0.2).designs
    more = plan_comparison(
        stddev=1, correlation=0, effect=0.2, failure_rate=0.1, cluster_size=5, cluster_correlation=0.25
    )
    assert more.assumed.design_effect == 2
    for one, other, failures in zip(plain, more.designs, (0.81, 0.9), strict=True):
        assert other.items == pytest.approx(2 * one.items / failures, rel=0.01)


def test_items_that_fail_find_less():
    assumed = {"stddev": 1, "correlation": 0, "effect": 0.2}
    fewer = plan_comparison(**assumed, items=1000, failure_rate=0.1).designs[0]
    assert fewer.power == pytest.approx(plan_comparison(**assumed, items=810).designs[0].power, abs=1e-12)


def test_repeats_take_out_what_lies_within_items():
    assumed = {"rate": 0.7, "correlation": 0.2, "repeat_correlation": 0.6, "effect": 0.05}
    plan = plan_comparison(**assumed, items=400, repeats=3)
    whole, within = 2 * 0.21 * (1 - 0.2), 2 * 0.21 * (1 - 0.6)
    paired, _ = plan.designs
    expected = TTestPower().power(0.05 / math.sqrt(whole - within + within / 3), nobs=400, alpha=0.05)
    assert paired.power == pytest.approx(expected, rel=1e-9)
    assert [(design.items, design.repeats) for design in plan.more_repeats] == [
        (400, one) for one in (1, 2, 3, 5, 10)
    ]
    assert plan.more_repeats[2].stderr == pytest.approx(math.sqrt((whole - within + within / 3) / 400))
    calls = [design.calls for design in plan.same_calls]
    assert calls[2] == 3 * paired.items
    assert max(calls) - min(calls) < 10
    errors = [design.stderr for design in plan.same_calls]
    assert errors == sorted(errors)  # more items beat more repeats


def test_repeats_of_items_that_fail_have_fewer_values():
    assumed = {"rate": 0.7, "correlation": 0.2, "repeat_correlation": 0.6, "items": 400}
    plan = plan_comparison(**assumed, repeats=3, failure_rate=0.1)
    fewer = plan_comparison(**{**assumed, "items": 324}, repeats=3)  # 400 * 0.9 * 0.9
    for one, other in zip(plan.more_repeats, fewer.more_repeats, strict=True):
        assert (one.items, one.calls) == (400, 400 * one.repeats)
        assert (one.stderr, one.detectable) == pytest.approx((other.stderr, other.detectable))
    assert plan.designs[0].gain == pytest.approx(fewer.designs[0].gain)


def test_a_plan_says_why_nobody_should_stop_early():
    """Five looks at two equal systems, simulated: 14 of 100 of them are significant once."""
    assert LOOK_ONCE in plan_comparison(rate=0.7, correlation=0, effect=0.1).notes
    walks = np.random.default_rng(0).standard_normal((200_000, 5)).cumsum(axis=1) / np.sqrt(np.arange(1, 6))
    assert (abs(walks) > stats.norm.isf(0.025)).any(axis=1).mean() == pytest.approx(0.142, abs=0.003)


# --- two runs -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gsm8k():
    """The runs of two models on GSM8K, as their authors judged the answers."""
    if not GSM8K.is_dir():
        pytest.skip("the data of GSM8K is not on this machine")
    runs = []
    for model in ("6b_finetuning", "175b_verification"):
        lines = (GSM8K / f"solutions-{model}.jsonl").read_text(encoding="utf-8").splitlines()
        runs.append(
            measured_run(model, {f"q{n}": json.loads(one)["is_correct"] for n, one in enumerate(lines)})
        )
    return runs


def test_runs_say_what_their_systems_are_like(gsm8k):
    plan = plan_comparison(*gsm8k, effect=0.05)
    right = [[record.measurements["right"] for record in run.iter_items()] for run in gsm8k]
    assert plan.assumed.rate == 286 / 1319
    assert plan.assumed.correlation == pytest.approx(np.corrcoef(*right)[0, 1], rel=1e-10)
    assert plan.assumed.paired_variance == pytest.approx(np.var(np.subtract(*right), ddof=1), rel=1e-10)
    assert (plan.assumed.items, plan.assumed.measurement) == (1319, "right")
    expected = mcnemar(*shares(286 / 1319, 286 / 1319 + 0.05, plan.assumed.correlation), 1319)
    assert plan.designs[0].power == pytest.approx(expected, rel=1e-9)


def test_repeats_in_runs_say_how_much_lies_within_items():
    rng = np.random.default_rng(1)
    ease = rng.uniform(0.2, 0.8, 300)
    runs = [
        measured_run(
            sut, {f"n{i}": (rng.random(4) < p).astype(float).tolist() for i, p in enumerate(ease)}, repeats=4
        )
        for sut in "ab"
    ]
    plan = plan_comparison(*runs)
    within = sum(np.mean([np.var(one.repeat_values, ddof=1) for one in held]) for held in map(_repeats, runs))
    assert plan.assumed.within_variance == pytest.approx(within, rel=1e-10)
    assert (plan.assumed.repeats, plan.assumed.rate) == (4, None)
    assert len(plan.more_repeats) == 5


class _Repeats:
    def __init__(self, item):
        self.repeat_values = [repeat["right"] for repeat in item.repeat_measurements]


def _repeats(run):
    return [_Repeats(item) for item in run.iter_items()]


def test_runs_with_prices_know_what_a_plan_costs():
    values = {f"n{i}": float(i % 3 == 0) for i in range(60)}
    other = {f"n{i}": float(i % 2 == 0) for i in range(60)}
    a = measured_run("a", values, cost=0.6)
    b = measured_run("b", other, cost=0.3, cached=30)  # half of the answers for 0.3: one costs 0.01
    plan = plan_comparison(a, b, effect=0.1)
    assert plan.assumed.cost_usd == pytest.approx(0.02)
    assert plan.cost_usd == pytest.approx(0.02 * plan.designs[0].items)
    assert plan_comparison(a, measured_run("b", other), effect=0.1).cost_usd is None
    assert plan_comparison(a, measured_run("b", other, cost=0.0, cached=60), effect=0.1).cost_usd is None


def test_plan_from_runs_with_repeats_pays_for_every_repeat():
    rng = np.random.default_rng(5)
    a, b = (
        measured_run(
            sut,
            {f"n{i}": rng.integers(0, 2, 3).astype(float).tolist() for i in range(30)},
            cost=cost,
            repeats=3,
        )
        for sut, cost in (("a", 1.8), ("b", 0.9))
    )
    plan = plan_comparison(a, b, effect=0.2)
    assert (plan.assumed.repeats, plan.assumed.cost_usd) == (
        3,
        pytest.approx(0.03),
    )  # 2.7 for 90 answers of both
    assert plan.cost_usd == pytest.approx(0.03 * 3 * plan.designs[0].items)
    assert plan.more_repeats[3].cost_usd == pytest.approx(0.03 * 30 * 5)


def test_items_that_failed_or_stand_in_one_run_only_are_counted():
    a = measured_run("a", {"x": 1.0, "y": 0.0, "z": None, "v": 1.0, "only": 1.0})
    b = measured_run("b", {"x": 0.0, "y": 0.0, "z": 1.0, "v": None})
    plan = plan_comparison(a, b)
    assert plan.assumed.items == 4
    assert plan.assumed.failure_rates == (0.25, 0.25)
    assert plan.notes[0] == "1 item is left out: not in both runs."
    assert plan_comparison(a, b, failure_rate=0).assumed.failure_rates == (0, 0)


def test_items_with_the_same_prompt_are_clusters():
    rng = np.random.default_rng(2)
    ease = np.repeat(rng.random(40), 3)
    asked = {f"n{i}": f"question {i // 3}" for i in range(120)}
    runs = [
        measured_run(
            sut, {item: float(rng.random() + shift * ease[i]) for i, item in enumerate(asked)}, prompts=asked
        )
        for sut, shift in (("a", 0), ("b", 2))
    ]
    plan = plan_comparison(*runs, effect=0.1)
    differences = np.subtract(
        *[[record.measurements["right"] for record in run.iter_items()] for run in runs]
    )
    groups = np.reshape(differences, (40, 3))
    within = groups.var(axis=1, ddof=1).mean()
    between = groups.mean(axis=1).var(ddof=1) - within / 3
    assert plan.assumed.design_effect == pytest.approx(1 + 2 * between / (between + within), rel=1e-10)
    assert plan_comparison(*runs, cluster_size=2, cluster_correlation=0.5).assumed.design_effect == 1.5


def test_a_correlation_that_cannot_be_where_systems_are_apart_is_lowered():
    right = [float(i < 70) for i in range(100)]
    a = measured_run("a", {f"n{i}": one for i, one in enumerate(right)})
    b = measured_run("b", {f"n{i}": one for i, one in enumerate([0.0, *right[1:]])})
    plan = plan_comparison(a, b, effect=0.1)
    assert plan.assumed.correlation == pytest.approx(math.sqrt(0.7 * 0.2 / (0.8 * 0.3)))
    assert "The runs have a correlation of 0.98; 0.76 is used" in plan.notes[0]


def test_plan_from_runs_with_impossible_negative_correlation_uses_nearest_possible():
    a = measured_run("a", {f"n{i}": float(i != 0) for i in range(12)})
    b = measured_run("b", {f"n{i}": float(i % 2 == 0) for i in range(12)})
    plan = plan_comparison(b, a)
    assert plan.assumed.correlation < -0.2  # possible at rates of 0.5
    plan = plan_comparison(a, b)
    assert plan.assumed.correlation == pytest.approx(-1 / 11)
    assert "; -0.09 is used, the nearest that rates of 0.9167 and 0.9167 can have." in plan.notes[0]
    for design in plan.designs[:2]:
        assert design.gain is None or 0 < design.gain <= 1 / 12


# --- what cannot be planned -----------------------------------------------------------------------------------

ITEMS = {"x": 1.0, "y": 0.0, "z": 1.0}
A, B = measured_run("a", ITEMS), measured_run("b", {**ITEMS, "z": 0.0})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"effect": 0.1}, "--rate 0.7 or --stddev 0.3, and one of them only"),
        ({"rate": 0.7, "stddev": 1, "effect": 0.1}, "one of them only"),
        ({"rate": 0.7}, "--effect 0.05, or --items 500"),
        ({"rate": 0.7, "effect": 0.4}, "--effect 0.4 make a rate of 1.1"),
        ({"rate": 0.7, "effect": 0.25, "correlation": 0.9}, "--correlation 0.9: .* Give one from"),
        ({"rate": 0.7, "correlation": 1, "effect": 0.1}, "--correlation 1 the systems never differ"),
        ({"stddev": 1, "correlation": 1, "effect": 0.1}, "--correlation 1 the systems never differ"),
        ({"stddev": 1, "correlation": 0.5, "repeat_correlation": 0.4, "effect": 1}, "--repeat-correlation 0.4"),
        ({"stddev": 1, "repeats": 2, "effect": 1}, "how much 2 answers to one item vary"),
        *(({"effect": 0.1, **one}, next(iter(one))) for one in (
            {"rate": 1.2}, {"rate": 0}, {"rate": math.nan}, {"rate": True}, {"stddev": 0}, {"stddev": math.inf},
            {"correlation": 1.1}, {"power": 1}, {"alpha": 0}, {"comparisons": 0}, {"failure_rate": 1},
            {"cluster_size": 0.5}, {"cluster_correlation": 2}, {"repeats": 0}, {"items": 1}, {"effect": 0},
            {"repeat_correlation": -1}, {"effect": math.nan},
        )),
    ],
)  # fmt: skip
def test_wrong_numbers_name_the_option(options, words):
    with pytest.raises(InvalidOptionError, match=words):
        plan_comparison(**options)


@pytest.mark.parametrize(
    ("candidate", "options", "error", "words"),
    [
        (None, {}, InvalidOptionError, "two runs or none"),
        (A, {}, RecordError, "--runs: Run 20260131-120000-a is both"),
        (measured_run("b", ITEMS, test="other"), {}, RecordError, "--runs: .* no test in common"),
        (measured_run("b", dict.fromkeys(ITEMS)), {}, UnknownNameError, "no measurement in common"),
        (measured_run("b", {"x": {"length": 1.0}}), {}, UnknownNameError, "no measurement in common"),
        (measured_run("b", {"other": 1.0}), {}, RecordError, "--runs: .* no item in common"),
        (measured_run("b", {"x": 1.0, "y": None, "z": None}), {}, InvalidDataError, "1 has one"),
        (measured_run("b", ITEMS), {}, InvalidDataError, "differ by the same on all 3 items"),
        (B, {"measurement": "rihgt"}, UnknownNameError, "Did you mean 'right'"),
        (B, {"correlation": 0.5}, InvalidOptionError, "--correlation"),
    ],
)
def test_wrong_runs_are_told_what_is_wrong(candidate, options, error, words):
    with pytest.raises(error, match=words):
        plan_comparison(A, candidate, **options)


def test_of_several_measurements_one_must_be_chosen():
    both = {name: {"right": value, "short": 1 - value} for name, value in ITEMS.items()}
    a, b = measured_run("a", both), measured_run("b", {**both, "z": {"right": 0.0, "short": 1.0}})
    with pytest.raises(UnknownNameError, match=r"several measurements .* --measurement: right, short"):
        plan_comparison(a, b)
    assert plan_comparison(a, b, measurement="short").assumed.measurement == "short"
