"""Rules about everything that is registered: its name, its class, how it is made, what it gives away."""

import traceback
import unicodedata
from collections.abc import Iterator
from typing import Any

from modelgauge.data.json_values import canonical_json
from modelgauge.errors import (
    DefinitionError,
    InvalidDataError,
    InvalidOptionError,
    ModelGaugeError,
    PluginError,
)
from modelgauge.plugins.registry import Registry
from modelgauge.testing.definition import takes_uid_first
from modelgauge.testing.rule import NotApplicableError, Note, problem, rule, told, warning
from modelgauge.testing.subjects import INTERFACES, CallableSubject, ObjectSubject
from modelgauge.testing.test_subject import TestSubject

_REQUESTS = "its requests"
_UNSAFE = frozenset("\\'\"`$&|;<>(){}[]*!#%^")


@rule("names", "The uid can be typed in a shell and shown anywhere: no white space, no special characters.")
def names(subject: ObjectSubject) -> Iterator[Note]:
    uid = subject.entry.uid
    unsafe = sorted(_UNSAFE & set(uid))
    fix = "Use letters, digits, '_', '-', '.' and '/'."
    if unsafe:
        yield problem(f"{uid!r} holds {' '.join(unsafe)}, which a shell takes for itself.", fix=fix)
    if uid.startswith(("-", "~", "/")) or uid.endswith("/"):
        yield problem(f"{uid!r} begins or ends with a character that has a meaning of its own.", fix=fix)
    if unicodedata.normalize("NFC", uid) != uid:
        yield problem(
            f"{uid!r} can be written in two ways.", fix="Normalize it: unicodedata.normalize('NFC', uid)."
        )


@rule("collisions", "No other installed plugin claims the uid, and it does not hide another's provider.")
def collisions(subject: ObjectSubject) -> Iterator[Note]:
    entry = subject.entry
    registry = _registry(subject)
    others = [other for other in registry if other.distribution != entry.distribution]
    for other in others:
        if other.label == entry.label:
            yield problem(
                f"{entry.label!r} is claimed by {other.distribution} as well.",
                fix=f"Choose a name that says whose it is: {_own_name(entry.distribution)}_{entry.uid}, say.",
            )
        elif not entry.is_provider and other.is_provider and entry.uid.startswith(f"{other.uid}/"):
            yield problem(
                f"{entry.uid!r} hides a model of the provider {other.label!r} of {other.distribution}.",
                fix="Choose a name without that prefix.",
            )
        elif other.label.lower() == entry.label.lower():
            yield warning(
                f"{other.distribution} has {other.label!r}, which differs in capitals only.",
                fix="Choose names that people can tell apart.",
            )


@rule("class", "The target can be imported, and is of the interface that it is registered for.")
def right_class(subject: ObjectSubject) -> Iterator[Note]:
    wanted = INTERFACES[subject.kind]
    error = subject.target.error
    if error is not None:
        if _defined_wrongly(error) is not None:
            raise NotApplicableError("see methods")
        yield _refused(error, fix="Correct the target, or what it imports.")
        return
    target = subject.target.made
    found = target if isinstance(target, type) else type(subject.attempt.made)
    if not issubclass(found, wanted) and (isinstance(target, type) or subject.attempt.error is None):
        yield problem(
            f"{found.__qualname__} is no {wanted.__name__}.",
            fix=f"Derive it from modelgauge.{wanted.__name__}, or register it by the hook of its own kind.",
        )


@rule(
    "uid",
    "The constructor's first parameter is `uid`, and the object is called by the uid that it was given.",
)
def takes_uid(subject: ObjectSubject) -> Iterator[Note]:
    target = subject.target.made
    if target is None:
        raise NotApplicableError("its class cannot be loaded")
    fix = "Write def __init__(self, uid: str, …), and call super().__init__(uid)."
    if not takes_uid_first(target):
        yield problem(f"The first parameter of {_name(target)} is not `uid`.", fix=fix)
    elif subject.resolved is not None and subject.attempt.error is None:
        uid = getattr(subject.made, "uid", None)
        if uid != subject.name:
            yield problem(f"Made as {subject.name!r}, it calls itself {uid!r}.", fix=fix)


