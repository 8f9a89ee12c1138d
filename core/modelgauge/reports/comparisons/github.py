"""Comparisons for GitHub Actions: annotations, and a summary in Markdown. No text in them is obeyed or rendered."""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from modelgauge.comparison.gates import GateOutcome
from modelgauge.comparison.result import Comparison, MeasurementComparison
from modelgauge.data.figures import figure, p_text
from modelgauge.reports.comparisons.report import answers, differing, question
from modelgauge.reports.comparisons.words import VERDICTS, unit_of
from modelgauge.wording.phrases import counted
from modelgauge.wording.visible import visible

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&@$]|:(?=[\w/])|(?<=www)\.|^[-+=](?=[-+=\s]|$)|^\d+[.)](?=\s|$)")
"""What GitHub's Markdown may read as more than text: anywhere, in addresses, and at the beginning."""
_HEAD = ("Test", "Measurement", "Candidate", "Values", "Difference", "95 % interval", "Adjusted p", "Verdict")
_MOST_ROWS = 500  # GitHub takes a summary of 1 MiB
_MOST = 10_000  # characters of a text
_MOST_FLIPS = 10  # of each measurement and candidate, lost and won


def annotations(outcomes: Iterable[GateOutcome], redact: Callable[[str], str] = str) -> Iterator[str]:
    """Return the workflow commands that show failed gates with a build.

    Source: https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts

    Args:
        outcomes: what gates say.
        redact: takes secrets out of a text.
    """
    for outcome in outcomes:
        if not outcome.passed:
            title = f"{outcome.gate}: {outcome.test}, {outcome.measurement}"
            yield f"::error title={_in_command(redact(title), ':,')}::{_in_command(redact(outcome.why))}"


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
        lines += ["", *(f"- {_gate(outcome, plain)}" for outcome in outcomes if not outcome.passed)]
        passed = sum(outcome.passed for outcome in outcomes)
        lines.append(f"- {passed:,} of {counted(len(outcomes), 'gate')} passed.")
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


def _gate(outcome: GateOutcome, plain: Callable[[str], str]) -> str:
    about = f"{outcome.gate}: {outcome.test}, {outcome.measurement}"
    return f"**Failed** {plain(about)}: {plain(outcome.why)}"


def _cells(row: MeasurementComparison, alpha: float) -> Iterator[str]:
    unit = unit_of(row.value_range)
    values = row.baseline_value, row.candidate_value
    yield from (row.test, row.measurement, row.candidate)
    yield " → ".join(figure(value, row.stderr) for value in values if value is not None)
    yield f"{unit.signed(row.difference, row.stderr)} {unit.name}"
    yield unit.between(row.interval, row.stderr)
    yield "" if row.p_adjusted is None else p_text(row.p_adjusted, alpha)
    yield VERDICTS[row.verdict]
