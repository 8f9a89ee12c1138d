"""What a person reads of a comparison: the answer first, all that is needed to judge it, in 80 columns and inert."""

import re

import pytest
from comparisons import A, B, cannot_tell, comparison, row, unpaired, worse

from modelgauge.comparison.difference import GroupDifference, MacroComparison, MarginTest, RepeatShares
from modelgauge.comparison.families import Family
from modelgauge.comparison.result import LeaderboardTable, RankedSystem, RunDifference
from modelgauge.comparison.verdicts import verdict_text
from modelgauge.documents.terminal import Style, as_text
from modelgauge.reports.comparisons.report import comparison_document


def render(made, style, redact=str, **options):
    return as_text(comparison_document(made, **options), style, redact)


HOSTILE = "\x1b[2J\x07\u202eevil\u2066\r\n::error::x\n\x00| `x` <b>&"


def lines_of(made, **style):
    return render(made, Style(**style)).split("\n")


def test_the_answer_comes_first_then_the_numbers_with_the_interval_drawn():
    assert lines_of(comparison(row())) == [
        "Is B better than A on gsm8k?",
        "B is better than A by 4.3 points (1.5 to 7.1).",
        "",
        "Candidate less baseline in points, higher is better",
        "Measurement   0                          +8   difference   95 % interval       p",
        "─" * 80,
        "accuracy      │    ├─────────●─────────┤            +4.3   +1.5 to +7.1    0.003",
        "    A → B: 0.565 → 0.608  won/lost/equal: 209/152/952",
        "",
        "paired   1,313 of 1,319 items, by id; 6 failed (2 in the baseline alone, 3 in B",
        "         alone, 1 in both)",
        "bounds   +3.8 to +4.8 points if all missing items were worst or best",
        "error    1.4 points; on two separate samples it would be 1.9 (correlation 0.43)",
        "finds    a true difference of 4.0 points 4 times in 5",
        "method   p by McNemar's exact test, interval by Tango's score interval",
        "differs  in nothing else that the runs record",
    ]


def test_the_difference_that_is_found_is_that_of_the_level_and_the_family():
    made = comparison(cannot_tell()).replaced(alpha=0.4, family=3)
    found = verdict_text("B", made.comparisons[0], Family("A", 0.4, 3))
    amount = re.search(r"a difference of ([\d.]+ points) would", found)[1]
    assert f"finds    a true difference of {amount} 4 times in 5" in render(made, Style())


def test_worst_stands_first_where_lower_is_better():
    lower = row(direction="lower", bounds=(-0.02, 0.048))
    assert "bounds   +4.8 to -2.0 points if all missing items were worst or best" in render(
        comparison(lower), Style()
    )
    several = render(comparison(lower, row(measurement="other")), Style(width=160))
    assert "+4.8 to -2.0" in several
    assert "+3.8 to +4.8" in several


def test_margins_repeats_and_clusters_are_said_of_one_comparison():
    margin = MarginTest(
        margin=0.01, interval=(-0.004, 0.008), p_equivalent=0.03, p_not_worse=0.002, not_worse=True
    )
    made = row(
        equivalence=margin, repeats=RepeatShares(between=0.3, within=0.1), n_clusters=200, p_kind="cr2_t"
    )
    shown = render(comparison(made), Style(width=120))
    assert (
        "margin    1 point; 90 % interval -0.4 to +0.8; not worse p = 0.002; no larger difference p = 0.030"
        in shown
    )
    assert "repeats   25 % of the variance is between answers to one item: more repeats make it less" in shown
    assert "clusters  200; items of one are not independent" in shown
    assert "method    p by t with errors that allow for clusters (CR2), interval by Tango's" in shown


def test_the_next_command_stands_last_and_whole():
    command = "modelgauge compare " + "x" * 90
    assert render(comparison(row()), Style(), next_command=command).endswith(f"\nnext     {command}")


