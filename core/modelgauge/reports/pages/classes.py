"""Answers as classes, where a test has few right answers: yes and no, letters, labels.

An answer is of the class that its last line ends with. This is for a picture of which classes are taken for which, and
scores nothing: how an answer is read is the test's own business.
"""

from modelgauge.reports.pages.columns import Labels

RIGHT, ANSWERED = "right class", "answered class"
"""Titles of the two columns."""
MOST_CLASSES = 12
MOST_ENDINGS = 5000
LONGEST_CLASS = 40
OTHER = "other"
_AROUND = " \t.!,;:*_`\"'"
_LEAST = 0.5  # of the answers that are one of the classes


def ending_of(answer: str) -> str:
    """Return the end of an answer, long enough to determine its class."""
    return answer[-2 * LONGEST_CLASS :].strip(_AROUND + "\n").rpartition("\n")[2].casefold()


def classified(expected: Labels, endings: Labels) -> tuple[Labels, Labels] | None:
    """Return the right class and the answered class of each item; None if these are not classes.

    Args:
        expected: the right answer of each item.
        endings: what each answer ends with, from `ending_of`.
    """
    classes = {label.strip(_AROUND).casefold(): label for label in expected.values}
    few = 2 <= len(classes) <= MOST_CLASSES and all(0 < len(label) <= LONGEST_CLASS for label in classes)
    if not few or len(endings.values) > endings.most:
        return None
    read = [_class_of(ending, classes) for ending in endings.values]
    answered = Labels(most=len(classes) + 1)
    for place, at in enumerate(endings.of):
        if at >= 0:
            answered.add(place, read[at])
    known = sum(answered.of.count(at) for name, at in answered.values.items() if name != OTHER)
    several = 2 * len(classes) <= len(expected.of)
    return (expected, answered) if several and known >= _LEAST * len(expected.of) else None


def _class_of(ending: str, classes: dict[str, str]) -> str:
    """Return the longest class that an answer ends with as a separate word."""
    for label in sorted(classes, key=len, reverse=True):
        if ending.endswith(label) and not (ending[: -len(label)][-1:].isalnum() and label[0].isalnum()):
            return classes[label]
    return OTHER
