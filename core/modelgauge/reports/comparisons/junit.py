"""Comparisons and their gates as JUnit XML, which servers of continuous integration read."""

from collections.abc import Callable, Sequence
from itertools import groupby
from xml.etree import ElementTree as ET

from modelgauge.comparison.gates import GateOutcome
from modelgauge.comparison.result import Comparison
from modelgauge.wording.visible import visible


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
