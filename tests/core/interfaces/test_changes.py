"""Attributes that change after the constructor: settings, which change the identity, and an object's own state."""

import copy
import dataclasses
import functools
import json
import pickle
from abc import ABC, abstractmethod
from enum import Enum
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from modelgauge import FunctionSUT, PromptResponseSUT, RequiredSecret, SecretDescription
from modelgauge.data.json_values import canonical_json
from modelgauge.interfaces.watched import in_use

Kind = TypeVar("Kind")


class Level(Enum):
    low = 1
    high = 2


class Model(BaseModel):
    depth: int = 0


@dataclasses.dataclass
class Config:
    depth: int = 0


class Plain:
    def __init__(self) -> None:
        self._depth = 0

    @property
    def depth(self) -> int:
        return self._depth

    @depth.setter
    def depth(self, depth: int) -> None:
        self._depth = depth


class Client:
    def __init__(self) -> None:
        self.lock, self.timeout, self._sent = object(), 3, 0


class Holder:
    def __init__(self, **held: Any) -> None:
        self.lock = object()
        self.__dict__.update(held)


class App(PromptResponseSUT[str, str]):
    MODEL = "a"
    PROMPTS: ClassVar[dict[str, str]] = {"system": "Be brief."}

    def __init__(self, uid: str = "app", temperature: float = 0.0, config: Any = None) -> None:
        super().__init__(uid)
        self.temperature, self.config = temperature, config
        self.nested: dict[str, Any] = {"list": [1, {"k": 2}], 3: "a key that is no text"}
        self.model, self.dataclass, self.plain = Model(), Config(), Plain()
        self.space, self.path, self.level = SimpleNamespace(k=1), Path("a"), Level.low
        self.client, self.function = Client(), len
        self.pipeline = Holder(model=Holder(depth=0), options={"depth": 0, "lock": object()})
        self.limits = {"seconds": float("inf"), "depth": 0}
        self.calls, self.history = 0, []

    @cached_property
    def tokenizer(self) -> object:
        return object()

    def evaluate(self, request: str) -> str:
        self.calls += 1
        self.history.append(request)
        return request


class Key(RequiredSecret):
    @classmethod
    def description(cls) -> SecretDescription:
        return SecretDescription("acme", "key", "Ask acme.")


def identity(sut: PromptResponseSUT) -> str:
    return canonical_json(sut.identity())