def test_ascii_says_the_same():
    shown = render(comparison(row(), cannot_tell(measurement="f1")), Style(symbols=False))
    assert shown.isascii()
    assert "accuracy      [" not in shown
    assert "A -> B: 0.565 -> 0.608" in shown
    assert "o cannot tell" in shown


def test_a_finding_is_told_from_none_without_colour():
    rows = row(), cannot_tell(measurement="f1"), worse(measurement="recall")
    shown = lines_of(comparison(*rows))
    (found,) = [line for line in shown if line.startswith("accuracy  ")]
    (untold,) = [line for line in shown if line.startswith("f1  ")]
    assert "●" in found
    assert "○" in untold
    assert "Candidate less baseline in points, higher is better. ○ cannot tell" in shown


def test_each_of_a_few_comparisons_has_its_sentence():
    made = comparison(row(), worse(measurement="f1"), cannot_tell(test="bbh"))
    assert lines_of(made)[:4] == [
        "Is B better than A on 2 tests?",
        f"gsm8k, accuracy: {row().verdict_text}",
        f"gsm8k, f1: {worse().verdict_text}",
        "bbh, accuracy: Cannot tell whether B is better or worse than A: a difference of",
    ]


def many(tests, candidates=("B",)):
    made = [row, worse, cannot_tell]
    return [
        made[(place + shift) % 3](test=f"task_{place}", candidate=one)
        for place in range(tests)
        for shift, one in enumerate(candidates)
    ]


def test_of_many_the_verdicts_are_counted_first_and_each_has_one_line():
    shown = lines_of(comparison(*many(27)))
    assert shown[:2] == [
        "Is B better than A on 27 tests?",
        "B: better in 9, worse in 9, cannot tell in 9 of 27 comparisons.",
    ]
    rows = [line for line in shown if line.startswith("task_")]
    assert len(rows) == 27
    assert len(shown) < 50
    assert "Also there, in a wider terminal or with --json: A → B, won/lost/equal, worst to" in shown


def test_a_wide_terminal_shows_what_a_narrow_one_leaves_out():
    shown = render(comparison(*many(27)), Style(width=120))
    assert "0.565 → 0.608   209/152/952" in shown
    assert "Also there" not in shown


def test_several_candidates_and_tests_stand_in_a_matrix_and_findings_below():
    made = comparison(*many(27, "BCDE"))
    shown = lines_of(made)
    assert shown[0] == "Are B, C, D and E better than A on 27 tests?"
    assert shown[1:5] == [
        f"{label}: better in 9, worse in 9, cannot tell in 9 of 27 comparisons." for label in "BCDE"
    ]
    head = shown.index("Less A, in points; without a word, it cannot be told")
    assert shown[head + 1].split() == ["Test", *"BCDE"]
    assert shown[head + 3].split() == ["task_0", "+4.3", "better", "-4.3", "worse", "+1.0", "+4.3", "better"]
    assert "The interval of each comparison: with fewer candidates, or with --json." in shown
    assert len(shown) < 45


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize(
    "made",
    [
        comparison(
            row(),
            differs=[RunDifference(test="gsm8k", candidate="B", kind="sut", name="temperature", baseline=0)],
        ),
        comparison(unpaired()),
        comparison(*many(27)),
        comparison(*many(5, ("openai/gpt-4o-mini-2024-07-18", "acme/" + "very-" * 12 + "long"))),
        comparison(
            *[one.replaced(test=f"salient_translation_error_detection_{one.test}") for one in many(20, "BC")]
        ),
    ],
    ids=["one", "nothing", "27 tests", "long labels", "long names"],
)
def test_no_line_is_wider_than_the_terminal(made, width):
    assert max(map(len, lines_of(made, width=width))) <= width