@rule("made", "It can be made of what is registered, wherever its secrets come from.")
def can_be_made(subject: ObjectSubject) -> Iterator[Note]:
    error = subject.attempt.error
    if error is None:
        return
    if subject.target.error is not None:
        raise NotApplicableError("its class cannot be loaded")
    if not takes_uid_first(subject.target.made):
        raise NotApplicableError("see uid")
    if isinstance(error, DefinitionError) and subject.definition:
        raise NotApplicableError("see methods")
    if isinstance(error, InvalidOptionError) or (subject.is_example and not isinstance(error, PluginError)):
        raise NotApplicableError(f"it needs a better example: {told(error)}. Give one by --example NAME")
    yield _refused(error, fix="Make the constructor work with what the hook registers.")


@rule(
    "methods",
    "Every required step and every declared capability has its method, called as the engine calls it.",
)
def methods(subject: ObjectSubject) -> Iterator[Note]:
    error = subject.target.error
    definition = _defined_wrongly(error) if error is not None else None
    if definition is not None:
        yield problem(definition.problem, fix=definition.fix)
    elif error is not None or subject.interface_class is None:
        raise NotApplicableError("its class cannot be loaded, or is of another interface")
    else:
        yield from subject.definition


@rule("secrets", "No secret stands in a name, a text, an identity, a request, an item, or an error.")
def secrets_hidden(subject: ObjectSubject) -> Iterator[Note]:
    if not subject.asks_for_secrets:
        raise NotApplicableError("it asks for no secret")
    redactor = subject.canaries.redactor
    for where in dict.fromkeys(where for where, text in _texts(subject) if redactor.redact(text) != text):
        fix = "Keep the secret object itself, and read its .value only where it is sent"
        so = ""
        if where == _REQUESTS:
            so = ", so that no answer can be kept in the cache"
            method = "evaluate" if subject.kind == "sut" else "annotate"
            fix += f": add the key in `{method}`, not in a method that translates"
        yield problem(f"A secret stands in {where}{so}.", fix=f"{fix}.")


RULES = (names, collisions, right_class, takes_uid, can_be_made, methods, secrets_hidden)


# --- names and classes ----------------------------------------------------------------------------


def _registry(subject: ObjectSubject) -> Registry:
    return next(one for one in subject.plugins().registries if one.kind == subject.kind)


def _own_name(distribution: str) -> str:
    name = distribution.rpartition("/")[2].removesuffix(".py")
    return name.removeprefix("modelgauge-").removeprefix("plugin-").replace("-", "_")


def _name(target: Any) -> str:
    return getattr(target, "__qualname__", repr(target))


def _defined_wrongly(error: BaseException) -> DefinitionError | None:
    """The refusal of a class's own definition behind a failed import."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, DefinitionError):
            return cause
        cause = cause.__cause__
    return None


def _refused(error: BaseException, *, fix: str) -> Note:
    if isinstance(error, ModelGaugeError):
        return problem(error.problem, fix=error.fix)
    return problem(f"It raised {told(error)}.", fix=fix)


# --- secrets --------------------------------------------------------------------------------------


def _texts(subject: ObjectSubject) -> Iterator[tuple[str, str]]:
    """Everything that a run would show or record of it."""
    error = subject.attempt.error
    if error is not None:
        yield "the error of its constructor", "".join(traceback.format_exception(error))
        return
    made = subject.made
    yield "its repr", repr(made)
    yield "its str", str(made)
    yield "its uid", str(made.uid)
    yield "its initialization", made.initialization.model_dump_json()
    yield "its identity", canonical_json(made.identity())
    if isinstance(subject, CallableSubject):
        yield from _texts_of_requests(subject)
    elif isinstance(subject, TestSubject):
        yield from _texts_of_test(subject)


def _texts_of_requests(subject: CallableSubject) -> Iterator[tuple[str, str]]:
    for one in subject.translations:
        if one.error is not None:
            yield f"the error about {one.label}", "".join(traceback.format_exception(one.error))
            continue
        yield _REQUESTS, repr(one.request)
        try:
            yield _REQUESTS, canonical_json(one.request)
        except InvalidDataError:
            continue  # it has no key to stand in: see cacheable


def _texts_of_test(subject: TestSubject) -> Iterator[tuple[str, str]]:
    for key, data in subject.made.get_dependencies().items():
        yield f"the source of dependency {key!r}", data.source
    if subject.missing_data is None:
        for text in subject.collected.texts:
            yield "a test item", text
