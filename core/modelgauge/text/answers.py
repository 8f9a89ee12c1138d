"""Finding the answer in a completion: behind its reasoning; numbers, markers, boxes, and SQuAD's normal form.

Each helper returns None if there is no answer, never a guess, and takes linear time. Lettered choices are
read in `choice_extraction`; JSON that a judge returns is read where judges are.
"""

import re
import string
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from modelgauge.errors import InvalidDataError

_NUMBER = re.compile(
    r"""
    (?P<name>(?<=[A-Za-z_^])[0-9]+(?:\.[0-9]+)*)  # neither H2O nor m^2 nor v2.5 ends in a number
    | (?<![A-Za-z0-9_^])  # and 16-3 has no sign
    (?P<sign>[-+\u2212])?[$€£¥₹]?(?P<late_sign>[-\u2212])?
    (?:(?P<whole>[0-9]+(?:[,\u00a0\u202f][0-9]+)*)(?P<fraction>\.[0-9]+)?|(?P<bare_fraction>\.[0-9]+))
    (?P<exponent>[eE][-+]?[0-9]{1,3}(?![0-9A-Za-z_]))?  # three digits, so that no 1e999999999 is written out
    """,
    re.VERBOSE,
)
_SEPARATORS = re.compile(r"[,\u00a0\u202f]")
_GROUPED = re.compile(r"[0-9]{1,3}(?:[,\u00a0\u202f][0-9]{2,3})*[,\u00a0\u202f][0-9]{3}")
_MINUS = ("-", "\u2212")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def last_number(text: str) -> str | None:
    """Return the last number of a text in its plain form; None if there is no number.

    The plain form has no thousands separators (`1,000`), currency signs, percent signs, plus signs, leading
    zeros, trailing zeros of the fraction or minus before zero: `-$1,234.50` gives `-1234.5` and `45.0%` gives
    `45`. `1.5e3` gives `1500` (exponents of up to three digits). A minus after a digit is a subtraction
    (`16-3` ends in `3`), and digits that follow a letter, `_` or `^` belong to a name or an exponent, with what
    follows them behind a point (`v2.5`). Of a fraction such as `1/5` the last number is the denominator.

    Args:
        text: a completion, or the part of it in which the answer is looked for (see `text_after`).
    """
    numbers = [found for found in _NUMBER.finditer(text) if found["name"] is None]
    return _plain(numbers[-1]) if numbers else None


def numbers_equal(a: str | None, b: str | None) -> bool:
    """Whether two texts are the same number, exactly: `18.00` and `18`, `$1,000` and `1000`, `1e3` and
    `1000`.

    Args:
        a: a number as `last_number` reads it, with nothing but whitespace, a percent sign or a full stop
            around it. None, or any other text, equals nothing. Percentages are not divided: `50%` equals
            `50`.
        b: the other number, in the same form.
    """
    first, second = _as_number(a), _as_number(b)
    return first is not None and first == second


def _as_number(text: str | None) -> str | None:
    stripped = (text or "").strip().removesuffix(".").removesuffix("%").rstrip()
    match = _NUMBER.fullmatch(stripped)
    if match is None or not _is_one_number(match["whole"] or ""):
        return None
    return _plain(match)


def _is_one_number(whole: str) -> bool:
    return _SEPARATORS.search(whole) is None or _GROUPED.fullmatch(whole) is not None


def _plain(match: re.Match[str]) -> str:
    """Write a matched number in its plain form, which is unique: equal numbers have equal forms."""
    whole, fraction = match["whole"] or "", match["fraction"] or match["bare_fraction"] or ""
    negative = match["sign"] in _MINUS or match["late_sign"] is not None
    if not _is_one_number(whole):  # a list without spaces, as in 3,4,5
        whole, negative = _SEPARATORS.split(whole)[-1], False
    digits = _SEPARATORS.sub("", whole) + fraction
    if match["exponent"]:
        digits = format(Decimal(digits + match["exponent"]), "f")
    whole, _, fraction = digits.partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    plain = f"{whole}.{fraction}" if fraction else whole
    return f"-{plain}" if negative and plain != "0" else plain


def text_after(text: str, *markers: str, ignore_case: bool = False) -> str | None:
    """Return the text after the last marker, without surrounding whitespace; None if no marker occurs.

    Args:
        text: a completion.
        markers: literal texts such as `####` or `the answer is`, at least one. The occurrence that ends last
            counts, whichever marker it is of.
        ignore_case: take markers in any case.

    Raises:
        InvalidDataError: no marker is given, or a marker is empty.
    """
    if not markers or not all(markers):
        raise InvalidDataError(
            "text_after needs markers, none of them empty.", fix="Name the text to look for."
        )
    end = max(_last_end(text, marker, ignore_case) for marker in markers)
    return None if end < 0 else text[end:].strip()


