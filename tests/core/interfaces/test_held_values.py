"""Changes within what an object holds: values of the standard library, arrays, and constants of held classes."""

import array
import collections
import dataclasses
import functools
import types
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge import PromptResponseSUT
from modelgauge.data.json_values import canonical_json
from modelgauge.interfaces.held_values import value_of
from modelgauge.interfaces.identity import identified_json
from modelgauge.interfaces.watched import in_use


class Words(dict[str, int]):
    pass


class Text(str):  # noqa: SLOT000  attributes are the point
    pass


class Pair(NamedTuple):
    items: list[int]


@dataclasses.dataclass
class Depth:
    depth: int = 0

    @functools.cached_property
    def doubled(self) -> int:
        return self.depth * 2


def holding(held: Any) -> Any:
    """Return a SUT that keeps an object, which is no argument of its constructor."""

    class App(PromptResponseSUT[str, str]):
        def __init__(self, uid: str = "app") -> None:
            super().__init__(uid)
            self.parts = held

        def evaluate(self, request: str) -> str:
            return request

    return App()


def identity(sut: Any) -> str:
    return canonical_json(sut.identity())


def function_made() -> Callable[..., Any]:
    def answer(text: str = "", *, options: Any = (1,)) -> Any:
        return text, options

    return answer


def class_made() -> Any:
    return type("Settings", (type("Base", (), {"depth": 0}),), {"limit": 1, "names": ["a"]})


def object_made() -> Any:
    return class_made()()


def set_to(name: str, value: Any) -> Callable[[Any], object]:
    return lambda held: setattr(held, name, value)


shared = {"k": 1}

CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "deque": (lambda: collections.deque([1]), lambda held: held.append(2)),
    "deque beside a lock": (lambda: collections.deque([1, object()]), lambda held: held.append(2)),
    "empty deque in a list": (lambda: [collections.deque()], lambda held: held[0].append(2)),
    "array": (lambda: array.array("i", [1]), lambda held: held.append(2)),
    "view of a mapping": (lambda: types.MappingProxyType(shared), lambda _: shared.update(k=shared["k"] + 1)),
    "chain map": (lambda: collections.ChainMap({"k": 1}), lambda held: held.update(k=2)),
    "counter": (lambda: collections.Counter("a"), lambda held: held.update("a")),
    "default dict": (lambda: collections.defaultdict(list), lambda held: held["k"].append(1)),
    "ordered dict": (lambda: collections.OrderedDict({1: 1}), lambda held: held.update({1: 2})),
    "attribute of a dict": (lambda: Words(k=1), set_to("limit", 2)),
    "attribute of a text": (lambda: Text("a"), set_to("limit", 2)),
    "further attribute of a dataclass": (Depth, set_to("limit", 2)),
    "arguments of an exception": (lambda: ValueError("a"), set_to("args", ("b",))),
    "bytearray": (lambda: bytearray(b"a"), lambda held: held.extend(b"b")),
    "memory": (lambda: memoryview(bytearray(b"a")), lambda held: held.__setitem__(0, 98)),
    "numbers": (lambda: np.zeros(9999), lambda held: held.__setitem__(5000, 1)),
    "every second number": (lambda: np.zeros((4, 4))[:, ::2], lambda held: held.__setitem__((0, 1), 1)),
    "array of objects": (lambda: np.array([[1], 2], dtype=object), lambda held: held[0].append(2)),
    "array of dates": (lambda: np.zeros(2, "M8[s]"), lambda held: held.__setitem__(0, 5)),
    "constant of a class": (class_made, set_to("limit", 2)),
    "list of a class": (class_made, lambda held: held.names.append("b")),
    "constant of a base": (class_made, lambda held: setattr(held.__bases__[0], "depth", 2)),
    "constant of an object's class": (object_made, lambda held: setattr(type(held), "limit", 2)),
    "defaults of a function": (function_made, set_to("__defaults__", ("a",))),
    "defaults by name": (function_made, set_to("__kwdefaults__", {"options": 2})),
    "attribute of a function": (lambda: {"f": function_made()}, lambda held: setattr(held["f"], "limit", 3)),
    "value of an enum": (lambda: Enum("E", {"a": [1]})["a"], lambda held: held.value.append(2)),
    "named tuple": (lambda: Pair([1]), lambda held: held.items.append(2)),
    "partial": (lambda: [functools.partial(max, [1])], lambda held: held[0].args[0].append(2)),
    "slice": (lambda: slice([1], 2), lambda held: held.start.append(2)),
}


