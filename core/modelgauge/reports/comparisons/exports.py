"""Comparisons for programs: JSON with all flipped items, JUnit XML, and annotations for GitHub Actions."""

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any
from xml.etree import ElementTree as ET

from modelgauge.comparison.gates import GateOutcome
from modelgauge.comparison.result import Comparison
from modelgauge.wording.visible import visible


def comparison_as_json(
    comparison: Comparison,
    outcomes: Sequence[GateOutcome] = (),
    redact_json: Callable[[Any], Any] = lambda value: value,
) -> Iterator[str]:
    """Yield a comparison as one JSON object, in pieces: one flipped item per line.

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
    """Return a test suite for each test (or data set), with a case for each gate and comparison; without gates, all
    pass.

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
    """Escape a text for a workflow command, so that no character can end the command."""
    return "".join(
        f"%{ord(character):02X}" if character in f"%\r\n{more}" else character for character in visible(text)
    )


def without_commands(text: str) -> str:
    """Return a text for the log of a build without lines that would run as workflow commands.

    Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions (stop-commands)
    """
    token = secrets.token_hex(16)
    return f"::stop-commands::{token}\n{text}\n::{token}::"
