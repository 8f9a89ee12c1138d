"""Comparisons for programs: JSON with all flipped items, JUnit XML, and annotations and Markdown for GitHub Actions."""

import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any
from xml.etree import ElementTree as ET

from modelgauge.comparison.difference import MeasurementComparison
from modelgauge.comparison.gates import GateOutcome
from modelgauge.comparison.result import Comparison
from modelgauge.comparison.units import unit_of
from modelgauge.reports.comparisons.difference_tables import values_text
from modelgauge.reports.comparisons.report import answers, differing, question
from modelgauge.reports.comparisons.words import VERDICTS
from modelgauge.wording.figures import p_text
from modelgauge.wording.phrases import counted
from modelgauge.wording.visible import visible

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&@$]|:(?=[\w/])|(?<=www)\.|^[-+=](?=[-+=\s]|$)|^\d+[.)](?=\s|$)")
"""What GitHub's Markdown may read as more than text: anywhere, in addresses, and at the beginning."""
_HEAD = ("Test", "Measurement", "Candidate", "Values", "Difference", "95 % interval", "Adjusted p", "Verdict")
_MOST_ROWS = 500  # GitHub takes a summary of 1 MiB
_MOST = 10_000  # characters of a text
_MOST_FLIPS = 10  # of each measurement and candidate, lost and won


def comparison_as_json(
    comparison: Comparison,
    outcomes: Sequence[GateOutcome] = (),
    redact_json: Callable[[Any], Any] = lambda value: value,
) -> Iterator[str]:
    """A comparison as one JSON object, in pieces: a flipped item a line.

    Args:
        comparison: what was found.
        outcomes: what gates say of it, where there are any.
        redact_json: takes secrets out; out of flipped items they were taken when their runs were written.
    """
    known = comparison.model_dump(mode="json")
    known |= {"gates": [outcome.model_dump(mode="json") for outcome in outcomes]} if outcomes else {}
    yield json.dumps(redact_json(known), ensure_ascii=False, indent=2)[:-2]
    yield ',\n  "flips": ['
    for place, flip in enumerate(comparison.iter_flips()):
        yield f"{',' if place else ''}\n    {flip.model_dump_json()}"
    yield "]\n}"


def junit_xml(
    comparison: Comparison, outcomes: Sequence[GateOutcome], redact: Callable[[str], str] = str
) -> str:
    """A suite for each test (or data set), with a case for each gate and comparison; without gates, all pass.

    Args:
        comparison: what was found.
        outcomes: what gates say of it.
        redact: takes secrets out of a text.
    """

    def shown(text: str) -> str:  # XML has no control characters, not even as references
        return visible(redact(text))

    root = ET.Element("testsuites", name="modelgauge compare")
    cases = outcomes or [
        GateOutcome.of("compared", row, row.verdict_text, passed=True) for row in comparison.comparisons
    ]
    for test, group in groupby(
        sorted(cases, key=lambda outcome: outcome.test), key=lambda outcome: outcome.test
    ):
        of_test = list(group)
        failed = sum(not outcome.passed for outcome in of_test)
        suite = ET.SubElement(
            root,
            "testsuite",
            name=shown(test),
            tests=str(len(of_test)),
            failures=str(failed),
            errors="0",
            skipped="0",
        )
        for outcome in of_test:
            name = f"{outcome.measurement} of {outcome.candidate} against {comparison.baseline.label}: {outcome.gate}"
            case = ET.SubElement(suite, "testcase", classname=shown(test), name=shown(name), time="0")
            if outcome.passed:
                ET.SubElement(case, "system-out").text = shown(outcome.why)
            else:
                ET.SubElement(case, "failure", message=shown(outcome.why), type="gate").text = shown(
                    outcome.why
                )
    ET.indent(root)
    return f"{ET.tostring(root, encoding='unicode', xml_declaration=True)}\n"


# --- GitHub Actions: no text is obeyed as a command, or rendered ------------------------------------------------


def annotations(outcomes: Iterable[GateOutcome], redact: Callable[[str], str] = str) -> Iterator[str]:
    """Return the workflow commands that show failed gates with a build.

    Source: https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts

    Args:
        outcomes: what gates say.
        redact: takes secrets out of a text.
    """
    for outcome in outcomes:
        if not outcome.passed:
            title = _in_command(redact(outcome.about), ":,")
            yield f"::error title={title}::{_in_command(redact(outcome.why))}"


