"""Each broken SUT or annotator is caught by its rule, and by no other; the sound ones by none."""

import pytest

from modelgauge.testing import Status

SOURCE = """
import itertools

from pydantic import BaseModel

from modelgauge import (
    ChatPrompt, CompletionAnnotator, InjectSecret, ProducesPerTokenLogProbabilities,
    ProducesStructuredOutput, PromptResponseSUT,
    RequiredSecret, SecretDescription, SUTCapability, SUTCompletion, SUTResponse, hookimpl,
)
from modelgauge.errors import InvalidDataError


class Key(RequiredSecret):
    @classmethod
    def description(cls):
        return SecretDescription("kit", "api_key", "Made up.")


class Sound(PromptResponseSUT[str, str]):
    def translate_text_prompt(self, prompt): return prompt.text
    def evaluate(self, request) -> str: return "Yes"
    def translate_response(self, request, response): return SUTResponse(completions=[SUTCompletion(response)])


class WithEverything(Sound):
    capabilities = (ProducesPerTokenLogProbabilities,)

    def __init__(self, uid, key, model="small", *stop, **extra):
        super().__init__(uid)
        self.key = key

    def translate_text_prompt(self, prompt):
        return {"text": prompt.text, "top_logprobs": prompt.options.top_logprobs}

    def translate_chat_prompt(self, prompt): return [[one.role.value, one.text] for one in prompt.messages]


class Choosy(Sound):
    def translate_text_prompt(self, prompt):
        if not prompt.text:
            raise InvalidDataError("There is nothing to ask.", fix="Write a prompt.")
        return prompt.text


class NotASUT:
    def __init__(self, uid): self.uid = uid


class OtherFirst(Sound):
    def __init__(self, name, uid="x"): super().__init__(name)


class Renamed(Sound):
    def __init__(self, uid):
        super().__init__(uid)
        self.uid = "somebody"


class Unmakeable(Sound):
    def __init__(self, uid):
        super().__init__(uid)
        raise ValueError("no luck today")


class Mute(PromptResponseSUT[str, str]):
    def translate_text_prompt(self, prompt): return prompt.text
    def evaluate(self, request) -> str: return "Yes"


class AsyncTranslation(Sound):
    async def translate_text_prompt(self, prompt): return prompt.text


class WrongArity(Sound):
    def translate_response(self, response): return SUTResponse(completions=[SUTCompletion(response)])


class CanDance(SUTCapability):
    methods = ("dance",)


class Dancing(Sound):
    def dance(self): return 1


class NoDancer(Sound): pass
NoDancer.capabilities = (CanDance,)


class KeyInRequest(Sound):
    def __init__(self, uid, key):
        super().__init__(uid)
        self.key = key
    def translate_text_prompt(self, prompt): return {"text": prompt.text, "key": "Bearer " + self.key.value}


class KeyInRepr(KeyInRequest):
    def translate_text_prompt(self, prompt): return prompt.text
    def __repr__(self): return f"Client({self.key.value})"


class KeyInError(KeyInRequest):
    def translate_text_prompt(self, prompt):
        if not prompt.text:
            raise InvalidDataError(f"{self.key.value} may not ask this.", fix="Ask another thing.")
        return prompt.text


class KeyInIdentity(KeyInRequest):
    def __init__(self, uid, key):
        super().__init__(uid, key)
        self.cache_version = key.value.upper()
    def translate_text_prompt(self, prompt): return prompt.text


class FirstWord(Sound):
    def translate_text_prompt(self, prompt): return prompt.text.split()[0] + prompt.text


class LiveRequest(Sound):
    def translate_text_prompt(self, prompt): return {"prompt": prompt.text, "on_token": object()}


class LiveArgument(Sound):
    def __init__(self, uid, client=None): super().__init__(uid)


class Uncacheable(Sound):
    cacheable = False


counter = itertools.count()


class Counting(Sound):
    def translate_text_prompt(self, prompt): return f"{next(counter)} {prompt.text}"


class Individual(Sound):
    def __init__(self, uid):
        super().__init__(uid)
        self.cache_version = next(counter)


class SharedRequest(Sound):
    def __init__(self, uid):
        super().__init__(uid)
        self.request = {}
    def translate_text_prompt(self, prompt):
        self.request["text"] = prompt.text
        return self.request


class Forgetful(Sound):
    def translate_text_prompt(self, prompt): return "Hello."


class NoLogprobs(Sound):
    capabilities = (ProducesPerTokenLogProbabilities,)


class NoSchema(Sound):
    capabilities = (ProducesStructuredOutput,)


class Handle: pass


class LiveResponse(Sound):
    def evaluate(self, request) -> Handle: return Handle()


class Failing(Sound):
    def evaluate(self, request) -> str: raise ValueError("quota is used up")


class Moody(Sound):
    def translate_response(self, request, response):
        return SUTResponse(completions=[SUTCompletion(f"{response} {next(counter)}")])


class SoundAnnotator(CompletionAnnotator):
    def translate_request(self, prompt, completion): return completion.text
    def annotate(self, request) -> bool: return request.startswith("Y")
    def translate_response(self, request, response): return {"starts": response}


class LiveAnnotatorRequest(SoundAnnotator):
    def translate_request(self, prompt, completion): return {"said": {completion.text: object()}}


class InexactAnnotation(SoundAnnotator):
    def translate_response(self, request, response): return {"starts": (response,)}


class NoTranslation(CompletionAnnotator):
    def translate_request(self, prompt, completion): return completion.text
    def annotate(self, request) -> bool: return True


@hookimpl
def modelgauge_register_suts(register):
    key = InjectSecret(Key)
    register("sound", Sound)
    register("with_everything", WithEverything, key, stop="now")
    register("choosy", Choosy)
    register("bad*name", Sound)
    register("-dashed", Sound)
    register("taken", Sound)
    register("acme/best", Sound)
    register("missing", "no_such_module:Nope")
    register("not_a_sut", NotASUT)
    register("other_first", OtherFirst)
    register("renamed", Renamed)
    register("unmakeable", Unmakeable)
    register("undefined", "undefined_capability:Undefined")
    register("mute", Mute)
    register("async_translation", AsyncTranslation)
    register("wrong_arity", WrongArity)
    register("no_dancer", NoDancer)
    register("key_in_request", KeyInRequest, key)
    register("key_in_repr", KeyInRepr, key)
    register("key_in_error", KeyInError, key)
    register("key_in_identity", KeyInIdentity, key)
    register("first_word", FirstWord)
    register("live_request", LiveRequest)
    register("live_argument", LiveArgument, client=object())
    register("uncacheable", Uncacheable)
    register("counting", Counting)
    register("individual", Individual)
    register("shared_request", SharedRequest)
    register("forgetful", Forgetful)
    register("no_logprobs", NoLogprobs)
    register("no_schema", NoSchema)
    register("live_response", LiveResponse)
    register("failing", Failing)
    register("moody", Moody)
    register.provider("house", WithEverything, key=key)


@hookimpl
def modelgauge_register_annotators(register):
    register("sound_annotator", SoundAnnotator)
    register("live_annotator_request", LiveAnnotatorRequest)
    register("inexact_annotation", InexactAnnotation)
    register("no_translation", NoTranslation)
"""

