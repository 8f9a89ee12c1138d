"""Finding the answer in a completion: behind its reasoning; numbers, markers, boxes, and SQuAD's normal form.

Each helper returns None if there is no answer, never a guess, and takes linear time. Lettered choices are
read in `choice_extraction`; JSON that a judge returns is read where judges are.
"""

import re
import string
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
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
    """Return whether two texts are exactly the same number: `18.00` and `18`, `$1,000` and `1000`, `1e3` and
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
    """Normalize an answer like SQuAD: lower case, no ASCII punctuation, no English articles, single spaces.

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


class SplitText(NamedTuple):
    """A completion's text in two parts.

    Args:
        text: the answer; empty if the completion ended while the model was still thinking.
        reasoning: what was inside the marks; None if there are no marks, empty if there is nothing inside
            them.
        truncated: the reasoning was not closed, so there is no answer.
    """

    text: str
    reasoning: str | None
    truncated: bool


class _Marks(NamedTuple):
    """The marks of a family of models.

    Args:
        opening: the pattern of the mark before reasoning.
        closing: the pattern of the mark after it.
        answer: the pattern of the mark before the answer, which ends reasoning too.
        ends: the marks after the answer.
    """

    opening: str
    closing: str
    answer: str = "(?!)"
    ends: tuple[str, ...] = ()