@pytest.mark.parametrize(("make", "change"), CHANGES.values(), ids=CHANGES)
def test_edit_in_place_is_part_of_the_identity(make, change):
    held = make()
    sut = holding(held)
    before = identity(sut)
    assert (identity(sut), sut.why_uncacheable(), sut.initialization.settings) == (before, None, {})
    change(held)
    assert identity(sut) != before
    assert sut.initialization.settings


@pytest.mark.parametrize("make", [lambda: range(3), lambda: slice(3), lambda: np.zeros(2), lambda: 1j])
def test_equal_values_count_as_equal(make):
    sut = holding(make())
    before = identity(sut)
    sut.parts = make()
    assert identity(sut) == before
    sut.parts = range(4)
    assert identity(sut) != before


def test_class_that_was_held_for_a_while_leaves_no_setting():
    first = class_made()
    sut = holding(first)
    before = identity(sut)
    sut.parts = class_made()
    assert sut.initialization.opaque == ("parts",)
    sut.parts = first
    assert (identity(sut), sut.initialization.opaque) == (before, ())


def test_constant_changed_before_a_second_object_counts_for_both():
    settings = class_made()
    earlier = holding(settings)
    before = identity(earlier)
    settings.limit = 2
    assert identity(holding(settings)) == identity(earlier) != before


def test_counter_of_a_held_class_is_state_for_all_that_hold_it():
    client = class_made()
    one, other, opening = holding(client()), holding(client()), holding(None)
    before = identity(one)
    for sut in (one, other, opening, opening, one):
        with in_use([sut]):
            assert identity(sut) == before
            client.limit += 1
            opening.parts = client()
        assert identity(sut) == before
    assert identity(holding(client())) == before
    client.depth = 7
    assert identity(one) == identity(other) != before


def test_property_that_was_computed_is_no_setting():
    held = Depth()
    sut = holding(held)
    before = identity(sut)
    assert held.doubled == 0
    assert identity(sut) == before


def test_pickling_methods_of_authors_are_not_called():
    class Queue(collections.deque[int]):
        def __reduce__(self) -> Any:
            raise AssertionError

    sut = holding(Queue([1]))
    before = identity(sut)
    assert identity(sut) == before
    sut.parts = Queue([1])
    assert sut.initialization.opaque == ("parts",)


LIST = [1]
PARTS = st.sampled_from(
    [None, True, False, 0, 1, 0.0, -0.0, 1.0, float("nan"), "", "1", "1" * 2000, Text("1")]
)
PLACES = st.sampled_from([None, (Depth, "a"), (Depth, "b"), (Pair, "a"), (1, "a")])


@given(
    st.one_of(PARTS, st.lists(PARTS), st.lists(PARTS).map(tuple), st.tuples(st.just(LIST))),
    st.one_of(PARTS, st.lists(PARTS), st.lists(PARTS).map(tuple), st.tuples(st.just(LIST))),
    PLACES,
    PLACES,
)
def test_earlier_value_saves_no_reading_that_would_give_another(now, earlier, place, earlier_place):
    for source in (earlier, now):
        before = value_of(source, identified_json, earlier_place)
        again = value_of(now, identified_json, place, before)
        fresh = value_of(now, identified_json, place)
        assert (again.text, again.objects, again.place) == (fresh.text, fresh.objects, fresh.place)


def test_list_that_a_tuple_holds_is_read_again():
    held: list[int] = [1]
    before = value_of((held,), identified_json)
    held.append(2)
    assert value_of((held,), identified_json, before=before).text == '{"$tuple":[[1,2]]}'