UNDEFINED = """
from modelgauge import ProducesPerTokenLogProbabilities, PromptResponseSUT, SUTCapability

class CanSing(SUTCapability):
    methods = ("sing",)

class Undefined(PromptResponseSUT):
    capabilities = (CanSing,)
"""

NEIGHBOUR = """
from modelgauge import FunctionSUT, hookimpl

@hookimpl
def modelgauge_register_suts(register):
    register("taken", FunctionSUT, str.upper)
    register("SOUND", FunctionSUT, str.upper)
    register.provider("acme", FunctionSUT, function=str.upper)
"""

BROKEN = {
    "bad*name": ("names", "Use letters"),
    "-dashed": ("names", "Use letters"),
    "taken": ("collisions", "Choose a name"),
    "acme/best": ("collisions", "without that prefix"),
    "missing": ("class", "no_such_module"),
    "not_a_sut": ("class", "PromptResponseSUT"),
    "other_first": ("uid", "super().__init__(uid)"),
    "renamed": ("uid", "super().__init__(uid)"),
    "unmakeable": ("made", "no luck today"),
    "undefined": ("methods", "CanSing"),
    "mute": ("methods", "def translate_response"),
    "async_translation": ("methods", "plain def"),
    "wrong_arity": ("methods", "def translate_response(self, request, response)"),
    "no_dancer": ("methods", "dance"),
    "key_in_request": ("secrets", ".value only where it is sent: add the key in `evaluate`"),
    "key_in_repr": ("secrets", "its repr"),
    "key_in_error": ("secrets", "an empty text prompt"),
    "key_in_identity": ("secrets", "its identity"),
    "first_word": ("requests", "IndexError"),
    "live_request": ("cacheable", "of a plain text prompt"),
    "live_argument": ("cacheable", "identity_excludes"),
    "counting": ("deterministic", "no counter"),
    "individual": ("deterministic", "cache_version"),
    "shared_request": ("deterministic", "new request each time"),
    "forgetful": ("distinct", "Put the prompt into the request"),
    "no_logprobs": ("distinct", "top_logprobs"),
    "no_schema": ("distinct", "response_schema"),
    "live_response": ("responses", "Handle"),
    "failing": ("calls", "quota is used up"),
    "moody": ("calls", "looks different"),
    "live_annotator_request": ("cacheable", "has no key"),
    "inexact_annotation": ("calls", "tuple"),
    "no_translation": ("methods", "def translate_response(self, request, response)"),
}
SOUND = ["sound", "with_everything", "choosy", "uncacheable", "house/example-model", "sound_annotator"]