def test_measurements_of_other_units_have_an_axis_of_their_own():
    words = row(
        measurement="words",
        value_range=None,
        direction="lower",
        difference=-12.3,
        interval=(-20, -4),
        stderr=4,
    )
    shown = lines_of(comparison(row(), words))
    assert "Candidate less baseline, lower is better" in shown
    (line,) = [line for line in shown if line.startswith("words  ")]
    assert re.search(r"-12\.3   -20\.0 to -4\.0 ", line)


def test_without_a_direction_nothing_is_better():
    shown = render(comparison(row(direction=None, verdict="higher")), Style())
    assert "which values are better is not known" in shown


GROUPS = [
    GroupDifference(
        group="addition",
        n_paired=412,
        baseline_value=0.71,
        candidate_value=0.73,
        difference=0.02,
        stderr=0.02,
        interval=(-0.02, 0.06),
    ),
    GroupDifference(group="one", n_paired=1, baseline_value=0, candidate_value=1, difference=1),
]


def test_groups_stand_below_their_comparison():
    made = row(groups=GROUPS, groups_text="Cannot tell whether the difference is the same in all groups.")
    shown = lines_of(comparison(made))
    (group,) = [line for line in shown if line.startswith("  addition (412)  ")]
    assert group.split()[-4:] == ["+2.0", "-2.0", "to", "+6.0"]
    assert "◇" in group
    assert "    A → B: 0.710 → 0.730" in shown
    assert any(line.startswith("  one (1)  ") for line in shown)
    assert "groups   Cannot tell whether the difference is the same in all groups." in shown


def test_means_over_tests_stand_below_the_tests():
    mean = MacroComparison(
        measurement="accuracy",
        candidate="B",
        tests=("bbh", "gsm8k"),
        difference=0.02,
        stderr=0.01,
        interval=(0.0, 0.04),
        p_value=0.046,
        p_adjusted=0.046,
        direction="higher",
        value_range=(0, 1),
        verdict="better",
        verdict_text="B is better than A by 2.0 points (0.0 to 4.0), on average over 2 tests.",
    )
    shown = lines_of(comparison(row(), worse(test="bbh"), macro=[mean]))
    assert shown[1] == mean.verdict_text
    (line,) = [line for line in shown if line.startswith("mean of 2 tests")]
    assert line.split()[-5:] == ["+2.0", "0.0", "to", "+4.0", "0.046"]


def test_a_leaderboard_shows_ranges_of_ranks_and_who_cannot_be_told_apart():
    board = LeaderboardTable(
        test="gsm8k",
        measurement="accuracy",
        n=1300,
        systems=[
            RankedSystem(system="B", value=0.61, ranks=(1, 2)),
            RankedSystem(system="C", value=0.6, ranks=(1, 2)),
            RankedSystem(system="A", value=0.5, ranks=(3, 3)),
        ],
        groups=[("B", "C"), ("A",)],
    )
    shown = lines_of(comparison(row(), row(candidate="C"), leaderboard=[board]))
    head = shown.index("gsm8k, accuracy: 1,300 items that all systems have")
    assert [line.split() for line in shown[head + 3 : head + 6]] == [
        ["1", "to", "2", "B", "0.610", "a"],
        ["1", "to", "2", "C", "0.600", "a"],
        ["3", "A", "0.500"],
    ]


def test_a_leaderboard_of_systems_that_failed_says_how_many_items_each_has():
    systems = [
        RankedSystem(system="B", value=0.6, n=50, ranks=(1, 2)),
        RankedSystem(system="A", value=0.5, n=8, ranks=(1, 2)),
    ]
    board = LeaderboardTable(test="gsm8k", measurement="accuracy", n=8, systems=systems, groups=[("B", "A")])
    assert "gsm8k, accuracy: 8 to 50 items of each system, compared in pairs" in lines_of(
        comparison(row(), leaderboard=[board])
    )


def test_items_that_lack_a_value_are_counted_by_where_they_lack_it():
    lacking = row(
        n_only_baseline=3,
        n_only_candidate=2,
        n_failed=0,
        n_failed_baseline=0,
        n_failed_candidate=0,
        matched_by="input",
    )
    shown = lines_of(comparison(lacking))
    assert "paired   1,313 of 1,318 items, by input; 3 only in the baseline; 2 only in B" in shown