CHANGES = {
    "an attribute": lambda sut: setattr(sut, "temperature", 0.7),
    "a new attribute": lambda sut: setattr(sut, "top_p", 0.7),
    "a dict in place": lambda sut: sut.config.update(k=2),
    "a list in a dict": lambda sut: sut.nested["list"][1].update(k=3),
    "a dict with other keys": lambda sut: sut.nested.update({3: "b"}),
    "a model": lambda sut: setattr(sut.model, "depth", 1),
    "a dataclass": lambda sut: setattr(sut.dataclass, "depth", 1),
    "a property of a plain object": lambda sut: setattr(sut.plain, "depth", 1),
    "a namespace": lambda sut: setattr(sut.space, "k", 2),
    "a path": lambda sut: setattr(sut, "path", Path("b")),
    "an enum": lambda sut: setattr(sut, "level", Level.high),
    "an attribute of a client": lambda sut: setattr(sut.client, "timeout", 4),
    "an attribute of a client in a client": lambda sut: setattr(sut.pipeline.model, "depth", 1),
    "a dict in a client": lambda sut: sut.pipeline.options.update(depth=1),
    "a dict with an infinity": lambda sut: sut.limits.update(seconds=1.0),
    "a constant on the object": lambda sut: setattr(sut, "MODEL", "b"),
    "an attribute that is gone": lambda sut: delattr(sut, "temperature"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_json_that_changed_is_part_of_the_identity(change):
    sut, same = App(config={"k": 1}), App(config={"k": 1})
    before = identity(sut)
    change(sut)
    assert identity(sut) != before
    assert sut.why_uncacheable() is None
    assert len(sut.initialization.settings) == 1
    assert (identity(same), same.initialization.settings) == (before, {})


@pytest.mark.parametrize(
    "change",
    [
        lambda sut: setattr(sut, "client", Client()),
        lambda sut: setattr(sut, "function", lambda text: text),
        lambda sut: setattr(sut, "post", object()),
        lambda sut: setattr(sut, "temperature", object()),
        lambda sut: sut.nested["list"].append(object()),
        lambda sut: setattr(sut, "temperature", float("nan")),
        lambda sut: setattr(sut.pipeline, "model", Holder(depth=0)),
        lambda sut: setattr(sut.pipeline, "lock", len),
    ],
)
def test_change_without_json_makes_object_uncacheable(change):
    sut = App()
    change(sut)
    assert "has changed since it was made" in str(sut.why_uncacheable())
    assert len(sut.initialization.opaque) == 1


@pytest.mark.parametrize("name", ["MODEL", "PROMPTS"])
def test_reassigned_constant_of_class_counts_for_earlier_and_later_objects(monkeypatch, name):
    earlier = App()
    before = identity(earlier)
    monkeypatch.setattr(App, name, {"system": "Be kind."})
    later = App()
    assert identity(earlier) == identity(later) != before
    monkeypatch.undo()
    assert identity(earlier) == before


def test_constant_of_class_edited_in_place_counts(monkeypatch):
    sut = App()
    before = identity(sut)
    monkeypatch.setitem(App.PROMPTS, "system", "Be kind.")
    assert identity(sut) != before


def test_setting_that_is_back_has_its_old_identity():
    sut = App()
    before = identity(sut)
    sut.temperature = 0.7
    sut.temperature = 0.0
    assert identity(sut) == before


# --- what is no change --------------------------------------------------------------------------------------


def test_methods_interface_attributes_and_computed_attributes_are_no_settings():
    sut = App()
    before = identity(sut)
    sut.max_concurrency, sut.split_reasoning, sut.batch_size = 3, False, 7
    sut.evaluate = lambda request: request
    assert sut.tokenizer is not None
    assert sut.client.lock is not None
    assert (identity(sut), sut.why_uncacheable()) == (before, None)


def test_excluded_attributes_are_no_settings():
    class Verbose(App):
        identity_excludes = frozenset({"verbose"})

    sut = Verbose()
    before = identity(sut)
    sut.verbose = True
    assert identity(sut) == before


def test_secret_counts_by_its_name():
    sut = App()
    sut.config = Key("sesame-open")
    one = identity(sut)
    sut.config = Key("another-one")
    assert identity(sut) == one
    assert "sesame" not in one


@pytest.mark.parametrize(
    "change", [lambda sut: setattr(sut, "api_key", "hunter2"), lambda sut: sut.config.update(token="hunter2")]
)
def test_value_that_may_be_a_password_is_recorded_as_a_digest(change):
    sut = App(config={})
    before = identity(sut)
    change(sut)
    assert identity(sut) != before
    assert "hunter2" not in json.dumps(sut.initialization.model_dump())


def test_long_value_is_recorded_as_a_digest():
    sut = App()
    sut.temperature = "long" * 1000
    assert [*sut.initialization.settings["temperature"]] == ["$sha256"]


# --- the state of an object ---------------------------------------------------------------------------------


def test_attribute_that_changes_during_a_run_is_state():
    sut = App(config=None)
    before = identity(sut)
    for _ in range(3):
        with in_use([sut]):
            sut.evaluate("a question")
            sut.config = Client()  # as `open` does
            assert identity(sut) == before
        assert (identity(sut), sut.why_uncacheable()) == (before, None)


def test_setting_that_a_run_adapts_counts_as_it_was_set():
    sut = App()
    sut.temperature = 0.7
    set_by_hand = identity(sut)
    with in_use([sut]):
        sut.temperature = 0.9
    assert identity(sut) == set_by_hand
    sut.temperature = 0.5
    assert sut.initialization.settings == {"temperature": 0.5}


def test_overlapping_runs_share_what_the_first_began_with():
    sut = App()
    before = identity(sut)
    with in_use([sut]):
        sut.evaluate("one")
        with in_use([sut, sut]):
            assert identity(sut) == before
        sut.evaluate("two")
        assert identity(sut) == before
    assert identity(sut) == before


def test_state_of_a_class_is_shared_by_its_objects():
    class Parent(PromptResponseSUT[str, str]):
        calls, client = 0, None
        cache: ClassVar[dict[str, str]] = {}

        def evaluate(self, request: str) -> str:
            Parent.calls += 1
            Parent.client = Parent.client or Client()
            self.cache[str(self.calls)] = request
            return request

    class Child(Parent):
        pass

    earlier, before = Child("one"), {cls: identity(cls("one")) for cls in (Parent, Child)}
    for cls in (Parent, Child, Parent):
        sut = cls("one")
        with in_use([sut]):
            sut.evaluate("a question")
    for sut in (earlier, Parent("one"), Child("one")):
        assert (identity(sut), sut.why_uncacheable()) == (before[type(sut)], None)
    Parent.calls = 100
    assert Child("one").initialization.settings == {"calls": 100}


class Sharing(PromptResponseSUT[str, str]):
    def __init__(self, uid: str, client: Any, handler: Any = None) -> None:
        super().__init__(uid)
        self.client, self.handler = client, handler

    def evaluate(self, request: str) -> str:
        self.client.sent += 1
        self.handler = sorted
        return request


def test_state_of_a_client_is_shared_by_those_who_hold_it():
    client = Holder(sent=0, timeout=3)
    one, other = Sharing("one", client), Sharing("one", client)
    before = identity(one)
    for sut in (one, other, one, Sharing("one", client), other):
        with in_use([sut]):
            assert identity(sut) == before
            sut.evaluate("a question")
    client.timeout = 4
    assert identity(one) == identity(other) != before


def test_object_that_a_run_set_is_a_change_where_a_user_sets_it():
    one, other = Sharing("one", Holder(sent=0)), Sharing("other", Holder(sent=0))
    with in_use([one]):
        one.evaluate("a question")
    other.handler = one.handler
    assert other.initialization.opaque == ("client", "handler")


def test_client_that_each_run_opens_anew_is_state():
    sut = App()
    before = identity(sut)
    for _ in range(3):
        with in_use([sut]):
            sut.client, sut.pipeline.model = Client(), Holder(depth=0)
        assert (identity(sut), sut.why_uncacheable()) == (before, None)


def test_attribute_that_a_run_computes_is_no_setting():
    sut = App()
    before = identity(sut)
    for _ in range(2):
        with in_use([sut]):
            assert sut.tokenizer is not None
        assert (identity(sut), sut.why_uncacheable()) == (before, None)


@pytest.mark.parametrize("kind", [SimpleNamespace, dataclasses.make_dataclass("Node", ["depth", "peers"])])
def test_objects_that_hold_each_other_are_read_once_each(kind):
    nodes = [kind(depth=0, peers=None) for _ in range(20)]
    for node in nodes:
        node.peers = nodes
    sut = App(config=nodes)
    before = identity(sut)
    nodes[13].depth = 1
    assert identity(sut) != before


class Counting(PromptResponseSUT[str, str]):
    def __init__(self, uid: str = "counting") -> None:
        super().__init__(uid)
        self.setting = self.state = 0


@given(st.lists(st.tuples(st.none() | st.integers(0, 2), st.integers(1, 2)), max_size=8))
def test_identity_depends_on_settings_alone(runs):
    """A run begins with a setting, or with the one before, and changes the state."""
    sut, setting = Counting(), 0
    for chosen, growth in runs:
        if chosen is not None:
            sut.setting = setting = chosen
        with in_use([sut]):
            fresh = Counting()
            fresh.setting = setting
            assert identity(sut) == identity(fresh)
            sut.state += growth


@given(st.lists(st.sampled_from(sorted(CHANGES)), max_size=5))
def test_equal_changes_give_equal_identities(names):
    def changed() -> str:
        sut = App(config={"k": 1})
        for name in dict.fromkeys(names):
            CHANGES[name](sut)
        return identity(sut)

    assert changed() == changed()
    assert (changed() == identity(App(config={"k": 1}))) == (not names)


# --- other constructors, copies, circles ------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Frozen(PromptResponseSUT[str, str]):
    uid: str
    words: list[str] = dataclasses.field(default_factory=list)
    made: list[str] = dataclasses.field(init=False, default_factory=list)


@dataclasses.dataclass(slots=True)
class Slotted(PromptResponseSUT[str, str]):
    uid: str
    words: list[str] = dataclasses.field(default_factory=list)


class Mixin:
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.words: list[str] = []


class Mixed(Mixin, PromptResponseSUT[str, str]):
    pass


class Below(Mixed):
    def __init__(self, uid: str) -> None:
        super().__init__(uid)
        self.more: list[str] = []


@pytest.mark.parametrize("kind", [Frozen, Slotted, Mixed, Below])
def test_settings_are_noted_when_the_whole_constructor_has_ended(kind):
    sut = kind("one")
    assert sut.initialization.settings == {}
    sut.words.append("new")
    assert sut.initialization.settings == {"words": ["new"]}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda sut: pickle.loads(pickle.dumps(sut))])
