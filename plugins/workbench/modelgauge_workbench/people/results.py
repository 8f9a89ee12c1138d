"""What came out of ratings: how far people agree with each other, and judges with them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from modelgauge.comparison.judges.agreements import Agreement, LabelledAnswer, agreement_of_people
from modelgauge.comparison.judges.calibration import (
    GOOD,
    Calibration,
    calibrate_judge,
    labels_like,
)
from modelgauge.data.thresholds import PASSED
from modelgauge.documents.document import Block, Heading, Sentences, TableBlock, TableColumn
from modelgauge.documents.plots import reliability
from modelgauge.errors import ModelGaugeError
from modelgauge.reports.comparisons.calibration import (
    agreement_table,
    calibration_notes,
    confusion_table,
    score_table,
    sut_labels,
)
from modelgauge.reports.pages.run_parts import bins_of
from modelgauge.runs.ratings import HIGHEST, LOWEST
from modelgauge.wording.figures import between
from modelgauge_workbench.people.queue import Queue
from modelgauge_workbench.rendering import page
from modelgauge_workbench.workbench import workbench_of

_MOST_SHOWN = 20
_COEFFICIENTS = (
    "“Same label” is a share. Of the coefficients, 1 is perfect agreement and 0 is what chance gives. Intervals are by "
    "the bootstrap over answers. Skipped answers have no label."
)

Scores = dict[str, dict[str, float]]
"""What was measured of each answer of a queue, by its key."""


def show_agreement(request: Request, queue: Queue) -> Response:
    """Answer with the agreement of raters with each other, and the answers on which they disagree most."""
    answers = list(_labelled(queue))
    raters = sorted({rater for _, answer in answers for rater in answer.people})
    suts = sorted({answer.sut for _, answer in answers})
    of_suts = [None, *(suts if len(suts) > 1 else ())] if len(raters) > 1 else []
    agreements = [
        agreement_of_people([answer for _, answer in answers if sut in (None, answer.sut)], sut, "grades")
        for sut in of_suts
    ]
    spread = sorted(answers, key=lambda pair: -_range(pair[1]))
    return page(
        request,
        "people/agreement.html.j2",
        title="Agreement of raters",
        queue=queue,
        raters=[_raters_table(raters, queue)] if raters else [],
        several=len(suts) > 1,
        verdict=_verdict(agreements[0], f"{len(raters)} people") if agreements else "",
        agreement=[*_agreement(agreements, {sut: sut for sut in suts})] if agreements else [],
        disputed=[
            (queue.answer(key), sorted(answer.people.items()))
            for key, answer in spread[:_MOST_SHOWN]
            if _range(answer)
        ],
    )


def show_calibration(request: Request, queue: Queue) -> Response:
    """Answer with how far a judge agrees with people, by SUT, and what people would have scored."""
    good = request.query_params.get("good", "")
    limit = int(good) if good in ("2", "3", "4", "5") else GOOD
    scores = _scores(request, queue)
    held: dict[str, set[str]] = {run.key: set() for run in queue.runs}
    for key, measured in scores.items():
        held[queue.answer(key).run.key].update(measured)
    names = sorted(name for name in set.intersection(*held.values()) if not name.endswith(PASSED))
    wanted = request.query_params.get("measurement") or (names[0] if names else "")
    found: Calibration | None = None
    problem = ""
    chart: Markup | None = None
    if not names:
        problem = "These runs have no measurement in common: choose runs that were judged alike."
    else:
        try:
            found = _calibration(queue, scores, wanted, limit)
        except ModelGaugeError as error:
            problem = f"{error.problem} {error.fix}"
        chart = _chart(queue, scores, wanted, limit)
    return page(
        request,
        "people/calibration.html.j2",
        title="Judges beside people",
        queue=queue,
        names=names,
        wanted=wanted,
        good=limit,
        found=found,
        problem=problem,
        chart=chart,
        verdict=_verdict(found.agreements[0], f"{wanted} and people") if found else "",
        calibration=[*_calibrated(found)] if found else [],
        notes=[Sentences([*calibration_notes(found, sut_labels(found))], look="dim")] if found else [],
    )


# --- agreement -------------------------------------------------------------------------------------------------------


def _labelled(queue: Queue) -> Iterator[tuple[str, LabelledAnswer]]:
    """The answers that somebody rated, by their keys."""
    for answer in queue.answers:
        given = queue.ratings.get(answer.key, ())
        people = {rating.rater: float(rating.score) for rating in given if rating.score is not None}
        if people:
            yield answer.key, LabelledAnswer(answer.run.sut, (), people)


def _range(answer: LabelledAnswer) -> float:
    return max(answer.people.values()) - min(answer.people.values())


def _verdict(found: Agreement, who: str) -> str:
    """Sum up an agreement in a sentence."""
    alpha = next(
        (coefficient for coefficient in found.coefficients if coefficient.name == "krippendorff_alpha"), None
    )
    if alpha is None or alpha.value is None:
        return f"Whether {who} agree cannot be told yet: it takes more answers that both rated."
    interval = f" ({between(alpha.interval, 0.1)})" if alpha.interval else ""
    on = f"On {found.n:,} answers {who} agree"
    return f"{on} with an alpha of {alpha.value:.2f}{interval}, where 1 is perfect and 0 is chance."


def _raters_table(raters: Sequence[str], queue: Queue) -> TableBlock:
    """Return a row for each rater: the mean of the ratings, and how often each score was given."""
    scores = [[rating.score for rating in queue.rated_by(rater).values()] for rater in raters]
    rated = [[score for score in several if score is not None] for several in scores]
    columns = {
        "Mean": [f"{fmean(several):.2f}" for several in rated],
        "Rated": [f"{len(several)}" for several in rated],
        "Skipped": [f"{several.count(None)}" for several in scores],
    }
    for score in range(LOWEST, HIGHEST + 1):
        columns[f"{score}"] = [f"{several.count(score)}" for several in rated]
    names = TableColumn("Rater", raters, kind="name")
    numbers = (TableColumn(head, cells, kind="number") for head, cells in columns.items())
    return TableBlock([names, *numbers], label="Raters", kind="rows narrow cards")


def _agreement(agreements: Sequence[Agreement], labels: Mapping[str, str]) -> Iterator[Block]:
    yield Heading("Agreement", level=2)
    yield agreement_table(agreements, labels)
    yield Sentences([_COEFFICIENTS], look="dim")


# --- judges ----------------------------------------------------------------------------------------------------------


def _scores(request: Request, queue: Queue) -> Scores:
    """What was measured of the answers of a queue."""
    found: Scores = {}
    query = "SELECT measured FROM items WHERE run = (SELECT number FROM runs WHERE key = ?) AND id = ?"
    with workbench_of(request).index.reading() as db:
        for answer in queue.answers:
            row = db.execute(query, (answer.run.key, answer.item_id)).fetchone()
            if row is not None:
                found[answer.key] = json.loads(row["measured"])
    return found


def _calibration(queue: Queue, scores: Scores, measurement: str, good: int) -> Calibration:
    label = labels_like((found[measurement] for found in scores.values() if measurement in found), good)
    rows = [
        {
            "item_id": answer.item_id,
            "sut": answer.run.sut_uid,
            "rater": rating.rater,
            "label": None if rating.score is None else label(rating.score),
        }
        for answer in queue.answers
        for rating in queue.ratings.get(answer.key, ())
    ]
    return calibrate_judge([run.folder.path for run in queue.runs], rows, measurement=measurement)


def _chart(queue: Queue, scores: Scores, measurement: str, good: int) -> Markup | None:
    """How often people found an answer good, by the judge's score; None if scores are not from 0 to 1."""
    pairs = [
        (scores[key][measurement], float(fmean(answer.people.values()) >= good))
        for key, answer in _labelled(queue)
        if measurement in scores.get(key, {})
    ]
    if not pairs or not all(0 <= score <= 1 for score, _ in pairs):
        return None
    return reliability(bins_of(pairs), f"a mean rating of {good} or better")


def _calibrated(found: Calibration) -> Iterator[Block]:
    """Show how far judge and people agree, and the scores of the judge, of people, and corrected."""
    labels = sut_labels(found)
    yield from _agreement(found.agreements, labels)
    for agreement in found.agreements:
        if agreement.confusion:
            yield confusion_table(agreement, labels)
    yield Heading("What people would have scored", level=2)
    yield score_table(found, labels)
