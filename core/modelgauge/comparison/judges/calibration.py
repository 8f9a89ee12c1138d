"""`calibrate_judge`: a judge's agreement with people, and the scores that people would give."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from modelgauge.comparison.difference import Interval
from modelgauge.comparison.judges.agreements import (
    Agreement,
    LabelKind,
    LabelledAnswer,
    agreements,
    detect_label_kind,
)
from modelgauge.comparison.judges.label_sheets import SheetRow, read_ratings, refuse, resolve_runs
from modelgauge.comparison.judges.scores import LabelledScores, ScoreEstimate, score_estimates
from modelgauge.comparison.named_runs import Given, chosen_measurements
from modelgauge.data.base import Count, Frozen, Text
from modelgauge.data.estimates import Estimate
from modelgauge.errors import InputFileError
from modelgauge.runs.ratings import HIGHEST, LOWEST, first_repeat
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.stats.intervals import joined_clusters
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.phrases import counted

Sheet = dict[tuple[str, str], dict[str, float]]
"""The labels of answers, by SUT and item, then by rater; none for an answer that nobody labelled."""

GOOD = 4
"""The rating from which on an answer is right, unless the caller says another."""

_WORDS = {
    **dict.fromkeys(("yes", "y", "true", "pass", "passed", "right", "correct"), 1.0),
    **dict.fromkeys(("no", "n", "false", "fail", "failed", "wrong", "incorrect"), 0.0),
}
_MOST_SEARCHED = 20_000  # ids among which the nearest to a misspelt one is looked for
_RARE = 0.1
_AT_RANDOM = (
    "Corrected scores hold where the answers were drawn at random, as `modelgauge sample` draws them."
)


class CalibratedSUT(Frozen):
    """The score of a SUT, by its judge and by people.

    Args:
        sut: its uid.
        run_id: of its run.
        n_items: how many items the judge scored.
        n_unscored: how many it did not.
        n_labelled: how many of the scored items people labelled.
        n_without_label: how many of the scored items stand in the sheet without any label.
        scores: estimates of the score that people would give.
    """

    sut: Text
    run_id: Text
    n_items: Count
    n_unscored: Count
    n_labelled: Count
    n_without_label: Count
    scores: tuple[ScoreEstimate, ...]


class Calibration(Frozen):
    """Agreement of a judge with people, and estimates of the scores that people would give.

    Args:
        schema_version: the version of the JSON format.
        measurements: of the judge, or of each judge of a panel.
        label_kind: "binary" for 0 and 1, "grades" for whole numbers, "numbers" for any others.
        raters: who labelled.
        n_rows: rows of the sheets.
        n_without_label: how many of them have no label.
        agreements: of the judge with people, of people with each other, of judges with each other; on all answers and,
            if there are several SUTs, on the answers of each.
        suts: the score of each SUT.
        notes: what a reader should know.
    """

    schema_version: Literal[1] = 1
    measurements: tuple[Text, ...]
    label_kind: LabelKind
    raters: tuple[Text, ...]
    n_rows: Count
    n_without_label: Count
    agreements: tuple[Agreement, ...]
    suts: tuple[CalibratedSUT, ...]
    notes: tuple[Text, ...] = ()


def calibrate_judge(
    runs: Given | Sequence[Given],
    labels: Any,
    *,
    measurement: str | Sequence[str] | None = None,
    good: int = GOOD,
    encoding_type: str = "utf-8",
    data_dir: str | Path | None = None,
) -> Calibration:
    """Compare a judge with people, and estimate the scores that people would give.

    The corrected scores hold if the answers were drawn at random, as `sample_answers` draws them. The page
    "Comparisons" of the reference says which formulas these are.

    Args:
        runs: each of another SUT: records, ids, folders, or `latest`.
        labels: the path of a filled sheet (CSV), a list of paths, or rows with `item_id` and `label`, with `sut` where
            there are several, and with `rater` or without. A path may be that of ratings that were given on the
            workbench: `run_data/ratings/RUN.jsonl`.
        measurement: the judge's, if it has several; several names for a panel of judges, whose score of an answer is
            the mean.
        good: the lowest rating on the workbench that counts as right, for a judge that says right or wrong.
        encoding_type: of the sheets.
        data_dir: where runs are looked up by id.

    Raises:
        InputFileError: a file of labels cannot be read, or rows of it are wrong: all are named, with file and line.
        UnknownNameError: the runs have no such measurement, or have several and the call names none.
        InvalidOptionError: two runs are of one SUT.
        RecordError: a run cannot be found or read.
    """
    judged = [_JudgedRun.of(run) for run in resolve_runs(runs, data_dir)]
    names = _measurements(judged, measurement)
    scored = {run.sut: run.scores(names) for run in judged}
    clusters = {run.sut: run.clusters() for run in judged}
    scores = {value for of_sut in scored.values() for each in of_sut.values() for value in each}
    ratings = read_ratings(labels, encoding_type)
    sheet = _matched(ratings, judged, scores, good)
    given = [label for by_rater in sheet.values() for label in by_rater.values()]
    if not given:
        raise InputFileError("No row has a label.", fix="Fill in the column 'label'.")
    kind = detect_label_kind([*scores, *given])
    answers = [
        LabelledAnswer(sut, scored[sut][item], by_rater, (item, clusters[sut][item]))
        for (sut, item), by_rater in sheet.items()
        if by_rater and item in scored[sut]
    ]
    suts = tuple(_calibrated(run, names, clusters[run.sut], sheet, kind) for run in judged)
    return Calibration(
        measurements=names,
        label_kind=kind,
        raters=tuple(dict.fromkeys(rater for by_rater in sheet.values() for rater in by_rater)),
        n_rows=len(ratings),
        n_without_label=len(ratings) - len(given),
        agreements=tuple(_agreements(answers, [*scored], kind)),
        suts=suts,
        notes=(*_notes(kind, given, len(ratings), suts), *_notes_of_clusters(judged, names, clusters)),
    )


def _agreements(
    answers: Sequence[LabelledAnswer], suts: Sequence[str], kind: LabelKind
) -> Iterator[Agreement]:
    """Return the agreements on all answers and, if there are several SUTs, on those of each."""
    yield from agreements(answers, None, kind)
    for sut in suts if len(suts) > 1 else ():
        yield from agreements([answer for answer in answers if answer.sut == sut], sut, kind)


class _JudgedRun(NamedTuple):
    """Measurements of each item of a run, from its first measured repeat, whose answer people label."""

    sut: str
    run_id: str
    items: dict[str, Mapping[str, float]]
    run: RecordedRun

    @classmethod
    def of(cls, run: RecordedRun) -> "_JudgedRun":
        items = {str(record.test_item.id): first_repeat(record)[1] for record in run.record.iter_items()}
        return cls(run.record.sut_uid, run.record.run_id, items, run)

    def clusters(self) -> dict[str, Hashable]:
        """Return the cluster of each item. Items of the same cluster are not independent."""
        items = self.run.frame()
        if items.clusters is None:
            return {item: item for item in self.items}
        codes = dict(zip(items.keys("id").tolist(), items.clusters.tolist(), strict=True))
        return {item: (self.sut, codes[hash(item)]) for item in self.items}

    def find_range(self, names: Sequence[str]) -> Interval | None:
        """Return the range of these measurements, if both ends of each are known."""
        ranges = [(self.run.record.ranges or {}).get(name, (None, None)) for name in names]
        low, high = zip(*ranges, strict=True)
        return None if None in (*low, *high) else (min(low), max(high))

    def scores(self, names: Sequence[str]) -> dict[str, tuple[float, ...]]:
        """Return the measurements with these names of each item that has all of them."""
        return {
            item: tuple(held[name] for name in names)
            for item, held in self.items.items()
            if all(name in held for name in names)
        }


def _measurements(judged: Sequence[_JudgedRun], measurement: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the judges' measurements, which every run has."""
    held = [dict.fromkeys(name for item in run.items.values() for name in item) for run in judged]
    common = [name for name in held[0] if all(name in values for values in held)]
    return chosen_measurements(common, (measurement,) if isinstance(measurement, str) else measurement or ())