def test_copy_is_compared_with_its_original_constructor(copied):
    sut = App(config={"k": 1})
    with in_use([sut]):
        sut.calls += 1
    twin = copied(sut)
    assert (identity(twin), twin.why_uncacheable()) == (identity(sut), None)
    twin.temperature = 0.7
    assert identity(twin) != identity(sut)


def test_nested_sut_counts_by_its_own_settings():
    inner = App("inner")
    outer = App("outer", config=inner)
    before = identity(outer)
    inner.temperature = 0.7
    assert identity(outer) != before
    inner.temperature = 0.0
    assert identity(outer) == before


@pytest.mark.parametrize("held", [lambda sut: sut, lambda sut: [sut], lambda sut: {"one": sut}])
def test_what_a_run_does_to_a_nested_sut_is_its_state(held):
    inner = App("inner")
    outer = App("outer", config=held(inner))
    before = identity(outer), identity(inner)
    with in_use([outer]):
        inner.evaluate("a question")
    assert (identity(App("outer", config=held(inner))), identity(inner)) == before


def test_parameter_of_a_generic_class_is_no_setting():
    class Typed(App, Generic[Kind]):
        pass

    sut = Typed[int]("one")
    assert (sut.initialization.settings, sut.why_uncacheable()) == ({}, None)


