"""Short labels: the parts in which long names differ."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.wording.labels import short_labels, title_labels

FOLDER = "replay//srv/data/gsm8k/solutions"


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["small", "large"], ["small", "large"]),
        ([f"{FOLDER}/a.jsonl?prompt=q", f"{FOLDER}/b.jsonl?prompt=q"], ["a.jsonl", "b.jsonl"]),
        ([f"{FOLDER}/a.jsonl?seed=1", f"{FOLDER}/a.jsonl?seed=2"], ["1", "2"]),
        ([f"{FOLDER}/a.jsonl", f"{FOLDER}/a.jsonl?seed=2"], ["a.jsonl", "a.jsonl?seed=2"]),
        ([f"openai/{'m' * 30}", "acme/n"], [f"openai/{'m' * 30}", "acme/n"]),
        ([f"{FOLDER}/a.jsonl"], [f"{FOLDER}/a.jsonl"]),
        ([], []),
    ],
)
def test_names_are_shortened_to_what_differs(names, labels):
    assert short_labels(names) == labels


@given(st.lists(st.text("ab/?=&:", min_size=1, max_size=60), max_size=5))
def test_labels_differ_where_names_do(names):
    labels = short_labels(names)
    assert len(set(zip(names, labels, strict=True))) == len(set(names)) == len(set(labels))
    assert all(labels)


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["acme/small"], ["acme/small"]),
        ([f"{FOLDER}/a.jsonl?prompt=q&response=r"], ["a.jsonl"]),
        ([f"{FOLDER}/a.jsonl?prompt=q"] * 2, ["a.jsonl"] * 2),
        ([f"{FOLDER}/a.jsonl?prompt=q", "replay//tmp/b.jsonl"], ["a.jsonl", "b.jsonl"]),
        (
            [f"{FOLDER}/a.jsonl", f"{FOLDER}/old/of/last/year/in/a.jsonl"],
            ["a.jsonl", "old/of/last/year/in/a.jsonl"],
        ),
        ([], []),
    ],
)
def test_titles_have_the_last_parts_of_long_names(names, labels):
    assert title_labels(names) == labels
