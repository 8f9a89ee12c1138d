"""Reading scored continuations: which of them the model finds likeliest."""

from collections.abc import Callable, Sequence
from typing import Literal

from modelgauge.data.responses import SUTCompletion
from modelgauge.errors import InvalidDataError
from modelgauge.wording.phrases import counted

Length = Literal["bytes", "characters", "tokens"]

_LENGTHS: dict[str, Callable[[str], int]] = {
    "bytes": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "characters": len,
}


def log_likelihoods(
    completions: Sequence[SUTCompletion],
    *,
    per: Length | None = None,
    texts: Sequence[str] | None = None,
    unconditional: Sequence[SUTCompletion] | None = None,
) -> list[float]:
    """Return the log-likelihoods by which continuations are compared, in their order.

    Args:
        completions: the response to a `ContinuationPrompt`.
        per: divides each log-likelihood by the length of its text, in this unit. Without it a longer text is less
            likely merely because it is longer.
        texts: the texts whose bytes or characters count, where they are not the continuations, such as choices without
            the space before them.
        unconditional: the response to the same continuations behind a context without the question. Its
            log-likelihoods are subtracted, so that what is likely anyway gains nothing (Brown et al. 2020, "Language
            Models are Few-Shot Learners", section 2.4).

    Raises:
        InvalidDataError: a completion was not scored, the lists differ in length, or a length is 0.
    """
    found = [_score(completion) for completion in completions]
    if unconditional is not None:
        _check_length(unconditional, completions, "unconditional")
        found = [score - _score(other) for score, other in zip(found, unconditional, strict=True)]
    if per is None:
        return found
    lengths = [completion.num_tokens or 0 for completion in completions]
    if per != "tokens":
        measured = [completion.text for completion in completions] if texts is None else texts
        _check_length(measured, completions, "texts")
        lengths = [_LENGTHS[per](text) for text in measured]
    if not all(lengths):
        raise InvalidDataError(
            f"A continuation has no {per}, so it has no log-likelihood per {per}.",
            fix="Leave `per` out, or give texts that are not empty.",
        )
    return [score / length for score, length in zip(found, lengths, strict=True)]


def likeliest(
    completions: Sequence[SUTCompletion],
    *,
    per: Length | None = None,
    texts: Sequence[str] | None = None,
    unconditional: Sequence[SUTCompletion] | None = None,
) -> int:
    """Return the index of the likeliest continuation, from 0; the first of several that are equally likely.

    Arguments and errors are those of `log_likelihoods`.
    """
    scores = log_likelihoods(completions, per=per, texts=texts, unconditional=unconditional)
    if not scores:
        raise InvalidDataError("There is no continuation to choose from.", fix="Give at least one.")
    return scores.index(max(scores))


def _score(completion: SUTCompletion) -> float:
    if completion.logprob is None:
        raise InvalidDataError(
            "A completion has no logprob: it was written, not scored.",
            fix="Ask with a ContinuationPrompt.",
        )
    return completion.logprob


def _check_length(given: Sequence[object], completions: Sequence[SUTCompletion], name: str) -> None:
    if len(given) != len(completions):
        raise InvalidDataError(
            f"{name} has {counted(len(given), 'element')}, and there are {counted(len(completions), 'completion')}.",
            fix="Give one for each, in the same order.",
        )