def test_objects_that_hold_each_other_can_be_compared():
    one, other = App("one"), App("other")
    one.config, other.config = other, one
    one.nested["self"] = one.nested
    assert identity(one) == identity(one)


def test_object_that_cannot_be_read_is_told_apart_from_others():
    class Hostile:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

    sut = App()
    sut.config = Hostile()
    assert sut.initialization.opaque == ("config",)


# --- functions ----------------------------------------------------------------------------------------------


class Bot:
    def __init__(self) -> None:
        self.temperature, self.asked, self.lock = 0.0, 0, object()

    def answer(self, text: str, loud: bool = False) -> str:
        self.asked += 1
        return f"{text} {self.temperature} {loud}"

    def __call__(self, text: str) -> str:
        return self.answer(text)


def test_arguments_of_partial_are_part_of_the_identity():
    def made(*args: Any, **kwargs: Any) -> FunctionSUT:
        return FunctionSUT("bot", functools.partial(Bot().answer, *args, **kwargs), version=1)

    identities = {identity(made(loud=loud)) for loud in (True, False)} | {identity(made("a"))}
    assert len(identities) == 3
    assert identity(made(loud=True)) == identity(made(loud=True))
    assert made(loud=True).initialization.settings == {"function_arguments": [[], {"loud": True}]}
    inner = functools.partial(Bot().answer, loud=True)
    assert identity(FunctionSUT("bot", functools.partial(inner), version=1)) == identity(made(loud=True))


def test_partial_with_argument_without_json_is_uncacheable():
    sut = FunctionSUT("bot", functools.partial(Bot().answer, loud=object()), version=1)
    assert "arguments that have no exact JSON: loud" in str(sut.why_uncacheable())
    assert FunctionSUT("bot", functools.partial(map, str.upper), version=1).why_uncacheable() is None


@pytest.mark.parametrize("function_of", [lambda bot: bot.answer, lambda bot: bot, functools.partial])
def test_object_behind_a_function_counts_once_it_changed(function_of):
    bot = Bot()
    sut = FunctionSUT("bot", function_of(bot), version=1)
    before = identity(sut)
    with in_use([sut]):
        sut.evaluate("a question")
    assert (identity(sut), sut.why_uncacheable()) == (before, None)
    bot.temperature = 0.7
    assert sut.initialization.settings["function.temperature"] == 0.7
    assert identity(sut) != before


def test_state_of_the_object_behind_two_functions_is_shared():
    bot = Bot()
    one, other = (FunctionSUT("bot", function, version=1) for function in (bot.answer, bot))
    before = identity(one), identity(other)
    for sut in (one, other, one):
        with in_use([sut]):
            sut.evaluate("a question")
        assert (identity(one), identity(other)) == before
    bot.temperature = 0.7
    assert one.initialization.settings == other.initialization.settings == {"function.temperature": 0.7}


def test_key_of_plain_function_is_as_it_was():
    made = FunctionSUT("shout", str.upper, version=1)
    assert (
        identity(made)
        == '{"made":["shout","modelgauge.suts.function:FunctionSUT",1,{"version":1}],"with":{}}'
    )


def test_sut_of_an_abstract_class_that_nobody_changed_is_cacheable():
    class Base(App, ABC):
        @abstractmethod
        def name_model(self): ...

    class Concrete(Base):
        def name_model(self):
            return "model"

    assert Concrete("a").why_uncacheable() is None
    assert Concrete("a").initialization.settings == {}
