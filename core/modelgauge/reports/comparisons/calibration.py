"""What `modelgauge calibrate-judge` shows: how far judge and people agree, and the scores that this corrects."""

from collections.abc import Callable, Iterator, Mapping

from modelgauge.comparison.judges.agreements import Agreement
from modelgauge.comparison.judges.calibration import CalibratedSUT, Calibration
from modelgauge.comparison.judges.scores import ScoreEstimate
from modelgauge.reports.layout import Page, Style
from modelgauge.wording.figures import between, figure
from modelgauge.wording.labels import short_labels
from modelgauge.wording.phrases import counted

COEFFICIENTS = {
    "raw_agreement": "same label",
    "cohen_kappa": "Cohen's kappa",
    "fleiss_kappa": "Fleiss' kappa",
    "krippendorff_alpha": "Krippendorff's alpha",
    "gwet_ac1": "Gwet's AC1",
}
"""What people call coefficients of agreement."""
METHODS = {
    "judge": "judge alone",
    "people": "people alone",
    "ppi": "corrected: PPI++",
    "rogan_gladen": "corrected: Rogan and Gladen",
}
"""What people call the estimates of a score."""


def render_calibration(found: Calibration, style: Style, redact: Callable[[str], str] = str) -> str:
    """A calibration as a person reads it.

    Args:
        found: to be shown.
        style: of the terminal.
        redact: takes secrets out of a text.

    Returns:
        Lines without white space at their ends.
    """
    page, several = Page(style, redact), len(found.suts) > 1
    uids = [sut.sut for sut in found.suts]
    labels = dict(zip(uids, short_labels(uids), strict=True))
    judges = counted(len(found.measurements), "judge") if len(found.measurements) > 1 else "Judge"
    raters = f"{counted(len(found.raters), 'rater')} ({', '.join(found.raters)})"
    page.add(f"{judges} {', '.join(found.measurements)} and {raters}", "bold")
    rows = [row for agreement in found.agreements for row in _agreement_rows(agreement, labels)]
    head = ["Labels of", "Agreement", "value", "95 % interval", "n"]
    page.add_table(rows, head, folds={"Labels of": 16}, right=head[2:])
    for agreement in found.agreements:
        if agreement.confusion:
            _add_confusion(agreement, page, labels)
    rows = [row if several else row[1:] for sut in found.suts for row in _score_rows(sut, labels, style)]
    head = [*["SUT"] * several, "Score", f"value {style.plus_minus} std err", "95 % interval", "n"]
    page.add_table(rows, head, folds={"SUT": 8, "Score": 16}, right=head[-3:])
    page.add_facts([*_facts(found, labels)])
    return page.rendered()


def _facts(found: Calibration, labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What stands below the tables: labels with texts."""
    several = len(found.suts) > 1
    for uid, label in labels.items():
        if label != uid or not several:
            yield "SUT", f"{label}: {uid}" if several else uid
    for sut in found.suts:
        for estimate in sut.scores:
            if estimate.why_not:
                yield "note", f"{labels[sut.sut]}, {METHODS[estimate.method]}: {estimate.why_not}"
            if estimate.bounds:
                worst, best = (figure(end, 0.01) for end in estimate.bounds)
                missing = counted(sut.n_without_label, "missing label")
                yield "note", f"{labels[sut.sut]}: with its {missing}, {worst} to {best}"
    for note in found.notes:
        yield "note", note


def _agreement_rows(found: Agreement, labels: Mapping[str, str]) -> Iterator[list[str]]:
    """The rows of an agreement, of which the first says whose it is."""
    whose = (
        f"{found.between}, {labels[found.sut]}" if found.sut else found.between + ", all" * (len(labels) > 1)
    )
    for coefficient in found.coefficients:
        value = "" if coefficient.value is None else f"{coefficient.value:.2f}"
        yield [
            whose,
            COEFFICIENTS[coefficient.name],
            value,
            between(coefficient.interval, 0.1),
            f"{found.n:,}",
        ]
        whose = ""


def _add_confusion(found: Agreement, page: Page, labels: Mapping[str, str]) -> None:
    categories = [figure(value) for value in found.categories]
    of = f" of {labels[found.sut]}" if found.sut else " of all" * (len(labels) > 1)
    short = len(categories) > 4  # so that the table fits
    head = [f"Labels{of}", *(category if short else f"judge: {category}" for category in categories)]
    rows = [
        [f"people: {category}", *(f"{count:,}" for count in row)]
        for category, row in zip(categories, found.confusion, strict=True)
    ]
    page.add_table(rows, head, folds={}, right=head[1:])


def _score_rows(sut: CalibratedSUT, labels: Mapping[str, str], style: Style) -> Iterator[list[str]]:
    name = labels[sut.sut]
    for estimate in sut.scores:
        if estimate.value is not None:
            yield [
                name,
                METHODS[estimate.method],
                _value(estimate, style),
                between(estimate.interval, 0.01),
                f"{estimate.n:,}",
            ]
            name = ""


def _value(estimate: ScoreEstimate, style: Style) -> str:
    value, stderr = estimate.value or 0.0, estimate.stderr
    spread = stderr or (estimate.interval and (estimate.interval[1] - estimate.interval[0]) / 4) or 0.01
    return figure(value, spread) + (f" {style.plus_minus} {figure(stderr, stderr)}" if stderr else "")
