"""What runs differ in, and what of that is refused."""

import pytest
from recorded import item, record

from modelgauge.comparison.options import CompareOptions
from modelgauge.comparison.pairing.paired_runs import paired_runs
from modelgauge.data.records import DatasetReference
from modelgauge.data.results import Sample, Threshold
from modelgauge.errors import RecordError


def made(uid="exam", **parts):
    return {
        "uid": uid,
        "class_name": "tests:Exam",
        "cache_version": 0,
        "arguments": {},
        "opaque": [],
        **parts,
    }


def differs(before, after, **options):
    runs = [record(sut, item(0), **fields) for sut, fields in (("a", before), ("b", after))]
    return paired_runs(runs[0], [runs[1]], CompareOptions(**options)).differs


def digest(letter):
    return DatasetReference(name="goldens", digest=letter * 64)


def given(name, value, other=None):
    """The same field of both records."""
    return {name: value}, {} if other is None else {name: other}


def judged(**parts):
    return {"j": made(**parts)}


REFUSED = {
    "data": {
        "data set 111111111111 → 222222222222": given("dataset", digest("1"), digest("2")),
        "data set 111111111111 → none": given("dataset", digest("1")),
        "words 1 → 2": given("dependency_versions", {"words": "1"}, {"words": "2"}),
    },
    "reduction": {"reduction pass@2 → none": given("reduction", "pass@2")},
    "thresholds": {"x 1.0 → 2.0": given("thresholds", *({"x": Threshold(value=one)} for one in (1, 2)))},
    "judge": {
        "j, model x → y": given("annotators", *(judged(arguments={"model": one}) for one in "xy")),
        "j / j, cache_version 1 → 0": given("judges", *({"j": judged(cache_version=one)} for one in (1, 0))),
    },
    "test": {
        "cache_version 1 → 0": given("test_initialization", made(cache_version=1)),
        "shots 5 → none": given("test_initialization", made(arguments={"shots": 5})),
        "class tests:Other → tests:Exam": given("test_initialization", made(class_name="tests:Other")),
    },
}
CASES = [(kind, change, *runs) for kind, changes in REFUSED.items() for change, runs in changes.items()]


@pytest.mark.parametrize(("kind", "change", "before", "after"), CASES)
def test_what_makes_numbers_incomparable_is_refused_unless_it_is_allowed(kind, change, before, after):
    with pytest.raises(RecordError) as caught:
        differs(before, after)
    assert f"{kind}: exam, {change}." in str(caught.value)
    assert f"--allow {kind} (in Python allow=['{kind}'])" in str(caught.value)
    (one,) = differs(before, after, allow=kind)
    assert (one.test, one.candidate, one.kind) == ("exam", "b", kind)


def test_all_that_is_refused_is_said_at_once():
    before = {"dependency_versions": {"words": "1"}, "reduction": "max"}
    with pytest.raises(
        RecordError, match=r"data: exam, words 1 → none; reduction: .* --allow data --allow reduction"
    ):
        differs(before, {})
    with pytest.raises(RecordError, match=r"comparable: reduction: exam, reduction max → none\."):
        differs(before, {}, allow="data")


LISTED = {
    "options": (*given("sut_options", {"temperature": 0.0}, {"temperature": 0.7}), ("temperature", 0.0, 0.7)),
    "repeats": ({"repeats": 5}, {}, ("repeats", 5, 1)),
    "plugins": ({"plugins": {"p": "1", "q": "1"}}, {"plugins": {"p": "2"}}, ("p", "1", "2")),
    "hyperparameters": ({"hyperparameters": {"k": 1}}, {}, ("k", 1, None)),
    "sut": ({"sut_initialization": made(arguments={"size": 1})}, {}, ("size", 1, None)),
    "sample": (
        {"sample": Sample(size=1, total=2, seed=0)},
        {},
        ("sample", {"size": 1, "total": 2, "seed": 0}, None),
    ),
}


@pytest.mark.parametrize(("before", "after", "change"), LISTED.values(), ids=LISTED)
def test_what_else_differs_is_listed(before, after, change):
    (one,) = differs(before, after)
    assert (one.name, one.baseline, one.candidate_value) == change


def test_runs_that_are_alike_differ_in_nothing():
    assert differs({}, {}) == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # a judge that only one run has gives measurements that only this run has
        ({"annotators": {"j": made()}}, {}),
        # thresholds are compared as such
        ({"annotators": {"j": made(arguments={"threshold": 1})}}, {"annotators": {"j": made()}}),
        # what has no exact JSON cannot be compared
        given("test_initialization", *(made(arguments={"f": one}, opaque=["f"]) for one in (1, 2))),
        # the metrics of a data set are its annotators
        given("test_initialization", *(made(arguments={"metrics": [one]}) for one in (1, 2))),
        # an older record does not say its options
        ({"directions": None, "ranges": None}, {"sut_options": {"temperature": 0.0}}),
    ],
)
def test_what_is_no_difference_is_not_listed(before, after):
    assert differs(before, after) == ()
