"""Names, labels, groups and patterns: what `--test` and `--sut` stand for."""

import pytest

from modelgauge.errors import NameCollisionError, PluginError, UnknownNameError, UsageError
from modelgauge.plugins.name_matches import check_labels, match_names
from modelgauge.plugins.registry import Register, Registry


def registry(kind, *distributions):
    made = Registry(kind)
    for distribution in distributions:
        register = Register(kind, distribution)
        register(f"{distribution}_b", dict)
        register(f"{distribution}_a", dict)
        register("lab=el", dict) if distribution == "one" else None
        register.provider("api" if distribution == "one" else "other", dict)
        register.group("both", [f"{distribution}_b", f"{distribution}_a"])
        made.add(register.entries)
    return made


def shown(registry, *names):
    return [(one.name, one.label, dict(one.groups), one.is_named) for one in match_names(registry, names)]


def test_a_name_stands_for_itself_and_an_unknown_one_is_left_to_its_error():
    assert shown(registry("test", "one"), "one_a", "nobody", "one_a?x=*") == [
        ("one_a", None, {}, True),
        ("nobody", None, {}, True),
        ("one_a?x=*", None, {}, True),
    ]


def test_a_pattern_stands_for_the_uids_that_match_and_its_options_are_those_of_each():
    assert [one[0] for one in shown(registry("test", "one"), "one_*?x=1")] == ["one_a?x=1", "one_b?x=1"]
    assert [one[0] for one in shown(registry("test", "one"), "*a")] == ["one_a"]


def test_a_group_stands_for_its_members():
    assert shown(registry("test", "one"), "both") == [
        ("one_a", None, {"both": 2}, False),
        ("one_b", None, {"both": 2}, False),
    ]


def test_what_is_named_twice_is_chosen_once_and_counts_as_named():
    assert shown(registry("test", "one"), "one_b", "both", "one_*", "one_b") == [
        ("one_b", None, {"both": 2}, True),
        ("one_a", None, {"both": 2}, False),
    ]


def test_objects_are_kept_as_they_are_and_in_their_place():
    assert [one.name for one in match_names(registry("test", "one"), [1, "one_a", 2, 2])] == [
        1,
        "one_a",
        2,
        2,
    ]


def test_a_label_stands_before_the_name_of_a_sut():
    suts = registry("sut", "one")
    assert shown(suts, "small model=api/m?a=b=c", "one_a?x=y=z", "api/x=y", "lab=el") == [
        ("api/m?a=b=c", "small model", {}, True),
        ("one_a?x=y=z", None, {}, True),
        ("api/x=y", None, {}, True),
        ("lab=el", None, {}, True),
    ]
    assert shown(registry("test", "one"), "a=b")[0][0] == "a=b"  # tests have no labels


@pytest.mark.parametrize("name", ["=one_a", " =one_a", "a\nb=one_a", f"{'a' * 61}=one_a"])
def test_a_label_is_a_short_text_on_one_line(name):
    with pytest.raises(UsageError, match="has no label"):
        match_names(registry("sut", "one"), [name])


def test_one_sut_has_one_label_and_one_label_one_sut():
    suts = registry("sut", "one")
    with pytest.raises(UsageError, match="'one_a' is named twice: with the label 'x', and with 'y'"):
        match_names(suts, ["x=one_a", "y=one_a"])
    with pytest.raises(UsageError, match="with the label 'x', and without one"):
        match_names(suts, ["one_a", "x=one_a"])
    assert shown(suts, "one_*", "x=one_a")[0] == ("one_a", "x", {}, True)
    check_labels([("a", None), ("b", "x"), ("a", None)])
    for taken in ("x", "a"):
        with pytest.raises(UsageError, match=f"'{taken}' is the name of two SUTs: "):
            check_labels([("a", None), ("b", "x"), ("c", taken)])


def test_a_pattern_that_matches_nothing_says_what_is_near():
    with pytest.raises(UnknownNameError, match=r"No test matches 'noe_\*'.* Did you mean 'one_\*'"):
        match_names(registry("test", "one"), ["noe_*"])


def test_models_of_a_provider_match_no_pattern_but_are_sent_as_they_are():
    assert shown(registry("sut", "one"), "api/gpt-*")[0][0] == "api/gpt-*"


def test_a_group_of_two_plugins_is_an_error_when_it_is_named():
    both = registry("test", "one", "two")
    assert len(shown(both, "one_*")) == 2
    with pytest.raises(NameCollisionError, match="'both' of tests is claimed by one and by two"):
        match_names(both, ["both"])


def test_a_group_is_registered_after_its_members_under_a_name_of_its_own():
    register = Register("test", "mine")
    register("english", dict)
    with pytest.raises(
        PluginError, match=r"names 'englsh', which is not registered\. Did you mean 'english'"
    ):
        register.group("languages", ["englsh"])
    for name in ("english", "two words", ""):
        with pytest.raises(PluginError, match="cannot be registered"):
            register.group(name, ["english"])


@pytest.mark.parametrize("pattern", ["one_[ab]", "one_[a-b]", "[o]ne_*", "one_[!c]"])
def test_brackets_stand_for_one_of_their_characters(pattern):
    assert [one[0] for one in shown(registry("test", "one"), pattern)] == ["one_a", "one_b"]


def test_brackets_that_match_nothing_are_an_error_with_a_likely_pattern():
    with pytest.raises(UnknownNameError, match=r"No test matches 'noe_\[ab\]'\.* Did you mean 'one_\[ab\]'"):
        match_names(registry("test", "one"), ["noe_[ab]"])
    with pytest.raises(UnknownNameError) as caught:
        match_names(registry("test", "one"), ["noe_[xy]"])
    assert "Did you mean" not in str(caught.value)  # one_[xy] matches nothing either


def test_brackets_in_a_name_are_that_name():
    made, register = Registry("test"), Register("test", "three")
    register("arc[1]", dict)
    made.add(register.entries)
    assert shown(made, "arc[1]") == [("arc[1]", None, {}, True)]
