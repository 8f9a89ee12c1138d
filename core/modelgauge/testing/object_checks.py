"""The promises of whatever is registered: its name, class and secrets, and the requests of SUTs and annotators."""

import tempfile
import unicodedata
from collections.abc import Iterator
from typing import Any
from unittest import SkipTest

from modelgauge.config.secrets import SecretStore
from modelgauge.config.settings import load_settings
from modelgauge.data.json_values import canonical_json
from modelgauge.data.prompts import SUTOptions
from modelgauge.data.records import TestRecord
from modelgauge.engine.calls.policy import declared_response
from modelgauge.errors import DefinitionError, MissingSecretError, ModelGaugeError
from modelgauge.interfaces.codec import ResponseCodec
from modelgauge.interfaces.identity import list_secrets
from modelgauge.interfaces.sut import (
    ProducesPerTokenLogProbabilities,
    ProducesStructuredOutput,
    capabilities_of,
)
from modelgauge.testing.fakes import FakeSUT, FakeTest
from modelgauge.testing.report import (
    Case,
    Caution,
    Problem,
    Status,
    describe_error,
    format_traceback,
    rule_id,
)
from modelgauge.testing.samples import OPTIONS
from modelgauge.testing.subject import Subject, Translation, quiet_runner
from modelgauge.wording.phrases import capitalized

_UNSAFE = frozenset("\\'\"`$&|;<>(){}[]*!#%^")
_REQUESTS = "its requests"


# --- name, class and secrets ----------------------------------------------------------------------


def test_names(subject: Subject) -> None:
    """The uid can be typed in a shell and shown anywhere: no white space, no special characters."""
    uid, fix = subject.entry.uid, "Use letters, digits, '_', '-', '.' and '/'."
    if unsafe := sorted(_UNSAFE & set(uid)):
        raise Problem(f"{uid!r} holds {' '.join(unsafe)}, which a shell takes for itself.", fix, "hook")
    if uid.startswith(("-", "~", "/")) or uid.endswith("/"):
        what = f"{uid!r} begins or ends with a character that has a meaning of its own."
        raise Problem(what, fix, "hook")
    if unicodedata.normalize("NFC", uid) != uid:
        fix = "Normalize it: unicodedata.normalize('NFC', uid)."
        raise Problem(f"{uid!r} can be written in two ways.", fix, "hook")


def test_collisions(subject: Subject) -> None:
    """No other installed plugin claims the uid, and it does not hide another's provider."""
    entry = subject.entry
    registry = next(registry for registry in subject.plugins.registries if registry.kind == subject.kind)
    others = [other for other in registry if other.distribution != entry.distribution]
    for other in others:
        if other.label == entry.label:
            own = entry.distribution.rpartition("/")[2].removesuffix(".py")
            own = own.removeprefix("modelgauge-").removeprefix("plugin-").replace("-", "_")
            fix = f"Choose a name that says whose it is: {own}_{entry.uid}, say."
            raise Problem(f"{entry.label!r} is claimed by {other.distribution} as well.", fix, "hook")
        if not entry.is_provider and other.is_provider and entry.uid.startswith(f"{other.uid}/"):
            what = f"{entry.uid!r} hides a model of the provider {other.label!r} of {other.distribution}."
            raise Problem(what, "Choose a name without that prefix.", "hook")
    for other in others:
        if other.label.lower() == entry.label.lower():
            what = f"{other.distribution} has {other.label!r}, which differs in capitals only."
            raise Caution(what, "Choose names that people can tell apart.", "hook")


def test_class(subject: Subject) -> None:
    """The target can be imported, and is of the interface that it is registered for."""
    subject.pass_stage("class")


def test_uid(subject: Subject) -> None:
    """The constructor's first parameter is `uid`, and the object is called by the uid that it was given."""
    subject.pass_stage("uid")


def test_methods(subject: Subject) -> None:
    """Every required step and every declared capability has its method, called as the engine calls it."""
    subject.pass_stage("methods")


def test_made(subject: Subject) -> None:
    """An object can be made of what is registered, wherever its secrets come from."""
    subject.pass_stage("made")


def test_secrets(subject: Subject) -> None:
    """No secret stands in a name, a text, an identity, a request, an item, or an error."""
    if not (subject.resolved.entry.injections or list_secrets(subject.object)):
        raise SkipTest("it asks for no secret")
    leaks = {where: method for where, method, text in _texts(subject) if subject.redact(text) != text}
    if not leaks:
        return
    what = f"A secret stands in {', '.join(leaks)}"
    fix = "Keep the secret object itself, and read its .value only where it is sent"
    if _REQUESTS in leaks:
        what += ", so that no answer can be kept in the cache"
        fix += f": add the key in `{subject.step}`, not in a method that translates"
    raise Problem(f"{what}.", f"{fix}.", next(iter(leaks.values())))


