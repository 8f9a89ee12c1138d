"""Multiple-choice questions: as prompts, with few-shot examples, and with their choices shuffled.

Reading the letter that a model answered is in `choice_extraction`. Whatever is drawn at random here is drawn
from a seed and is the same on every machine and in every process.
"""

import random
import string
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from modelgauge.data.base import Frozen
from modelgauge.errors import InvalidDataError
from modelgauge.wording.phrases import counted

ChoiceStyle = Literal["A.", "(A)"]
_LABELS: dict[ChoiceStyle, str] = {"A.": "{}.", "(A)": "({})"}
_REFERENCES: dict[ChoiceStyle, str] = {"A.": "{}", "(A)": "({})"}


def choice_letters(count: int) -> str:
    """Return the letters of this many choices: `ABCD` for four.

    Raises:
        InvalidDataError: there are no choices, or more than the alphabet has letters.
    """
    if not 1 <= count <= len(string.ascii_uppercase):
        raise InvalidDataError(
            f"A question cannot have {counted(count, 'lettered choice')}.",
            fix="Give between 1 and 26, labelled A to Z.",
        )
    return string.ascii_uppercase[:count]


class MultipleChoiceQuestion(Frozen):
    """A question with lettered choices; usable as the context of a TestItem.

    Args:
        question: what is asked, without the choices.
        choices: 1 to 26 texts, labelled A, B, C … in their order.
        answer: the right choice as an index from 0 or as a letter, kept as an index; None if it is
            unknown.

    Raises:
        InvalidDataError: too few or too many choices, or an answer that is none of them.
    """

    question: str
    choices: tuple[str, ...]
    answer: Annotated[int, Field(strict=True)] | None = None

    def __init__(
        self, question: str, choices: Sequence[str], answer: int | str | None = None, **data: Any
    ) -> None:
        super().__init__(question=question, choices=choices, answer=answer, **data)

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # loaders need not come through Python

    @field_validator("choices", mode="before")
    @classmethod
    def _in_order(cls, choices: Any) -> Any:
        if not isinstance(choices, list | tuple):  # a set has another order in every process
            raise InvalidDataError("the choices are not a list.", fix="Give a list or tuple of texts.")
        return choices

    @field_validator("answer", mode="before")
    @classmethod
    def _index_of_letter(cls, answer: Any) -> Any:
        if not isinstance(answer, str):
            return answer
        if len(answer) != 1 or answer not in string.ascii_letters:
            raise InvalidDataError(
                f"the answer {answer!r:.80} is not a letter.", fix="Give the right choice's index or letter."
            )
        return string.ascii_uppercase.index(answer.upper())

    @model_validator(mode="after")
    def _answer_is_a_choice(self) -> "MultipleChoiceQuestion":
        letters = choice_letters(len(self.choices))
        if self.answer is not None and not 0 <= self.answer < len(letters):
            raise InvalidDataError(
                f"the answer {self.answer} is not the index of one of {len(letters)} choices.",
                fix=f"Give 0 to {len(letters) - 1}, or a letter of {letters}.",
            )
        return self

    @property
    def letters(self) -> str:
        """The letters of the choices, in order."""
        return choice_letters(len(self.choices))

    @property
    def answer_letter(self) -> str | None:
        """The letter of the right choice; None if it is unknown."""
        return None if self.answer is None else self.letters[self.answer]


def format_question(
    question: MultipleChoiceQuestion,
    *,
    style: ChoiceStyle = "A.",
    heading: str = "",
    suffix: str = "Answer:",
    with_answer: bool = False,
) -> str:
    r"""Write a question, a line for each choice, and what the model is to continue.

    The defaults are MMLU's format (Hendrycks et al. 2021, https://arxiv.org/abs/2009.03300): `A. text` lines
    and a last line `Answer:`. `style="(A)", heading="Options:", suffix=""` is that of BIG-Bench Hard's
    questions (Suzgun et al. 2022, https://arxiv.org/abs/2210.09261).

    Args:
        question: the question.
        style: how the choices are labelled.
        heading: a line between the question and the choices; none where empty.
        suffix: the last line; none where empty.
        with_answer: add the right letter after the suffix, as few-shot examples have it.

    Raises:
        InvalidDataError: `style` is unknown, or `with_answer` is asked of a question whose answer is unknown.
    """
    if style not in _LABELS:
        raise InvalidDataError(f"The style {style!r} is unknown.", fix='Use style="A." or style="(A)".')
    labels = [_LABELS[style].format(letter) for letter in question.letters]
    lines = [question.question, heading] if heading else [question.question]
    lines += [f"{label} {choice}" for label, choice in zip(labels, question.choices, strict=True)]
    last = [suffix] if suffix else []
    if with_answer:
        letter = question.answer_letter
        if letter is None:
            raise InvalidDataError(
                f"The question {question.question!r:.80} has no answer to show.",
                fix="Give its `answer`, or leave it out of the examples.",
            )
        last.append(_REFERENCES[style].format(letter))
    return "\n".join([*lines, " ".join(last)] if last else lines)