# --- labels -----------------------------------------------------------------------------------------------


def _matched(
    ratings: Iterable[SheetRow], judged: Sequence[_JudgedRun], scores: set[float], good: int
) -> Sheet:
    """Match the labels to the runs' answers, on the scale of the judge's scores.

    Raises:
        InputFileError: rows are wrong.
    """
    binary, like_judge = scores <= {0.0, 1.0}, labels_like(scores, good)
    items = {run.sut: run.items for run in judged}
    of_runs = {run.run_id: run.sut for run in judged}
    sheet: Sheet = {}
    places: dict[tuple[str, str, str], str] = {}
    problems = []
    for rating in ratings:
        sut = rating.sut if rating.sut is not None or len(judged) > 1 else judged[0].sut
        if rating.rated_run is not None:
            sut = of_runs.get(rating.rated_run)
        if rating.rated_run is not None and sut is None:
            problems.append(f"{rating.place}: it has ratings of run {rating.rated_run}. Name this run too.")
            continue
        if sut not in items:
            meant = did_you_mean(sut or "", items)
            problems.append(f"{rating.place}: no run is of the SUT '{sut or ''}'. {meant}Name its run too.")
            continue
        if rating.item_id not in items[sut]:
            near = did_you_mean(rating.item_id, [*items[sut]][:_MOST_SEARCHED])
            problems.append(f"{rating.place}: {sut} has no item '{rating.item_id}'. {near}".rstrip())
            continue
        labels = sheet.setdefault((sut, rating.item_id), {})
        if rating.label is None:
            continue
        own = (sut, rating.item_id, rating.rater)
        if own in places:
            problems.append(
                f"{rating.place}: {rating.rater} labelled item '{rating.item_id}' of {sut} before: {places[own]}."
            )
        places[own] = rating.place
        try:
            label = rating.label if rating.rated_run is None else like_judge(rating.label)
            labels[rating.rater] = _number(label, binary=binary)
        except ValueError as wanted:
            problems.append(f"{rating.place}: the label '{rating.label}' is not {wanted}.")
    refuse([*dict.fromkeys(problems)])
    return sheet


