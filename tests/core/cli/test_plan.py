"""`modelgauge plan`: what it shows, as tables and as JSON, from numbers and from runs."""

import pytest


def test_a_plan_from_numbers_says_how_many_items_it_takes(run):
    ended = run("plan", "--rate", "0.7", "--correlation", "0.5", "--effect", "0.05")
    assert ended.code == 0
    assert ended.out.splitlines()[:6] == [
        "To find a difference of 0.05 (0.7 to 0.75) with a power of 0.8 at the level 0.05",
        "Design                        needs",
        "───────────────────────────────────",
        "same items: McNemar, exact      662",
        "same items: McNemar, normal     631",
        "separate samples: normal      1,251",
    ]
    assert "stops at the first p below 0.05" in " ".join(ended.out.split())


def test_a_plan_with_items_says_what_they_find(run):
    out = run("plan", "--rate", "0.7", "--correlation", "0.5", "--items", "500").out
    assert out.startswith("What 500 items can find with a power of 0.8")
    assert "same items: McNemar, exact             0.0575      0.0608\n" in out


def test_a_plan_in_json_is_one_object(run):
    found = run("plan", "--stddev", "0.3", "--correlation", "0.5", "--effect", "0.05", "--json").json
    assert found["schema_version"] == 1
    assert [(one["samples"], one["test"], one["items"]) for one in found["designs"]] == [
        ("paired", "t", 285),
        ("separate", "t", 567),
    ]


def test_every_line_fits_a_narrow_terminal(run):
    options = "--rate 0.7 --correlation 0.3 --repeat-correlation 0.6 --repeats 3 --items 500 --effect -0.05"
    more = "--cluster-size 4 --cluster-correlation 0.2 --failure-rate 0.01 --comparisons 12"
    lines = run("plan", *options.split(), *more.split()).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "The same calls, spent on more items or on more repeats" in lines
    assert "The 500 items that there are, asked more often" in lines


def test_a_plan_from_two_runs(run):
    run("run-test", "--sut", "flaky", "--sut", "echo", "--test", "numbers", "--max-retries", "0")
    ids = {row["sut_uid"]: row["run_id"] for row in run("runs", "--json").json["runs"]}
    ended = run("plan", "--runs", ids["echo"], ids["flaky"])
    assert ended.code == 2  # one is right on all items, the other on none
    assert "differ by the same on all 8 items" in ended.err
    assert f"--runs: Run {ids['echo']} is both" in run("plan", "--runs", ids["echo"], ids["echo"]).err
    assert "There is no run 'nowhere'" in run("plan", "--runs", ids["echo"], "nowhere").err
    invocation = run("runs", "--json").json["runs"][0]["invocation_id"]
    assert f"'{invocation}' means 2 runs." in run("plan", "--runs", ids["echo"], invocation).err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--rate 1.2 --effect 0.1", "'--rate': '1.2' is not a number above 0 and below 1."),
        ("--rate nan --effect 0.1", "'--rate': 'nan' is not a number above 0 and below 1."),
        ("--rate 0.7 --effect 0", "'--effect': '0' is not a number other than 0."),
        (
            "--rate 0.7 --effect 0.25 --correlation 0.9",
            "Error: --correlation 0.9: Rates of 0.7 and 0.95 cannot",
        ),
        ("--rate 0.7", "Give --effect 0.05, or --items 500 to learn which effect these find."),
        ("", "Give --runs A B, --rate 0.7 or --stddev 0.3, and one of them only."),
    ],
)
def test_wrong_input_is_refused_with_the_name_of_the_option(run, arguments, words):
    ended = run("plan", *arguments.split())
    assert ended.code == 2
    assert words in ended.err