# --- the requests of SUTs, annotators and metrics -------------------------------------------------


def test_requests(subject: Subject) -> None:
    """A request is made of every prompt: empty, long, in any script, with any options."""
    for (label, method, _), request, _, error in subject.translations:
        if isinstance(error, ModelGaugeError) and not label.startswith("a plain"):
            continue  # what it cannot do, it may refuse with an error that says why
        if error is not None and request is None:
            what = f"{capitalized(label)} cannot be translated: it raised {describe_error(error)}."
            fix = "Make a request of it, or raise an error of modelgauge.errors that says why not."
            raise Problem(what, fix, format_traceback(error), method)


def test_cacheable(subject: Subject) -> None:
    """Its arguments and its requests have one exact JSON, so that no answer is paid for twice."""
    if not subject.object.cacheable:
        raise SkipTest("it says so itself: cacheable = False")
    if (why := subject.object.why_uncacheable()) is not None:
        fix = "Take JSON values, secrets or other SUTs as arguments, or name what changes no answer in "
        raise Problem(f"{why}.", f"{fix}identity_excludes.", "__init__")
    for (label, method, _), request, _, error in subject.translations:
        if request is not None and isinstance(error, ModelGaugeError):
            raise Problem(f"The request of {label} has no key: {error.problem}", error.fix, method)


def test_deterministic(subject: Subject) -> None:
    """Equal prompts make equal requests, in every object alike, and change nothing on the way."""
    made, other = subject.object, subject.make()
    key_of, key_of_other = subject.key_maker(made), subject.key_maker(other)
    for (label, method, arguments), request, digest, _ in _with_keys(subject):
        before = canonical_json(list(arguments))
        if key_of(request) != digest:
            what = f"The request of {label} was changed by later ones."
            fix = "Make a new request each time; share no list, dict or object between requests."
        elif key_of(getattr(made, method)(*arguments)) != digest:
            what = f"The same object made two different requests of {label}."
            fix = "Let the request depend on prompt and arguments alone: no clock, no counter, no chance."
        elif key_of_other(getattr(other, method)(*arguments)) != digest:
            what = f"Two objects made alike have different keys for {label}."
            fix = "Let request, cache_version and identity depend on the arguments alone."
        elif canonical_json(list(arguments)) != before:
            what, fix = f"Translating {label} changed it.", "Copy what you change."
        else:
            continue
        raise Problem(what, fix, method)


def test_distinct(subject: Subject) -> str | None:
    """Different prompts make different requests, so that no prompt gets another's answer."""
    usual = {translation.sample.label: translation for translation in _with_keys(subject)}
    for kind in ("text prompt", "chat"):
        labels = (f"{label} {kind}" for label in ("a plain", "another", "a unicode"))
        present = [usual[label] for label in labels if label in usual]
        if len({translation.digest for translation in present}) < len(present):
            what = f"Different prompts ({kind}) make the same request."
            raise Problem(what, "Put the prompt into the request.", present[0].sample.method)
    plain = usual.get("a plain text prompt") or usual.get("a plain chat")
    if plain is None:
        return None
    heeded = [name for name, options in OPTIONS.items() if _heeds(subject, plain, options)]
    can = capabilities_of(subject.object)
    for capability, option in (
        (ProducesPerTokenLogProbabilities, "top_logprobs"),
        (ProducesStructuredOutput, "response_schema"),
    ):
        if capability in can and option not in heeded:
            what = f"It declares {capability.__name__}, and {option} does not change its request."
            fix = f"Put options.{option} into the request, or take the capability out of `capabilities`."
            raise Problem(what, fix, plain.sample.method)
    return f"Options that it heeds: {', '.join(heeded) or 'none'}."


def test_responses(subject: Subject) -> None:
    """The class of its native responses can be read back from JSON."""
    made = subject.object
    try:
        ResponseCodec(f"'{made.uid}'", declared_response(made))
    except DefinitionError as error:
        raise Problem(error.problem, error.fix, subject.step) from error