def _last_end(text: str, marker: str, ignore_case: bool) -> int:
    if not ignore_case:
        start = text.rfind(marker)
        return -1 if start < 0 else start + len(marker)
    # Lower-casing both would be simpler, and wrong: it changes the length of some texts.
    return max((match.end() for match in re.finditer(re.escape(marker), text, re.IGNORECASE)), default=-1)


def normalize_answer(text: str) -> str:
    """SQuAD's normal form: lower case, no ASCII punctuation, no English articles, single spaces, in this
    order.

    Source: the official evaluation script of SQuAD (Rajpurkar et al. 2016, https://arxiv.org/abs/1606.05250).
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def boxed(text: str) -> str | None:
    r"""Return the content of the last LaTeX `\boxed{…}` (or `\fbox{…}`), with nested braces; None without a complete
    one.

    A last box that is not closed (the completion was cut off) gives None, even where an earlier one is
    complete: that was an intermediate result. The convention of MATH (Hendrycks et al. 2021,
    https://arxiv.org/abs/2103.03874).
    """
    boxes = [*_BOX.finditer(text)]
    depth = 1
    for brace in _BRACE.finditer(text, boxes[-1].end()) if boxes else ():
        depth += {"{": 1, "}": -1}.get(brace[0], 0)  # an escaped brace is content
        if depth == 0:
            return text[boxes[-1].end() : brace.start()].strip()
    return None


def first_line(text: str) -> str:
    """Return the first line that is not blank, without surrounding whitespace; empty if all are blank."""
    return text.strip().partition("\n")[0].rstrip()


# --- reasoning ----------------------------------------------------------------------------------------------

_TAG = re.compile(r"<(/?)(?:think(?:ing)?|thought)>", re.IGNORECASE)


class SplitText(NamedTuple):
    """A completion's text in two parts.

    Args:
        text: the answer; empty if the completion ended while the model was still thinking.
        reasoning: what was inside the tags; None if there are no tags, empty if there is nothing inside
            them.
        truncated: the reasoning was not closed, so there is no answer.
    """

    text: str
    reasoning: str | None
    truncated: bool


def split_reasoning(raw: str) -> SplitText:
    """Split the reasoning off the beginning of a completion.

    The tags are `<think>`, `<thinking>` and `<thought>` in any case, as open models write them. Reasoning comes
    before the answer, so the rules look at the beginning of the text only, and nothing is ever cut out of the
    middle of an answer:

    1. A text that begins with an opening tag is reasoning up to the next closing tag. Without a closing tag
       all of it is reasoning, truncated.
    2. A closing tag with no opening tag before it ends reasoning that began in the prompt's template.
    3. Blocks that follow each other with nothing but whitespace between them are one reasoning, joined by
       blank lines.
    4. Everything after that is the answer, whatever tags it mentions; so is a text in which an opening tag
       comes after other words.
    5. Inside reasoning, an opening tag is a mention, and the first closing tag ends the block: models emit it
       as one special token. A tag in backticks is a mention everywhere.

    Whitespace around the reasoning and the answer is stripped; a text without reasoning is returned unchanged. If the
    template had the opening tag and the completion was cut off before the closing tag, nothing shows it, and the
    completion is returned as text.

    Args:
        raw: a completion as the model wrote it. Takes linear time.
    """
    if "<" not in raw:
        return SplitText(raw, None, truncated=False)
    thoughts: list[str] = []
    answer_start = 0
    block_start: int | None = None
    for opening, start, end in _tags(raw):
        if block_start is not None:
            if not opening:
                thoughts.append(raw[block_start:start])
                answer_start, block_start = end, None
        elif opening and not raw[answer_start:start].strip():
            block_start = end
        elif not opening and not thoughts:
            thoughts.append(raw[:start])
            answer_start = end
        else:
            break
    if block_start is not None:
        return SplitText("", _joined_thoughts([*thoughts, raw[block_start:]]), truncated=True)
    if not thoughts:
        return SplitText(raw, None, truncated=False)
    return SplitText(raw[answer_start:].strip(), _joined_thoughts(thoughts), truncated=False)


def _tags(raw: str) -> Iterator[tuple[bool, int, int]]:
    """The tags that are not mentions, in order: whether it opens, its start, its end."""
    for match in _TAG.finditer(raw):
        start, end = match.span()
        # One backtick before and one after quote the tag; three before it are the end of a code block.
        before, after = raw[max(0, start - 2) : start], raw[end : end + 1]
        quoted = after == "`" and before.endswith("`") and before != "``"
        if not quoted:
            yield not match[1], start, end


def _joined_thoughts(thoughts: list[str]) -> str:
    return "\n\n".join(stripped for thought in thoughts if (stripped := thought.strip()))
