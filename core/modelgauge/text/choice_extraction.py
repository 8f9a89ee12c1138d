r"""Reading which lettered choice a completion names, or that it names none.

The rules, in order. The first that finds something decides, also where what it finds is ambiguous (None):

1. Statements: "the answer is (B)", "Answer: b", "the correct option is B", `\boxed{B}`, `<answer>B</answer>`,
   `#### B`, or a last line that is nothing but a label. The last one wins: reasoning comes before the answer,
   as in the chain-of-thought prompts of BIG-Bench Hard (Suzgun et al. 2022, https://arxiv.org/abs/2210.09261).
   What is denied is none: "the incorrect answer is A", "eliminated option: A", "I don't think the answer is A".
2. Conclusions: "I would choose B", "therefore (B)", "it's B", "(B) is correct". All must name one choice.
3. The beginning: a first line that is a label or begins with one ("B. Because …"), as MMLU's prompts ask for
   (Hendrycks et al. 2021, https://arxiv.org/abs/2009.03300), or a first or last line that is the text of one
   choice. A completion that goes through several labelled lines begins with none.

A statement may name a choice by its text ("the answer is Paris"); the text goes before the letter, since
in "the answer is A dog" the A is an article. A bare letter counts only where it cannot be a word or a part of
one: "A dog", "I think", "C major" and "A's" are not labels. A statement that names two choices, or a letter
beyond the last choice, is an answer that cannot be scored: None.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from modelgauge.text.multiple_choice import choice_letters

_MARKUP = re.compile(
    r"\\(?:text|textbf|mathrm|mathbf|mbox)\{([^{}]*)\}|\\[()\[\]]|[*`$]"
    r"|(?<![A-Za-z0-9_])_+|_+(?![A-Za-z0-9_])"
)
# Full-width parentheses and colon, curly quotes.
_STRAIGHT = str.maketrans("\uff08\uff09\uff1a\u201c\u201d\u2018\u2019", "():\"\"''")

_STATEMENT = re.compile(
    r"""
      \\boxed\ ?(?={) | <answer> | \#{4}
    | \b(?:answer|ans|option|choice|correct\ (?:one|letter|statement|response|solution))\b
      (?:\ (?:to|for|of|among|in|from|here)\b[^.!?:\n]{0,80}?)?
      (?:\ (?:is|was|(?:would|must|should|will|has\ to)\ be)\b:?
        |\ ?(?:=>|->|[:=\u2192\u21d2\u2013\u2014])|\ -\ )
      (?:,?\ (?:therefore|thus|then|hence|(?:most\ )?likely|probably|clearly|definitely|indeed|just)\b,?)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_DENIED_KIND = re.compile(  # what stands before a word such as "answer" and makes it the opposite of one
    r"""
    \b(?:incorrect|inaccurate|wrong|false|untrue|bad|worst|invalid|impossible|implausible|improbable|unlikely
        |least\ [a-z]{1,20}|eliminated|excluded|rejected|discarded|dismissed|discounted|ruled[ -]out
        |crossed[ -]out|distractor|decoy)
    (?:\ (?:final|possible|multiple-choice))?\ \Z
    """,
    re.IGNORECASE | re.VERBOSE,
)
_DENIAL = re.compile(
    r"""
    (?:\bnot|n't|\bnever|\bcannot|\bdoubt)
    (?:\ (?:think|believe|feel|say|claim|conclude|agree|mean|imply|follow|true|possible|likely|the\ case))?
    (?:\ that)?(?:\ (?:the|an?|my))?(?:\ (?:correct|right|best|only|final)){0,2}\ \Z
    """,
    re.IGNORECASE | re.VERBOSE,
)
_BEFORE_STATEMENT = 80  # characters in which a denial is looked for: more than the longest one has
_CONCLUSION = re.compile(
    r"""
    (?<!not\ )(?<!n't\ )(?<!never\ )
    \b(?:choose|chose|pick|select|go\ with|going\ with|opt\ for|say|think|believe|guess
        |therefore|thus|hence|so|it's|it\ is|that's|must\ be)\b[,:]?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_CORRECT = re.compile(
    r"""
    (?<![Ii]f\ )(?<!whether\ )(?<![Nn]ot\ )(?<!nor\ )(?<![\w'-])(?:[(\[]([A-Za-z])[)\]]|([A-Z]))
    [ ](?:is|must\ be|would\ be|seems)\ (?:therefore\ |thus\ |clearly\ |definitely\ )?
    (?:the\ (?:only\ |best\ |most\ likely\ )?(?:correct\ |right\ )?(?:answer|option|choice|one)
        |correct|right)\b(?!-)
    """,
    re.VERBOSE,
)

_LEAD = re.compile(r"[\s\"':=>]*(?:(?:option|choice|letter|answer)\s)?[\"']*", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:an?|the) (?=\w)", re.IGNORECASE)
_MARKED = re.compile(r"\(\s?([A-Za-z])\s?\)|\[\s?([A-Za-z])\s?\]|\{\s?([A-Za-z])\s?\}")
_BARE = re.compile(r"([A-Za-z])(?![A-Za-z0-9_])")
_ENDS_LABEL = re.compile(r"[.,;!?\"'](?!\w)|[:)\]}<]|\s*\Z| ?\n")
_FOLLOWS_LETTER = re.compile(  # what follows a label, and never an article or a pronoun
    r" ?\(| ?[\u2013\u2014]| - "
    r"| (?:because|since|as|due|given|which|based|and|or|not|but|according|rather|instead)\b"
)
_GOES_ON = re.compile(r"\w|[-.,:/^+']\w|\s?[%°/^+]")  # what was read is only a part of the value
_TO_OWN_TEXT = re.compile(r"[.):\]}\s-]*")
_ALSO = re.compile(r"[.)\]}\"']*\s?(?:,?\s?(?:and/or|and|or)\b|[,/&])\s?", re.IGNORECASE)
_VERB = re.compile(
    r"\s?(?:is|isn't|are|was|were|can|can't|cannot|could|does|doesn't|has|would|should|must|may|might|seems|says"
    r"|means|refers|describes)\b",
    re.IGNORECASE,
)
_LABELLED_LINE = re.compile(
    r"^(?:option |choice )?(?:[(\[]([A-Za-z])[)\]]|([A-Za-z])[.):])", re.IGNORECASE | re.MULTILINE
)


def extract_choice(text: str, choices: Sequence[str]) -> str | None:
    """Return the letter of the choice that a completion names; None if it names none or several: no guess.

    Args:
        text: a completion without its reasoning block. Markdown and LaTeX wrappers are ignored.
        choices: the texts of the choices, in the order of their letters (`question.choices`).

    Raises:
        InvalidDataError: there are no choices, or more than 26.
    """
    completion = _Completion(text, choices)
    for rule in (completion.stated, completion.concluded, completion.opened):
        found = rule()
        if found is not None:
            return found or None
    return None


class _Named(NamedTuple):
    """A choice that is named at some place of a text."""

    letter: str  # empty if it cannot be scored: beyond the last choice, or a text that two choices share
    end: int


class _Completion:
    """A cleaned completion and its choices.

    Each rule gives a letter, "" for an answer that cannot be scored, or None if it finds nothing.
    """

    def __init__(self, text: str, choices: Sequence[str]) -> None:
        self.letters = choice_letters(len(choices))
        self.text = _cleaned(text)
        self.lowered = _lowered(self.text)
        self.own_text = dict(zip(self.letters, map(_choice_text, choices), strict=True))
        by_text: dict[str, str] = {}
        for letter, own in self.own_text.items():
            # A text of one letter or sign looks like a label, or like punctuation.
            if len(own) > 1 or own.isdigit():
                by_text[own] = "" if own in by_text else letter
        self.longest_first = sorted(by_text.items(), key=lambda entry: -len(entry[0]))

    def stated(self) -> str | None:
        alone = self._label_alone(self.text.rfind("\n") + 1, len(self.text))
        if alone is not None:
            return alone
        for statement in reversed(list(_STATEMENT.finditer(self.text))):
            if self._is_denied(statement):
                continue
            start = _end(_LEAD, self.text, statement.end())
            named = self._choice_named_by_text(start) or self._label(start)
            if named is not None:
                return self._one(named)
        return None

    def _is_denied(self, statement: re.Match[str]) -> bool:
        start = statement.start()
        before = self.text[max(0, start - _BEFORE_STATEMENT) : start]
        is_word = self.text[start].isalpha()  # after "A is wrong", a box holds the answer all the same
        return _DENIAL.search(before) is not None or (is_word and _DENIED_KIND.search(before) is not None)

    def concluded(self) -> str | None:
        return _only_letter(set(self._conclusions()))

    def opened(self) -> str | None:
        lines = self.text.split("\n")
        alone = self._label_alone(0, len(lines[0]))
        if alone is not None:
            return alone
        found = {self._text_alone(line) for line in (lines[0], lines[-1])} - {None}
        if len({(match[1] or match[2]).upper() for match in _LABELLED_LINE.finditer(self.text)}) <= 1:
            named = self._label(_end(_LEAD, self.text, 0), lower=False)
            if named is not None and not _VERB.match(self.text, named.end):
                found.add(self._one(named))
        return _only_letter(found)

    def _conclusions(self) -> Iterator[str]:
        for match in _CONCLUSION.finditer(self.text):
            named = self._label(_end(_LEAD, self.text, match.end()), lower=False)
            if named is not None and not _VERB.match(self.text, named.end):
                yield self._one(named)
        for match in _CORRECT.finditer(self.text):
            yield self._scored(match[1] or match[2])

    def _label(self, start: int, *, lower: bool = True) -> _Named | None:
        """Return the label at `start`, with the choice's own text if it follows."""
        text = self.text
        if marked := _MARKED.match(text, start):
            letter, end = marked[1] or marked[2] or marked[3], marked.end()
        elif bare := _BARE.match(text, start):
            letter, end = bare[1], bare.end()
        else:
            return None
        if (own_end := self._own_text_end(letter, end)) is not None:
            return _Named(letter.upper(), own_end)
        if not marked:
            if letter.islower() and not (lower and _ENDS_LABEL.match(text, end)):
                return None
            if not _ENDS_LABEL.match(text, end) and not _FOLLOWS_LETTER.match(text, end):
                return None
        return _Named(self._scored(letter), end)

    def _own_text_end(self, letter: str, label_end: int) -> int | None:
        """Return the end of the choice's own text, if it follows the label; else None."""
        own = self.own_text.get(letter.upper(), "")
        start = _end(_TO_OWN_TEXT, self.text, label_end)
        end = start + len(own)
        if not own or start == label_end or not self.lowered.startswith(own, start):
            return None
        return end if _ENDS_LABEL.match(self.text, end) or _FOLLOWS_LETTER.match(self.text, end) else None

    def _choice_named_by_text(self, start: int) -> _Named | None:
        starts = {start, _end(_ARTICLE, self.text, start)}
        for own, letter in self.longest_first:
            for begin in starts:
                end = begin + len(own)
                if self.lowered.startswith(own, begin) and not _GOES_ON.match(self.text, end):
                    return _Named(letter, end)
        return None

    def _one(self, named: _Named) -> str:
        """Return the letter, unless another choice is named right after it ("A or B")."""
        also = _ALSO.match(self.text, named.end)
        if also is None:
            return named.letter
        start = _end(_LEAD, self.text, also.end())
        other = self._choice_named_by_text(start) or self._label(start)
        if other is None or other.letter == named.letter or _VERB.match(self.text, other.end):
            return named.letter
        return ""

    def _label_alone(self, start: int, end: int) -> str | None:
        """Return the letter of a line that is only a label."""
        line = self.text[start:end].strip(" .:;!>\"'()[]{}-")
        line = re.sub(r"^(?:option|choice|letter|answer)[ :]+[(\[{]?", "", line, flags=re.IGNORECASE)
        return self._scored(line) if len(line) == 1 and line.isascii() and line.isalpha() else None

    def _text_alone(self, line: str) -> str | None:
        own = _choice_text(line)
        return next((letter for text, letter in self.longest_first if text == own), None)

    def _scored(self, letter: str) -> str:
        return letter.upper() if letter.upper() in self.letters else ""


def _only_letter(found: set[str | None]) -> str | None:
    """Return the only letter found; "" if there are several, None if there is none."""
    return None if not found else found.pop() if len(found) == 1 else ""


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return start if match is None else match.end()


def _cleaned(text: str) -> str:
    """Remove Markdown and LaTeX wrappers, curly quotes, runs of spaces and empty lines."""
    plain = _MARKUP.sub(lambda match: match[1] or "", text.translate(_STRAIGHT))
    return "\n".join(" ".join(line.split()) for line in plain.splitlines() if line.strip())


def _lowered(text: str) -> str:
    """Lower case with every character in its place: only U+0130 has a lower case of two characters."""
    return text.replace("\u0130", "I").lower()


def _choice_text(choice: str) -> str:
    """Normalize a choice for comparison: lower case, no article before it, no full stop or quotes around it."""
    text = _lowered(_cleaned(choice)).strip("\"' ").removesuffix(".")
    return text[_end(_ARTICLE, text, 0) :]