def test_calls(subject: Subject) -> str:
    """A real answer comes through, is kept, and looks the same when it comes from the cache."""
    if not subject.call:
        raise SkipTest("it may cost money; --call allows it")
    if subject.is_example:
        provider = subject.name.partition("/")[0]
        raise SkipTest(f"the provider is asked for a model that you name: --example {provider}/MODEL")
    asked = subject.translations[0].sample.arguments[0]  # the first of the plain samples
    first = (test_requests, test_cacheable, test_deterministic, test_responses)
    broken = [rule_id(rule) for rule in first if Case(rule, subject).finding().status is Status.problem]
    if broken:
        raise SkipTest(f"not worth money before these are fixed: {', '.join(broken)}")
    secrets = SecretStore(file=load_settings().secrets_file)
    secrets.redactor = subject.canaries.redactor  # so that findings are free of the real ones too
    try:
        made = subject.make(secrets)
    except MissingSecretError as error:
        raise SkipTest(str(error)) from error
    sut, test = FakeSUT("fake_sut"), FakeTest("conformance", [asked], annotators={"annotation": made})
    if subject.kind == "sut":
        brief = asked.with_options(SUTOptions(max_tokens=32))
        sut, test = made, FakeTest("conformance", [brief], requires=())
    with tempfile.TemporaryDirectory(prefix="modelgauge-check-", ignore_cleanup_errors=True) as folder:
        runner = quiet_runner(folder, subject.plugins, secrets=secrets)
        fresh = _without_failure(subject, runner.run(test, sut)[0])
        kept = _without_failure(subject, runner.run(test, sut)[0])
        return _cache_comparison(subject, made, fresh, kept)


# --- parts of checks ------------------------------------------------------------------------------


def _texts(subject: Subject) -> Iterator[tuple[str, str, str]]:
    """Yield the texts that a run would show or record of an object: (description, method that made it, text)."""
    if (error := subject.attempt.error) is not None:
        yield "the error of its constructor", "__init__", format_traceback(error)
        return
    made = subject.object
    yield "its repr", "__repr__", repr(made)
    yield "its str", "__str__", str(made)
    yield "its uid", "__init__", str(made.uid)
    yield "its initialization", "__init__", made.initialization.model_dump_json()
    yield "its identity", "__init__", canonical_json(made.identity())
    if subject.kind == "test":
        for key, data in made.get_dependencies().items():
            yield f"the source of dependency {key!r}", "get_dependencies", data.source
        for text in () if subject.data.error else subject.items.texts:
            yield "a test item", "make_test_items", text
        return
    for (label, method, _), request, digest, raised in subject.translations:
        if raised is not None and request is None:
            yield f"the error about {label}", method, format_traceback(raised)
        else:
            yield _REQUESTS, method, f"{request!r} {canonical_json(request) if digest else ''}"


def _with_keys(subject: Subject) -> list[Translation]:
    found = [translation for translation in subject.translations if translation.digest is not None]
    if not found:
        raise SkipTest("it makes no request that has a key")
    return found


def _heeds(subject: Subject, plain: Translation, options: SUTOptions) -> bool:
    """Return whether an option changes the request of a plain prompt."""
    prompt = plain.sample.arguments[0].with_options(options)
    try:
        request = getattr(subject.object, plain.sample.method)(prompt)
        return subject.key_maker(subject.object)(request) != plain.digest
    except ModelGaugeError:  # the rules requests and cacheable judge a refusal
        return False


def _without_failure(subject: Subject, record: TestRecord) -> TestRecord:
    """Return the record of a run whose question was answered, or report why it was not."""
    for failed in record.test_item_exceptions:
        what = f"It cannot answer: {failed.error_type}: {failed.message}"
        fix = "Fix what raises; `modelgauge run-sut` and `run-annotator` show each step."
        raise Problem(what, fix, failed.traceback, subject.step)
    if record.failure is not None:
        what = f"It cannot be asked: {record.failure.message}"
        raise Problem(what, "Fix what raises.", record.failure.traceback, subject.step)
    return record


def _cache_comparison(subject: Subject, made: Any, fresh: TestRecord, kept: TestRecord) -> str:
    """Describe the answer. It must be the same when it comes from the cache."""
    (answer,), (again,) = ([record.interactions for record in run.test_item_records] for run in (fresh, kept))
    counts = kept.counts.sut_calls if subject.kind == "sut" else kept.counts.annotator_calls
    unkept = " ".join(kept.notes) if kept.counts.unkept else ""  # a request with a secret in it: see secrets
    if made.why_uncacheable() is None and not unkept:
        if counts.paid:
            raise Problem("The same question was paid for twice.", "See cacheable and deterministic.")
        if answer != again:
            fix = "Let translate_response depend on request and response alone."
            raise Problem(
                "The answer looks different when it comes from the cache.", fix, "translate_response"
            )
    completion = answer[0].response.completions[0]
    reply = completion.completion.text if subject.kind == "sut" else completion.annotations.get("annotation")
    return f"{unkept} It said {reply!r:.80}.".lstrip()
