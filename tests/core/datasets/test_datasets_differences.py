"""What became of the goldens of one data set in another."""

from modelgauge.data.test_cases import ConversationalGolden, Golden, LLMTestCase
from modelgauge.datasets.dataset import EvaluationDataset
from modelgauge.datasets.differences import differences


def compared(old, new):
    return differences(EvaluationDataset(old), EvaluationDataset(new))


def test_order_does_not_matter():
    goldens = [Golden("a"), Golden("b"), Golden("a")]
    found = compared(goldens, reversed(goldens))
    assert not found
    assert (found.unchanged, found.is_order_other) == (3, False)
    turned = compared(goldens, goldens[1:] + goldens[:1])
    assert not turned
    assert (turned.unchanged, turned.is_order_other) == (3, True)


def test_added_removed_and_changed():
    old = [Golden("a", expected_output="1"), Golden("b"), Golden("c", name="n"), Golden("d")]
    new = [Golden("e"), Golden("C", name="n"), Golden("a", expected_output="2", context=["x"]), Golden("d")]
    found = compared(old, new)
    assert found.added == [{"input": "e"}]
    assert found.removed == [{"input": "b"}]
    assert [one.fields for one in found.changed] == [["input"], ["expected_output", "context"]]
    assert found.unchanged == 1


def test_repeated_goldens_count():
    found = compared([Golden("a")], [Golden("a"), Golden("a", comments="x")])
    assert (found.unchanged, found.added, found.changed) == (1, [{"input": "a", "comments": "x"}], [])


def test_a_value_that_only_looks_the_same_is_a_change():
    one, other = (Golden("a", additional_metadata={"n": value}) for value in (1, True))
    assert compared([one], [other]).changed[0].fields == ["additional_metadata"]


def test_conversations_are_joined_by_scenario():
    found = compared([ConversationalGolden("s")], [ConversationalGolden("s", expected_outcome="x")])
    assert [one.fields for one in found.changed] == [["expected_outcome"]]


def test_test_cases_are_compared_with_the_goldens():
    before, after = EvaluationDataset([Golden("a")]), EvaluationDataset([Golden("a")])
    after.add_test_case(LLMTestCase("b", actual_output="x"))
    found = differences(before, after)
    assert (found.unchanged, [row["input"] for row in found.added]) == (1, ["b"])
    before.add_test_case(LLMTestCase("b", actual_output="y"))
    assert [one.fields for one in differences(before, after).changed] == [["actual_output"]]