def _in_command(text: str, more: str = "") -> str:
    """A text as part of a workflow command, which no character of it can end."""
    return "".join(
        f"%{ord(character):02X}" if character in f"%\r\n{more}" else character for character in visible(text)
    )


def without_commands(text: str) -> str:
    """A text for the log of a build, in which no line is obeyed as a workflow command.

    Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions (stop-commands)
    """
    token = secrets.token_hex(16)
    return f"::stop-commands::{token}\n{text}\n::{token}::"


def markdown(
    comparison: Comparison, outcomes: Sequence[GateOutcome], redact: Callable[[str], str] = str
) -> str:
    """The summary of a comparison and its gates in GitHub's Markdown.

    Args:
        comparison: what was found.
        outcomes: what gates say of it.
        redact: takes secrets out of a text.
    """

    def plain(text: str) -> str:
        folded = " ".join(visible(redact(text))[:_MOST].split())
        return _SPECIAL.sub(_escaped, folded)

    lines = [f"### {plain(question(comparison))}", ""]
    lines += [f"- {plain(answer)}" for answer in answers(comparison)]
    if outcomes:
        failed = [outcome for outcome in outcomes if not outcome.passed]
        lines += ["", *(f"- **Failed** {plain(outcome.about)}: {plain(outcome.why)}" for outcome in failed)]
        lines.append(f"- {len(outcomes) - len(failed):,} of {counted(len(outcomes), 'gate')} passed.")
    rows = comparison.comparisons[:_MOST_ROWS]
    lines += ["", f"| {' | '.join(_HEAD)} |", f"|{' --- |' * len(_HEAD)}"]
    lines += [f"| {' | '.join(map(plain, _cells(row, comparison.alpha)))} |" for row in rows]
    if len(rows) < len(comparison.comparisons):
        more = len(comparison.comparisons) - len(rows)
        lines += ["", f"{counted(more, 'more comparison is', 'more comparisons are')} left out."]
    lines += ["", *(f"- {plain(text)}" for text in _flipped(comparison))]
    differs = [f"- {plain(text)}" for text in differing(comparison)]
    notes = [f"- {plain(note)}" for note in comparison.notes]
    lines += ["", "Also differs:", "", *differs] if differs else []
    lines += ["", "Notes:", "", *notes] if notes else []
    return "\n".join([*lines, ""])


def _escaped(found: re.Match[str]) -> str:
    """What is special as text; of the number of a list only what stands behind it is."""
    before, special = found[0][:-1], found[0][-1]
    return f"&#{ord(special)};" if special in "<>&@" else rf"{before}\{special}"


def _flipped(comparison: Comparison) -> Iterator[str]:
    """Some ids of the items that each candidate lost and won, the largest differences first."""
    numbers = {
        (row.test, row.measurement, row.candidate, won): row.wins if won else row.losses
        for row in comparison.comparisons
        for won in (False, True)
    }
    ids: dict[tuple[str, str, str, bool], list[str]] = {}
    for flip in islice(comparison.iter_flips(_MOST_FLIPS), _MOST_ROWS):
        ids.setdefault((flip.test, flip.measurement, flip.candidate, flip.won), []).append(flip.item_id)
    for (test, measurement, candidate, won), shown in ids.items():
        more = numbers[test, measurement, candidate, won] - len(shown)
        rest = f" and {more:,} more" if more else ""
        yield f"{'Won' if won else 'Lost'} by {candidate} ({test}, {measurement}): {', '.join(shown)}{rest}"


def _cells(row: MeasurementComparison, alpha: float) -> Iterator[str]:
    unit = unit_of(row.value_range)
    yield from (row.test, row.measurement, row.candidate)
    yield values_text(row, " → ")
    yield f"{unit.signed(row.difference, row.stderr)} {unit.name}"
    yield unit.between(row.interval, row.stderr)
    yield "" if row.p_adjusted is None else p_text(row.p_adjusted, alpha)
    yield VERDICTS[row.verdict]