def labels_like(scores: Iterable[float], good: int = GOOD) -> Callable[[int], float]:
    """Return a function that converts ratings from 1 to 5 to the judge's scale: binary, 0 to 1, or unchanged.

    Args:
        scores: of the judge.
        good: the rating from which on an answer is right.
    """
    found = set(scores)
    if found <= {0.0, 1.0}:
        return lambda rating: float(rating >= good)
    if all(0 <= value <= 1 for value in found):
        return lambda rating: (rating - LOWEST) / (HIGHEST - LOWEST)
    return float


def _number(label: Any, *, binary: bool) -> float:
    """Convert a label to a number.

    Raises:
        ValueError: it is none; the message is what is wanted.
    """
    text = str(label).casefold()
    try:
        number = _WORDS[text] if binary and text in _WORDS else float(text)
    except ValueError:
        number = float("nan")
    if binary and number not in (0.0, 1.0):
        raise ValueError("1 or 0, yes or no, as the judge's are")
    if not abs(number) < float("inf"):
        raise ValueError("a number, such as 0.5, as the judge's are")
    return number


# --- scores -----------------------------------------------------------------------------------------------


def _calibrated(
    run: _JudgedRun, names: Sequence[str], clusters: Mapping[str, Hashable], sheet: Sheet, kind: LabelKind
) -> CalibratedSUT:
    scored = run.scores(names)
    mean = {item: float(np.mean(each)) for item, each in scored.items()}
    sampled = {item: by_rater for (sut, item), by_rater in sheet.items() if sut == run.sut and item in mean}
    labelled = {item: float(np.mean([*by_rater.values()])) for item, by_rater in sampled.items() if by_rater}
    missing = [item for item in sampled if item not in labelled]
    others = [item for item in mean if item not in sampled]
    scores = LabelledScores(
        people=np.array([*labelled.values()]),
        judged=np.array([mean[item] for item in labelled]),
        unlabelled=np.array([mean[item] for item in others]),
        missing=np.array([mean[item] for item in missing]),
        binary=kind == "binary",
        declared=_choose_range(run.find_range(names), labelled.values()),
        clusters=joined_clusters([clusters[item] for item in (*labelled, *others, *missing)]),
    )
    return CalibratedSUT(
        sut=run.sut,
        run_id=run.run_id,
        n_items=len(mean),
        n_unscored=len(run.items) - len(mean),
        n_labelled=len(labelled),
        n_without_label=len(missing),
        scores=score_estimates(scores),
    )


def _choose_range(declared: Interval | None, labels: Iterable[float]) -> Interval | None:
    """Return the range of labels and scores; None if it is unknown, or if people's labels exceed it."""
    fits = declared is not None and all(declared[0] <= label <= declared[1] for label in labels)
    return declared if fits else None


def _notes(
    kind: LabelKind, labels: Sequence[float], rows: int, suts: Sequence[CalibratedSUT]
) -> Iterator[str]:
    yield _AT_RANDOM
    share = sum(labels) / len(labels)
    if kind == "binary" and min(share, 1 - share) < _RARE:
        rare = 1 if share < 0.5 else 0
        yield (
            f"{100 * min(share, 1 - share):.2g} % of people's labels are {rare}. Kappa and alpha say little where a "
            "label is rare: look at Gwet's AC1."
        )
    if rows > len(labels):
        have = counted(rows - len(labels), f"row of {rows:,} has", f"rows of {rows:,} have")
        yield (
            f"{have} no label. If these are the hard ones, the corrected scores are wrong; "
            "where an answer has no label at all, their bounds say by how much at most."
        )
    unscored = sum(sut.n_unscored for sut in suts)
    if unscored:
        yield f"The judge gave no score for {counted(unscored, 'item')}; the scores here are about the others."


def _notes_of_clusters(
    judged: Sequence[_JudgedRun], names: Sequence[str], clusters: Mapping[str, Mapping[str, Hashable]]
) -> Iterator[str]:
    """Explain how clusters of items affect the intervals, if items of a run depend on each other."""
    results = [run.run.record.result.get(name) for run in judged for name in names]
    if any(len(set(of_run.values())) < len(of_run) for of_run in clusters.values()):
        yield (
            "The items form clusters, such as several questions on one text, which the intervals allow for. Rogan "
            "and Gladen's assumes independent items, so it is left out."
        )
    elif any(isinstance(result, Estimate) and result.n_clusters is not None for result in results):
        yield (
            "The items form clusters, such as several questions on one text, and the run does not say which. The "
            "intervals here take items as independent, and may be too narrow."
        )