_TAG = "(?:think(?:ing)?|thought|reasoning)"
_HEADER = r"(?:<\|start\|>assistant)?<\|channel\|>NAME[^<]{0,200}(?:<\|constrain\|>[^<]{0,50})?<\|message\|>"
_KNOWN = (
    _Marks(rf"(?i:<{_TAG}>)", rf"(?i:</{_TAG}>)"),  # most open models
    _Marks(r"\[THINK\]", r"\[/THINK\]"),  # Magistral
    _Marks("◁think▷", "◁/think▷"),  # Kimi
    _Marks("<seed:think>", "</seed:think>"),  # Seed
    _Marks(r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    _Marks(r"\[unused16\]", r"\[unused17\]"),  # Pangu
    _Marks(r"<\|channel>thought\b", r"<channel\|>", ends=("<turn|>",)),  # Gemma
    _Marks(  # Cohere
        r"<\|START_THINKING\|>",
        r"<\|END_THINKING\|>",
        answer=r"<\|START_RESPONSE\|>",
        ends=("<|END_RESPONSE|>", "<|END_OF_TURN_TOKEN|>"),
    ),
    _Marks(  # gpt-oss: https://github.com/openai/harmony
        _HEADER.replace("NAME", "(?:analysis|commentary)"),
        r"(?:<\|end\|>\s*)?<\|start\|>assistant(?=<\|channel\|>)",
        answer=_HEADER.replace("NAME", "final"),
        ends=("<|end|>", "<|return|>", "<|call|>"),
    ),
)
_BARE_HARMONY = re.compile(r"\s*analysis(?=\w)(.*?)assistantfinal(.*)", re.DOTALL)
"""Matches the channels of gpt-oss from a server that omits its special tokens."""

_SIGNS = ("<", "[", "◁", "assistantfinal")
_BLANK = re.compile(r"\s*")
_MOST_ENDS = 3


def split_reasoning(raw: str, marks: tuple[str, str] | None = None) -> SplitText:
    """Split the reasoning off the beginning of a completion.

    The marks are those that open models write: `<think>`, `<thinking>`, `<thought>` and `<reasoning>` in any case,
    `[THINK]` (Magistral), `◁think▷` (Kimi), `<seed:think>` (Seed), `<|inner_prefix|>` (Apertus), `[unused16]` (Pangu),
    `<|channel>thought` (Gemma), `<|START_THINKING|>` (Cohere), and the channels of gpt-oss. Without its special tokens,
    these are split only where they are certain: the text begins with `analysis`, at once followed by a word, and
    `assistantfinal` comes later.
    Reasoning comes before the answer, so the rules look at the beginning of the text only, and nothing is ever cut
    out of the middle of an answer:

    1. A text that begins with an opening mark is reasoning up to the next closing mark of the same family. Without a
       closing mark all of it is reasoning, truncated.
    2. A closing mark with no opening mark of its family before it ends reasoning that began in the prompt's template.
    3. Blocks that follow each other with nothing but whitespace between them are one reasoning, joined by
       blank lines.
    4. Everything after that is the answer, whatever marks it mentions; so is a text in which an opening mark
       comes after other words. The marks around an answer (Cohere, gpt-oss) are left out.
    5. Inside reasoning, an opening mark is a mention, and the first closing mark ends the block: models emit it
       as one special token. A mark in backticks is a mention everywhere.

    Whitespace around the reasoning and the answer is stripped; a text without reasoning is returned unchanged. If the
    template had the opening mark and the completion was cut off before the closing mark, nothing shows it, and the
    completion is returned as text.

    Args:
        raw: a completion as the model wrote it. Takes linear time.
        marks: an opening and a closing mark, for a model that writes others; they replace those above.
    """
    if marks is None and not any(sign in raw for sign in _SIGNS):  # nearly always
        return SplitText(raw, None, truncated=False)
    if marks is None and (bare := _BARE_HARMONY.match(raw)) is not None:
        return SplitText(bare[2].strip(), bare[1].strip(), truncated=False)
    families = _compiled(_KNOWN if marks is None else (_Marks(re.escape(marks[0]), re.escape(marks[1])),))
    thoughts: list[str] = []
    at = 0
    ends: tuple[str, ...] = ()
    while (block := _block_at(families, raw, at)) is not None:
        family, begin = block
        ends, ending = family.ends, _unquoted(family.ending, raw, begin)
        if ending is None:
            rest = _without_ends(raw[begin:], ends)
            return SplitText("", _joined_thoughts([*thoughts, rest]), truncated=True)
        thoughts.append(raw[begin : ending.start()])
        at = ending.end()
        if ending["closing"] is None:  # the answer begins
            break
    for family in families:
        if (answer := _behind_blank(family.answer, raw, at)) is not None:
            at, ends, thoughts = answer, family.ends, thoughts or [""]
    if not thoughts:
        return SplitText(raw, None, truncated=False)
    return SplitText(_without_ends(raw[at:], ends), _joined_thoughts(thoughts), truncated=False)


class _Family(NamedTuple):
    """The patterns of the marks of a family, compiled; `ending` is that of closing or answer."""

    opening: re.Pattern[str]
    closing: re.Pattern[str]
    answer: re.Pattern[str]
    ending: re.Pattern[str]
    ends: tuple[str, ...]


@lru_cache(maxsize=64)
def _compiled(table: tuple[_Marks, ...]) -> Sequence[_Family]:
    return [
        _Family(
            re.compile(marks.opening),
            re.compile(marks.closing),
            re.compile(marks.answer),
            re.compile(f"(?P<closing>{marks.closing})|{marks.answer}"),
            marks.ends,
        )
        for marks in table
    ]


def _block_at(families: Sequence[_Family], raw: str, at: int) -> tuple[_Family, int] | None:
    """Return the family and the start of the reasoning at a position, after whitespace at most.

    At the start of the text, the template may have opened it.
    """
    for family in families:
        if (begin := _behind_blank(family.opening, raw, at)) is not None:
            return family, begin
    closed: dict[int, _Family] = {}
    for family in families if at == 0 else ():
        closing = _unquoted(family.closing, raw, 0)
        opening = None if closing is None else _unquoted(family.opening, raw, 0)
        if closing is not None and (opening is None or opening.start() > closing.start()):
            closed[closing.start()] = family
    return (closed[min(closed)], 0) if closed else None


def _behind_blank(pattern: re.Pattern[str], raw: str, at: int) -> int | None:
    """Return the position after a mark at this position, or after whitespace there."""
    blank = _BLANK.match(raw, at)
    found = pattern.match(raw, at if blank is None else blank.end())
    return None if found is None else found.end()


def _unquoted(pattern: re.Pattern[str], raw: str, at: int) -> re.Match[str] | None:
    """Find the next mark that is not a mention."""
    for found in pattern.finditer(raw, at):
        start, end = found.span()
        # One backtick before and one after quote the mark; three before it are the end of a code block.
        before, after = raw[max(0, start - 2) : start], raw[end : end + 1]
        if not (after == "`" and before.endswith("`") and before != "``"):
            return found
    return None


def _without_ends(text: str, ends: tuple[str, ...]) -> str:
    text = text.strip()
    for _ in range(_MOST_ENDS):
        for end in ends:
            text = text.removesuffix(end).rstrip()
    return text


def _joined_thoughts(thoughts: Sequence[str]) -> str:
    return "\n\n".join(stripped for thought in thoughts if (stripped := thought.strip()))
