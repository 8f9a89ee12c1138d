"""Report of `modelgauge calibrate-judge`: the agreement of judge and people, and corrected scores."""

from collections.abc import Iterator, Mapping, Sequence

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
"""Names of coefficients of agreement for people."""
METHODS = {
    "judge": "judge alone",
    "people": "people alone",
    "ppi": "corrected: PPI++",
    "rogan_gladen": "corrected: Rogan and Gladen",
}
"""Names of the estimates of a score for people."""


def calibration_document(found: Calibration) -> Iterator[Block]:
    """Return a calibration as a person reads it."""
    labels = sut_labels(found)
    judges = counted(len(found.measurements), "judge") if len(found.measurements) > 1 else "Judge"
    raters = f"{counted(len(found.raters), 'rater')} ({', '.join(found.raters)})"
    yield Heading(f"{judges} {', '.join(found.measurements)} and {raters}")
    yield agreement_table(found.agreements, labels)
    for agreement in found.agreements:
        if agreement.confusion:
            yield confusion_table(agreement, labels)
    yield score_table(found, labels)
    several = len(found.suts) > 1
    suts = [
        Fact("SUT", f"{label}: {uid}" if several else uid)
        for uid, label in labels.items()
        if label != uid or not several
    ]
    if facts := [*suts, *(Fact("note", note) for note in calibration_notes(found, labels))]:
        yield FactList(facts)


def sut_labels(found: Calibration) -> dict[str, str]:
    """Return short names for the SUTs of a calibration, by their uids."""
    uids = [sut.sut for sut in found.suts]
    return dict(zip(uids, short_labels(uids), strict=True))


def calibration_notes(found: Calibration, labels: Mapping[str, str]) -> Iterator[str]:
    """Return what the tables do not say, in words.

    Args:
        found: the calibration.
        labels: the names of its SUTs.
    """
    for sut in found.suts:
        for estimate in sut.scores:
            if estimate.why_not:
                yield f"{labels[sut.sut]}, {METHODS[estimate.method]}: {estimate.why_not}"
            if estimate.bounds:
                worst, best = (figure(end, 0.01) for end in estimate.bounds)
                missing = counted(sut.n_without_label, "missing label")
                yield f"{labels[sut.sut]}: with its {missing}, {worst} to {best}"
    yield from found.notes


def agreement_table(agreements: Sequence[Agreement], labels: Mapping[str, str]) -> TableBlock:
    """Return a row for each coefficient; the first of each agreement says whose labels it is about.

    Args:
        agreements: of people, or of judges and people.
        labels: the names of the SUTs whose answers were labelled.
    """
    rows = [
        ("" if place else _whose(agreement, labels), found, agreement.n)
        for agreement in agreements
        for place, found in enumerate(agreement.coefficients or (None,))
    ]
    names = ["no answer in common" if found is None else COEFFICIENTS[found.name] for _, found, _ in rows]
    columns = {
        "value": [
            "none" if found is None or found.value is None else f"{found.value:.2f}" for _, found, _ in rows
        ],
        "95 % interval": ["" if found is None else between(found.interval, 0.1) for _, found, _ in rows],
        "n": [f"{n:,}" for *_, n in rows],
    }
    return TableBlock(
        [
            TableColumn("Labels of", [whose for whose, *_ in rows], fold=16, kind="name"),
            TableColumn("Agreement", names),
            *_numbers(columns),
        ],
        label="Agreement",
        kind="rows narrow cards",
    )


def _numbers(columns: Mapping[str, Sequence[str]]) -> Iterator[TableColumn]:
    return (TableColumn(head, cells, right=True, kind="number") for head, cells in columns.items())


def _whose(found: Agreement, labels: Mapping[str, str]) -> str:
    if found.sut:
        return f"{found.between}, {labels[found.sut]}"
    return found.between + ", all" * (len(labels) > 1)


def confusion_table(found: Agreement, labels: Mapping[str, str]) -> TableBlock:
    """Return the number of answers by people's label, a row for each, and the judge's.

    Args:
        found: an agreement with its confusion.
        labels: the names of the SUTs.
    """
    categories = [figure(value) for value in found.categories]
    of = f" of {labels[found.sut]}" if found.sut else " of all" * (len(labels) > 1)
    is_short = len(categories) > 4  # so that the table fits
    heads = categories if is_short else [f"judge: {category}" for category in categories]
    counts = [[f"{count:,}" for count in column] for column in zip(*found.confusion, strict=True)]
    return TableBlock(
        [
            TableColumn(f"Labels{of}", [f"people: {category}" for category in categories]),
            *_numbers(dict(zip(heads, counts, strict=True))),
        ],
        label=f"Labels{of}",
        kind="rows narrow",
    )


def score_table(found: Calibration, labels: Mapping[str, str]) -> TableBlock:
    """Return a row for each known estimate of a score; the first of each SUT names it.

    Args:
        found: the calibration.
        labels: the names of its SUTs.
    """
    rows: list[tuple[str, ScoreEstimate]] = []
    for sut in found.suts:
        known = [estimate for estimate in sut.scores if estimate.value is not None]
        rows += [("" if place else labels[sut.sut], estimate) for place, estimate in enumerate(known)]
    names = [TableColumn("SUT", [name for name, _ in rows], fold=8, kind="name")]
    return TableBlock(
        [
            *(names if len(found.suts) > 1 else []),
            TableColumn("Score", [METHODS[estimate.method] for _, estimate in rows], fold=16),
            *_numbers(
                {
                    "value ± std err": [_value(estimate) for _, estimate in rows],
                    "95 % interval": [between(estimate.interval, 0.01) for _, estimate in rows],
                    "n": [f"{estimate.n:,}" for _, estimate in rows],
                }
            ),
        ],
        label="Scores",
        kind="rows narrow cards",
    )


def _value(estimate: ScoreEstimate) -> str:
    value, stderr = estimate.value or 0.0, estimate.stderr
    spread = stderr or (estimate.interval and (estimate.interval[1] - estimate.interval[0]) / 4) or 0.01
    return figure(value, spread) + (f" ± {figure(stderr, stderr)}" if stderr else "")
