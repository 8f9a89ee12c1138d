"""`Comparison`: the result of a comparison, for terminals, pages, gates and JSON. Its rows are in `difference.py`."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, PrivateAttr

from modelgauge.comparison.difference import MacroComparison, MeasurementComparison
from modelgauge.comparison.item_pairs import FlippedItem, ItemPairs
from modelgauge.data.base import Count, Frozen, Text
from modelgauge.data.responses import JsonValue
from modelgauge.data.results import Direction
from modelgauge.documents.document import Heading, Sentences, TableBlock, TableColumn
from modelgauge.documents.notebook import as_notebook
from modelgauge.wording.phrases import beginning

_MOST_ROWS = 50  # in a notebook


class System(Frozen):
    """One side of a comparison: a SUT or an app, by the runs that measured it.

    Args:
        label: its name in tables, unique in a comparison.
        sut_uid: the SUT of its runs.
        runs: for each test (or data set) the id of the run.
        given: the run, invocation or file as the caller named it.
    """

    label: Text
    sut_uid: Text
    runs: dict[str, str]
    given: Text


class RankedSystem(Frozen):
    """A system's place on a leaderboard.

    Args:
        system: its label.
        value: its mean over its items that the baseline's run has too.
        n: how many items that is over; None in comparisons of older versions.
        ranks: (best, worst) rank that it may have, 1 for the best.
    """

    system: Text
    value: FiniteFloat
    n: Count | None = None
    ranks: tuple[Count, Count]


class LeaderboardTable(Frozen):
    """Leaderboard of three systems or more, each compared with each other on one measurement of one test.

    Two systems are compared on the items that both have. A candidate and the baseline are told apart where the verdict
    does so, two candidates by the same test.

    Args:
        test: the test (or data set).
        measurement: its name.
        n: how many items all of the systems have a value for.
        direction: which values are better; None if the runs do not say: then the highest value is first.
        systems: best first.
        groups: the labels of indistinguishable systems, best first; a system may be in several.
        intervals: for each pair (first, second, low, high): the interval of first less second, with the confidence
            1 - alpha / m of m p values that are shown together; all hold together with confidence 1 - alpha.
    """

    test: Text
    measurement: Text
    n: Count
    direction: Direction | None = None
    systems: tuple[RankedSystem, ...]
    groups: tuple[tuple[Text, ...], ...]
    intervals: tuple[tuple[Text, Text, FiniteFloat, FiniteFloat], ...] = ()


class RunDifference(Frozen):
    """A difference between two compared runs, other than their answers.

    Args:
        test: the test (or data set).
        candidate: the label of the candidate.
        kind: "data", "targets", "reduction", "thresholds", "judge" or "test", which make numbers incomparable unless
            they are allowed; else "sut", "options", "plugins", "hyperparameters" or "sample".
        name: what differs, such as "temperature".
        baseline: its value in the baseline's run; None if it has none.
        candidate_value: its value in the candidate's run.
        fields: of "targets", the fields in which the contexts of these two items differ.
    """

    test: Text
    candidate: Text
    kind: Text
    name: Text
    baseline: JsonValue = None
    candidate_value: JsonValue = None
    fields: Annotated[tuple[Text, ...], Field(exclude_if=lambda fields: not fields)] = ()


class Comparison(Frozen):
    """A baseline and its candidates, compared on all tests and measurements that they have in common.

    Args:
        schema_version: the version of the JSON format.
        baseline: what the candidates are compared with.
        candidates: in the order in which they were given.
        alpha: the level below which an adjusted p value is a finding.
        family: how many p values were adjusted together: those of all comparisons, of their groups, of means over
            tests, and of pairs of candidates on leaderboards; measurements with equal values on all items count once.
        comparisons: one for each test, measurement and candidate.
        macro: means over tests, if there are two tests or more.
        leaderboard: for each test and measurement, if there are three systems or more.
        differs: in what else the runs differ.
        notes: what a reader should know besides.
    """

    schema_version: Literal[1] = 1
    baseline: System
    candidates: tuple[System, ...]
    alpha: FiniteFloat
    family: Count
    comparisons: tuple[MeasurementComparison, ...]
    macro: tuple[MacroComparison, ...] = ()
    leaderboard: tuple[LeaderboardTable, ...] = ()
    differs: tuple[RunDifference, ...] = ()
    notes: tuple[Text, ...] = ()
    _paired: Sequence[ItemPairs] = PrivateAttr(default=())

    def __str__(self) -> str:
        """Return the verdicts, one line for each comparison and each mean over tests."""
        rows = [f"{row.test}, {row.measurement}: {row.verdict_text}" for row in self.comparisons]
        return "\n".join([*rows, *(f"{mean.measurement}: {mean.verdict_text}" for mean in self.macro)])

    def __repr__(self) -> str:
        """Return one line with the systems and what is compared; `str` has the verdicts."""
        measured = ", ".join(dict.fromkeys(f"{row.test} {row.measurement}" for row in self.comparisons))
        candidates = ", ".join(self.labels[1:])
        return f"<Comparison of {candidates} with {self.baseline.label}: {beginning(measured, 200)}>"

    def _repr_html_(self) -> str:
        """Return the table for notebooks: one row per verdict."""
        rows, more = self.comparisons[:_MOST_ROWS], len(self.comparisons) - _MOST_ROWS
        means = [f"mean over {len(mean.tests)} tests" for mean in self.macro]
        named: list[MeasurementComparison | MacroComparison] = [*rows, *self.macro]
        table = TableBlock(
            [
                TableColumn("Test", [*(row.test for row in rows), *means]),
                TableColumn("Measurement", [row.measurement for row in named]),
                TableColumn("Candidate", [row.candidate for row in named]),
                TableColumn("Verdict", [row.verdict_text for row in named]),
                TableColumn("Items", [*(f"{row.n_paired:,}" for row in rows), *[""] * len(means)]),
            ],
            note=f"{more:,} more" if more > 0 else "",
        )
        title = Heading(f"{', '.join(self.labels[1:])} against {self.baseline.label}")
        return as_notebook([title, table, Sentences(self.notes)])

    def with_items(self, paired: Sequence[ItemPairs]) -> "Comparison":
        """Return a copy of the comparison that includes its items.

        Args:
            paired: the paired items of each comparison.
        """
        bound = self.model_copy()
        bound._paired = paired  # noqa: SLF001  its own class
        return bound

    @property
    def labels(self) -> list[str]:
        """The labels of all systems, that of the baseline first."""
        return [self.baseline.label, *(system.label for system in self.candidates)]

    @property
    def paired(self) -> Sequence[ItemPairs]:
        """The paired items of each comparison; none where the comparison was read from JSON."""
        return self._paired

    def iter_flips(self, most: int | None = None) -> Iterator[FlippedItem]:
        """Yield the items on which the systems differ: for each comparison the lost, then the won, largest
        differences first.

        Args:
            most: at most this many lost and this many won items of each comparison, and no others are read; None for
                all.
        """
        for row, items in zip(self.comparisons, self._paired, strict=False):
            yield from items.flips(row.measurement, most)