@pytest.fixture(scope="module")
def checked(check_source, tmp_path_factory):
    neighbour = tmp_path_factory.mktemp("neighbour") / "neighbour.py"
    neighbour.write_text(NEIGHBOUR, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KIT_API_KEY", "the-real-key-of-the-environment")
        beside = {"undefined_capability.py": UNDEFINED}
        return check_source(SOURCE, beside=beside, local=[str(neighbour)], call=True)


def test_sound_objects_keep_every_promise(checked):
    assert checked.broken_among(SOUND) == {}


def test_each_broken_object_is_caught_by_exactly_its_rule(checked):
    assert checked.broken_among(BROKEN) == {uid: {rule} for uid, (rule, _) in BROKEN.items()}


def test_the_finding_says_what_and_how_to_mend_it(checked):
    assert checked.untold(BROKEN) == []


def test_every_rule_about_callables_has_a_broken_example(checked):
    rules = {finding.rule for finding in checked.report.findings if finding.kind in ("sut", "annotator")}
    assert rules == {rule for rule, _ in BROKEN.values()}


def test_names_that_differ_in_capitals_only_are_a_warning(checked):
    assert "SOUND" in checked.only("sound", "collisions", Status.warning).message


def test_rules_that_do_not_apply_say_why(checked):
    assert "cacheable = False" in checked.only("uncacheable", "cacheable", Status.not_applicable).message
    assert checked.only("sound", "secrets", Status.not_applicable).message == "it asks for no secret"


def test_options_that_change_a_request_are_told(checked):
    assert (
        checked.only("with_everything", "distinct", Status.ok).message
        == "Options that it heeds: top_logprobs."
    )


def test_what_was_answered_for_real_is_told(checked):
    assert "'Yes'" in checked.only("sound", "calls", Status.ok).message


def test_provider_is_asked_for_named_models_only(checked, check_source, monkeypatch):
    skipped = checked.only("house/example-model", "calls", Status.not_applicable).message
    assert skipped == "the provider is asked for a model that you name: --example house/MODEL"
    monkeypatch.setenv("KIT_API_KEY", "the-real-key-of-the-environment")
    beside = {"undefined_capability.py": UNDEFINED}
    named = check_source(SOURCE, beside=beside, examples=["house/small"], call=True)
    assert "'Yes'" in named.only("house/small", "calls", Status.ok).message


def test_a_key_in_every_request_is_named_once(checked):
    assert "no answer can be kept" in checked.only("key_in_request", "secrets").message


def test_real_secrets_stand_nowhere_in_the_report(checked):
    assert "the-real-key" not in str(checked.report)
