"""`compare`: from runs to a comparison, in one call."""

import pytest
from measured_runs import measured_run

from modelgauge import Comparison, FunctionSUT, PromptResponseTest, TestItem, compare, run_test

pytestmark = pytest.mark.usefixtures("run_folder")


class Sums(PromptResponseTest):
    measurement_directions = {"right": "higher", "words": "lower"}  # noqa: RUF012  as authors write it

    def make_test_items(self, dependencies):
        for number in range(60):
            yield TestItem(f"{number} + 1", context={"parity": "eo"[number % 2], "sum": str(number + 1)})

    def measure_quality(self, item):
        return {
            "right": item.text.split()[-1] == item.context["sum"],
            "words": len(item.text.split()),
            "letters": len(item.text),
        }


@pytest.fixture
def run_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def adder(uid, answer):
    return FunctionSUT(uid, lambda prompt: answer(int(prompt.split()[0])), version=1)


def run(uid, answer):
    return run_test(Sums("sums"), adder(uid, answer), progress=False)


def small():
    return run("small", lambda number: f"It is {number + (number % 3 > 0)}")


def large():
    return run("large", lambda number: str(number + 1))


def test_two_records_or_the_names_of_their_runs_give_the_same():
    before, after = small(), large()
    found = compare(before, after, lower_is_better="letters", group_by="parity")
    assert isinstance(found, Comparison)
    by_name = {row.measurement: row for row in found.comparisons}
    assert [*by_name] == ["right", "words", "letters"]
    assert (by_name["right"].verdict, by_name["right"].wins, by_name["right"].losses) == ("better", 20, 0)
    assert (by_name["right"].value_range, by_name["right"].p_kind) == ((0, 1), "mcnemar_exact")
    # Each answer is two words shorter, which does not say how much the answers to other questions vary.
    assert (by_name["words"].verdict, by_name["words"].difference, by_name["words"].p_kind) == (
        "cannot_tell", -2, None,
    )  # fmt: skip
    assert by_name["letters"].verdict == "better"
    assert [group.group for group in by_name["right"].groups] == ["e", "o"]
    named = compare("latest~1", after.run_id, lower_is_better="letters", group_by="parity")
    assert [row.model_dump() for row in named.comparisons] == [row.model_dump() for row in found.comparisons]
    assert Comparison.model_validate_json(found.model_dump_json()).comparisons == found.comparisons


def test_flipped_items_are_those_that_differ_lost_ones_first():
    found = compare(large(), small(), measurements=["right", "words"], higher_is_better="words")
    flips = [(flip.measurement, flip.won) for flip in found.iter_flips()]
    assert flips == [("right", False)] * 20 + [("words", True)] * 60
    (first, *_) = found.iter_flips(1)
    assert (first.baseline_answers, first.candidate_answers) == (("1",), ("It is 0",))


def test_without_a_direction_nothing_is_better():
    found = compare(small(), large(), measurements="letters")
    assert found.comparisons[0].verdict == "lower"
    assert str(found).startswith("sums, letters: large is lower than small by ")


def test_baseline_of_which_all_items_failed_is_compared_by_its_bounds():
    failed = measured_run("a", dict.fromkeys("vwxyz"), ranges={"right": (0, 1)})
    scored = measured_run("b", {"v": 1.0, "w": 0.0, "x": 1.0, "y": 1.0, "z": 1.0}, ranges={"right": (0, 1)})
    (row,) = compare(failed, scored).comparisons
    assert (row.n_paired, row.n_failed, row.n_failed_baseline, row.n_failed_candidate) == (0, 5, 5, 0)
    assert (row.verdict, row.bounds) == ("cannot_tell", (pytest.approx(-0.2), pytest.approx(0.8)))
    (turned,) = compare(scored, failed).comparisons
    assert (turned.n_failed_baseline, turned.n_failed_candidate) == (0, 5)
    assert turned.bounds == (pytest.approx(-0.8), pytest.approx(0.2))


def test_three_systems_have_a_leaderboard():
    found = compare(small(), large(), run("none", lambda _: "No idea"), measurements="right")
    assert [row.verdict for row in found.comparisons] == ["better", "worse"]
    assert [system.system for system in found.leaderboard[0].systems] == ["large", "small", "none"]