def few_shot_prompt(
    question: MultipleChoiceQuestion,
    examples: Sequence[MultipleChoiceQuestion],
    k: int,
    *,
    seed: int,
    instruction: str = "",
    style: ChoiceStyle = "A.",
    heading: str = "",
    suffix: str = "Answer:",
) -> str:
    """Write k answered examples and then the question, with a blank line between each.

    The examples are drawn without replacement. Their order depends on the seed and on the size of the pool, so one seed
    gives all questions the same examples, and fewer examples are the first of more. If the question itself is in the
    pool (the same question and choices), the next example takes its place.

    Args:
        question: what is asked; its answer is not shown.
        examples: the pool to draw from, in an order that is the same in every run.
        k: how many examples to show; 0 for none.
        seed: of the drawing.
        instruction: the text at the top; MMLU says "The following are multiple choice questions (with answers) about
            SUBJECT." (Hendrycks et al. 2021, https://arxiv.org/abs/2009.03300).
        style: how the choices are labelled; see `format_question`.
        heading: a line between each question and its choices; none where empty.
        suffix: the last line of each question; none where empty.

    Raises:
        InvalidDataError: k is negative or more than there are other questions, or an example has no answer.
    """
    if k < 0:
        raise InvalidDataError(f"Cannot show {counted(k, 'example')}.", fix="Give k = 0 or more.")
    others = (example for example in _permutation(examples, seed) if not _same(example, question))
    shots = list(islice(others, k))
    if len(shots) < k:
        raise InvalidDataError(
            f"{counted(k, 'example is', 'examples are')} asked for; the pool has {len(shots)} other than the question.",
            fix=f"Give more examples, or k = {len(shots)} at most.",
        )
    written = partial(format_question, style=style, heading=heading, suffix=suffix)
    parts = [instruction] if instruction else []
    parts += [written(shot, with_answer=True) for shot in shots]
    return "\n\n".join([*parts, written(question)])


def _permutation(pool: Sequence[MultipleChoiceQuestion], seed: int) -> Iterator[MultipleChoiceQuestion]:
    """Yield a random permutation, drawn only as far as it is read (Fisher-Yates, with moved entries in a dict)."""
    generator = _generator(str(seed))
    moved: dict[int, int] = {}
    for position in range(len(pool)):
        chosen = generator.randrange(position, len(pool))
        yield pool[moved.get(chosen, chosen)]
        moved[chosen] = moved.get(position, position)


def _generator(seed: str) -> random.Random:
    """Return a generator seeded by a hash of the text (SHA-512): the same in every process and on every machine."""
    return random.Random(seed.encode("utf-8", "surrogatepass"))  # noqa: S311 - reproducible, not secret


def _same(a: MultipleChoiceQuestion, b: MultipleChoiceQuestion) -> bool:
    return a.question == b.question and sorted(a.choices) == sorted(b.choices)


def shuffle_choices(question: MultipleChoiceQuestion, seed: int) -> MultipleChoiceQuestion:
    """Put the choices of a question in another order; the answer follows its choice.

    The order depends on the seed and on the question's text: with the seed alone, every question of a
    benchmark that lists the right choice first would get its answer under the same letter.
    """
    generator = _generator(f"{seed}\n{question.question}")
    order = list(range(len(question.choices)))
    generator.shuffle(order)
    answer = None if question.answer is None else order.index(question.answer)
    return MultipleChoiceQuestion(question.question, [question.choices[index] for index in order], answer)
