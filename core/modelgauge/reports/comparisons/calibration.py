"""What `modelgauge calibrate-judge` shows: how far judge and people agree, and the scores that this corrects."""

from collections.abc import Iterator, Mapping

from modelgauge.comparison.judges.agreements import Agreement
from modelgauge.comparison.judges.calibration import Calibration
from modelgauge.comparison.judges.scores import ScoreEstimate
from modelgauge.documents.document import Block, Fact, FactList, Heading, TableBlock, TableColumn
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


def calibration_document(found: Calibration) -> Iterator[Block]:
    """Return a calibration as a person reads it."""
    uids = [sut.sut for sut in found.suts]
    labels = dict(zip(uids, short_labels(uids), strict=True))
    judges = counted(len(found.measurements), "judge") if len(found.measurements) > 1 else "Judge"
    raters = f"{counted(len(found.raters), 'rater')} ({', '.join(found.raters)})"
    yield Heading(f"{judges} {', '.join(found.measurements)} and {raters}")
    yield _agreement_table(found, labels)
    for agreement in found.agreements:
        if agreement.confusion:
            yield _confusion_table(agreement, labels)
    yield _score_table(found, labels)
    if facts := [*_facts(found, labels)]:
        yield FactList(facts)


def _facts(found: Calibration, labels: Mapping[str, str]) -> Iterator[Fact]:
    """What stands below the tables."""
    several = len(found.suts) > 1
    for uid, label in labels.items():
        if label != uid or not several:
            yield Fact("SUT", f"{label}: {uid}" if several else uid)
    for sut in found.suts:
        for estimate in sut.scores:
            if estimate.why_not:
                yield Fact("note", f"{labels[sut.sut]}, {METHODS[estimate.method]}: {estimate.why_not}")
            if estimate.bounds:
                worst, best = (figure(end, 0.01) for end in estimate.bounds)
                missing = counted(sut.n_without_label, "missing label")
                yield Fact("note", f"{labels[sut.sut]}: with its {missing}, {worst} to {best}")
    for note in found.notes:
        yield Fact("note", note)


def _agreement_table(found: Calibration, labels: Mapping[str, str]) -> TableBlock:
    """A row for each coefficient; the first of each agreement says whose labels it is about."""
    rows = [
        (agreement, coefficient) for agreement in found.agreements for coefficient in agreement.coefficients
    ]
    whose = [
        _whose(agreement, labels) if coefficient is agreement.coefficients[0] else ""
        for agreement, coefficient in rows
    ]
    values = ["" if coefficient.value is None else f"{coefficient.value:.2f}" for _, coefficient in rows]
    return TableBlock(
        [
            TableColumn("Labels of", whose, fold=16),
            TableColumn("Agreement", [COEFFICIENTS[coefficient.name] for _, coefficient in rows]),
            TableColumn("value", values, right=True),
            TableColumn(
                "95 % interval", [between(coefficient.interval, 0.1) for _, coefficient in rows], right=True
            ),
            TableColumn("n", [f"{agreement.n:,}" for agreement, _ in rows], right=True),
        ]
    )


def _whose(found: Agreement, labels: Mapping[str, str]) -> str:
    if found.sut:
        return f"{found.between}, {labels[found.sut]}"
    return found.between + ", all" * (len(labels) > 1)


def _confusion_table(found: Agreement, labels: Mapping[str, str]) -> TableBlock:
    categories = [figure(value) for value in found.categories]
    of = f" of {labels[found.sut]}" if found.sut else " of all" * (len(labels) > 1)
    heads = categories if len(categories) > 4 else [f"judge: {category}" for category in categories]
    counts = zip(*found.confusion, strict=True)
    return TableBlock(
        [
            TableColumn(f"Labels{of}", [f"people: {category}" for category in categories]),
            *(
                TableColumn(head, [f"{count:,}" for count in column], right=True)
                for head, column in zip(heads, counts, strict=True)
            ),
        ]
    )


def _score_table(found: Calibration, labels: Mapping[str, str]) -> TableBlock:
    """A row for each known estimate of a score; the first of each SUT names it."""
    rows: list[tuple[str, ScoreEstimate]] = []
    for sut in found.suts:
        known = [estimate for estimate in sut.scores if estimate.value is not None]
        rows += [("" if place else labels[sut.sut], estimate) for place, estimate in enumerate(known)]
    names = [TableColumn("SUT", [name for name, _ in rows], fold=8)] if len(found.suts) > 1 else []
    return TableBlock(
        [
            *names,
            TableColumn("Score", [METHODS[estimate.method] for _, estimate in rows], fold=16),
            TableColumn("value ± std err", [_value(estimate) for _, estimate in rows], right=True),
            TableColumn(
                "95 % interval", [between(estimate.interval, 0.01) for _, estimate in rows], right=True
            ),
            TableColumn("n", [f"{estimate.n:,}" for _, estimate in rows], right=True),
        ]
    )


def _value(estimate: ScoreEstimate) -> str:
    value, stderr = estimate.value or 0.0, estimate.stderr
    spread = stderr or (estimate.interval and (estimate.interval[1] - estimate.interval[0]) / 4) or 0.01
    return figure(value, spread) + (f" ± {figure(stderr, stderr)}" if stderr else "")
