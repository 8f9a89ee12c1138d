"""Rules about SUTs, annotators and metrics: what they make of prompts, and that answers can be kept."""

from collections.abc import Iterator, Sequence
from typing import Any

from modelgauge.data.json_values import canonical_json
from modelgauge.engine.calls.callee import declared_response
from modelgauge.errors import DefinitionError, InvalidDataError, ModelGaugeError
from modelgauge.interfaces.capabilities import ProducesPerTokenLogProbabilities, ProducesStructuredOutput
from modelgauge.interfaces.codec import ResponseCodec
from modelgauge.interfaces.sut import capabilities_of
from modelgauge.testing.rule import NotApplicableError, Note, problem, remark, rule, told
from modelgauge.testing.samples import OPTIONS
from modelgauge.testing.subjects import CallableSubject, Translation

_OPTION_OF = {
    ProducesPerTokenLogProbabilities: "top_logprobs",
    ProducesStructuredOutput: "response_schema",
}


@rule("requests", "It makes a request of whatever it is asked: empty, long, in any script, with any options.")
def requests_made(subject: CallableSubject) -> Iterator[Note]:
    for one in subject.translations:
        if one.error is None or (
            isinstance(one.error, ModelGaugeError) and not one.label.startswith("a plain")
        ):
            continue  # what it cannot do, it may refuse in so many words
        yield problem(
            f"{one.label.capitalize()} cannot be translated: it raised {told(one.error)}.",
            fix="Make a request of it, or raise an error of modelgauge.errors that says why not.",
        )


@rule("cacheable", "Its arguments and its requests have one exact JSON, so that no answer is paid for twice.")
def cacheable(subject: CallableSubject) -> Iterator[Note]:
    made = subject.made
    if not made.cacheable:
        raise NotApplicableError("it says so itself: cacheable = False")
    why = made.why_uncacheable()
    if why is not None:
        yield problem(
            f"{why}.",
            fix="Take JSON values, secrets or other SUTs as arguments, or name what changes no answer in "
            "identity_excludes.",
        )
    seen: set[str] = set()
    for one in subject.translations:
        error = one.key_error
        if error is not None and error.problem not in seen:
            seen.add(error.problem)
            yield problem(f"The request of {one.label} has no key: {error.problem}", fix=error.fix)


@rule(
    "deterministic",
    "Equal prompts make equal requests, in every object alike, and change nothing on the way.",
)
def deterministic(subject: CallableSubject) -> Iterator[Note]:
    made, other = subject.made, subject.make()
    for one in _with_keys(subject.translations):
        before = canonical_json(_listed(one.sample))
        if subject.digest(made, one.request) != one.digest:
            yield problem(
                f"The request of {one.label} was changed by later ones.",
                fix="Make a new request each time; share no list, dict or object between requests.",
            )
        elif subject.digest(made, one.again(made)) != one.digest:
            yield problem(
                f"The same object made two different requests of {one.label}.",
                fix="Let the request depend on prompt and arguments alone: no clock, no counter, no chance.",
            )
        elif subject.digest(other, one.again(other)) != one.digest:
            yield problem(
                f"Two objects made alike have different keys for {one.label}.",
                fix="Let request, cache_version and identity depend on the arguments alone.",
            )
        elif canonical_json(_listed(one.sample)) != before:
            yield problem(f"Translating {one.label} changed it.", fix="Copy what you change.")
        else:
            continue
        return


@rule("distinct", "Different prompts make different requests, so that no prompt gets another's answer.")
def distinct(subject: CallableSubject) -> Iterator[Note]:
    made = subject.made
    usual = {one.label: one for one in _with_keys(subject.translations)}
    for kind in ("text prompt", "chat"):
        told_apart = [usual.get(f"{label} {kind}") for label in ("a plain", "another", "a unicode")]
        present = [one for one in told_apart if one is not None]
        if len({one.digest for one in present}) < len(present):
            yield problem(
                f"Different prompts ({kind}) make the same request.", fix="Put the prompt into the request."
            )
    heeded = _heeded_options(subject, usual)
    if heeded is None:
        return
    for capability, option in _OPTION_OF.items():
        if capability in capabilities_of(made) and option not in heeded:
            yield problem(
                f"It declares {capability.__name__}, and {option} does not change its request.",
                fix=f"Put options.{option} into the request, or take the capability out of `capabilities`.",
            )
    yield remark(f"Options that it heeds: {', '.join(heeded) or 'none'}.")


@rule("responses", "The class of its native responses can be read back from JSON.")
def responses(subject: CallableSubject) -> Iterator[Note]:
    made = subject.sound
    try:
        ResponseCodec(f"'{made.uid}'", declared_response(made))
    except DefinitionError as error:
        yield problem(error.problem, fix=error.fix)


def _with_keys(translations: Sequence[Translation]) -> list[Translation]:
    found = [one for one in translations if one.digest is not None]
    if not found:
        raise NotApplicableError("it makes no request that has a key")
    return found


def _heeded_options(subject: CallableSubject, usual: dict[str, Translation]) -> list[str] | None:
    """The options that change the request of a plain prompt; None where there is none to ask."""
    plain = usual.get("a plain text prompt") or usual.get("a plain chat")
    if plain is None:
        return None
    made = subject.made
    translate: Any = made.translate_chat_prompt if "chat" in plain.label else made.translate_text_prompt
    heeded = []
    for name, options in OPTIONS.items():
        try:
            if subject.digest(made, translate(plain.sample.with_options(options))) != plain.digest:
                heeded.append(name)
        except (ModelGaugeError, InvalidDataError):
            continue  # it was refused, which the rules requests and cacheable judge
    return heeded


def _listed(sample: Any) -> Any:
    return list(sample) if isinstance(sample, tuple) else sample


SUT_RULES = (requests_made, cacheable, deterministic, distinct, responses)
ANNOTATOR_RULES = (requests_made, cacheable, deterministic, responses)