def test_what_differs_stands_once():
    differs = [
        RunDifference(
            test=test, candidate="B", kind="options", name="temperature", baseline=0, candidate_value=0.7
        )
        for test in ("bbh", "gsm8k")
    ]
    other = RunDifference(test="bbh", candidate="B", kind="plugins", name="openai", baseline="0.1.0")
    shown = lines_of(comparison(row(), row(test="bbh"), differs=[*differs, other], notes=["A note."]))
    assert "differs  options temperature: 0 -> 0.7 (in 2 pairs of runs)" in shown
    assert "differs  plugins openai: 0.1.0 -> none" in shown
    assert shown[-1] == "note     A note."


def test_hostile_labels_are_shown_and_not_obeyed():
    made = comparison(
        row(test=HOSTILE, measurement=HOSTILE, candidate=HOSTILE, verdict_text=HOSTILE),
        row(test="other", candidate=HOSTILE),
        baseline=A.replaced(label=HOSTILE),
        candidates=[B.replaced(label=HOSTILE)],
        differs=[RunDifference(test=HOSTILE, candidate=HOSTILE, kind="sut", name=HOSTILE, baseline=HOSTILE)],
        notes=[HOSTILE],
        leaderboard=[
            LeaderboardTable(
                test=HOSTILE,
                measurement=HOSTILE,
                n=2,
                systems=[RankedSystem(system=HOSTILE, value=1, ranks=(1, 1))],
                groups=[(HOSTILE,)],
            )
        ],
    )
    shown = render(made, Style(width=120))
    assert not set(shown) & set("\x1b\x07\u202e\u2066\r\x00")
    assert r"\x1b[2J" in shown


def test_secrets_are_taken_out():
    made = comparison(row(candidate="sk-123", verdict_text="sk-123 is better."), notes=["sk-123"])
    assert "sk-123" not in render(made, Style(), lambda text: text.replace("sk-123", "[REDACTED]"))


def test_of_many_leaderboards_the_ranks_stand_in_one_table():
    boards = [
        LeaderboardTable(
            test=f"task_{place}",
            measurement="accuracy",
            n=100,
            systems=[
                RankedSystem(system="B", value=0.6, ranks=(1, 2)),
                RankedSystem(system="A", value=0.5, ranks=(2, 2)),
            ],
            groups=[("B", "A")],
        )
        for place in range(4)
    ]
    shown = lines_of(comparison(*many(4, "BC"), leaderboard=boards))
    head = shown.index("Ranks that each system may have")
    assert shown[head + 1].split() == ["Test", "A", "B", "C"]
    assert shown[head + 3].split() == ["task_0", "2", "1", "to", "2"]


def test_many_candidates_are_counted_in_the_question():
    few, many = (
        lines_of(comparison(*(row(candidate=f"B{place}") for place in range(number))))[0] for number in (6, 7)
    )
    assert few == "Are B0, B1, B2, B3, B4 and B5 better than A on gsm8k?"
    assert many == "Are 7 candidates better than A on gsm8k?"


def test_a_table_without_a_column_of_measurements_says_which_it_shows():
    rows = [
        row(candidate=label, **other)
        for other in ({}, {"measurement": "words", "value_range": None})
        for label in "BC"
    ]
    shown = lines_of(comparison(*rows), width=100)
    assert "accuracy: candidate less baseline in points, higher is better" in shown
    assert "words: candidate less baseline, higher is better" in shown


def test_tables_of_one_test_each_say_which():
    known, unknown = row(), row(test="ten", direction=None)
    shown = lines_of(comparison(known, unknown), width=100)
    assert "gsm8k: candidate less baseline in points, higher is better" in shown
    assert "ten: candidate less baseline in points; which values are better is not known" in shown
