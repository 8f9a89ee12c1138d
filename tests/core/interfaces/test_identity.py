"""Who an object is: what of its making stands in cache keys and records."""

import copy
import dataclasses
import functools
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest
from pydantic import BaseModel, SecretStr

from modelgauge.config.secrets import OptionalSecret, RequiredSecret, SecretDescription
from modelgauge.data.json_values import canonical_json
from modelgauge.errors import ArgumentError, DefinitionError
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.interfaces.identity import Identified, Initialization, identity_name, list_secrets
from modelgauge.interfaces.sut import PromptResponseSUT


class Thing(Identified):
    def __init__(self, uid: str, size: int = 1, *words: str, color: Any = "red", **more: Any) -> None:
        super().__init__(uid)
        self.given = (size, words, color, more)


class Plain(Identified):
    pass


class ApiKey(RequiredSecret):
    @classmethod
    def description(cls) -> SecretDescription:
        return SecretDescription("acme", "key", "Ask acme.")


class Config(BaseModel):
    depth: int
    token: SecretStr | None = None


def identity(made: Identified) -> str:
    return canonical_json(made.identity())


# --- what is captured ------------------------------------------------------------------------------------


def test_an_object_is_shown_by_its_name():
    assert repr(Plain("one")) == "<Plain 'one'>"


def test_position_and_keyword_are_one():
    assert identity(Thing("a", 2, color="blue")) == identity(Thing(color="blue", size=2, uid="a"))


def test_defaults_are_not_applied():
    assert Thing("a").initialization.arguments == {}
    assert identity(Thing("a")) != identity(Thing("a", 1))


def test_all_kinds_of_arguments_have_their_names():
    made = Thing("a", 2, "x", "y", color=None, extra={"k": [1]})
    assert made.initialization.arguments == {
        "size": 2,
        "words": ["x", "y"],
        "color": None,
        "extra": {"k": [1]},
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, "1"),
        (1, 1.0),
        (1, True),
        ((1,), [1]),
        ({"$tuple": [1]}, (1,)),
        (None, "None"),
        (Config(depth=1), {"depth": 1}),
    ],
)
def test_arguments_of_other_types_are_others(one, other):
    assert identity(Thing("a", color=one)) != identity(Thing("a", color=other))


def test_the_uid_the_class_and_the_version_count():
    class Other(Thing):
        pass

    class Newer(Thing):
        cache_identity = identity_name(Thing)
        cache_version = 1

    identities = {identity(made) for made in (Thing("a"), Thing("b"), Other("a"), Newer("a"))}
    assert len(identities) == 4


def test_arguments_are_frozen_when_the_object_is_made():
    words = ["x"]
    made = Thing("a", color={"words": words})
    before = identity(made)
    words.append("y")
    assert identity(made) == before
    assert made.given[2] == {"words": ["x", "y"]}


def test_arguments_are_captured_before_the_author_changes_them():
    class Greedy(Identified):
        def __init__(self, uid: str, words: list[str]) -> None:
            words.clear()
            super().__init__(uid)

    assert Greedy("a", ["x"]).initialization.arguments == {"words": ["x"]}


def test_an_author_may_forget_to_call_super():
    class Forgetful(Identified):
        def __init__(self, uid: str, size: int) -> None:
            self.size = size

    made = Forgetful("a", size=3)
    assert made.uid == "a"
    assert made.initialization.arguments == {"size": 3}


def test_models_and_tuples_are_recorded_by_their_content():
    made = Thing("a", color=Config(depth=3), words=("x",))
    assert made.why_uncacheable() is None
    assert '"depth":3' in identity(made)


# --- secrets ---------------------------------------------------------------------------------------------


def test_a_secret_is_known_by_its_name_only():
    one, other = Thing("a", color=ApiKey("sesame-open")), Thing("a", color=ApiKey("other-value"))
    assert identity(one) == identity(other)
    assert one.initialization.arguments == {"color": {"$secret": "acme.key"}}
    assert one.why_uncacheable() is None


@pytest.mark.parametrize(
    "wrapped", [lambda one: [one], lambda one: {"k": one}, lambda one: (one,), lambda one: one]
)
def test_the_value_of_a_secret_stands_nowhere(wrapped):
    made = Thing("a", color=wrapped(ApiKey("sesame-open")))
    for text in (identity(made), made.initialization.model_dump_json(), repr(made.initialization)):
        assert "sesame" not in text
        assert "acme.key" in text


def test_a_secret_without_value_has_the_same_identity():
    class MaybeKey(OptionalSecret):
        description = ApiKey.description

    assert identity(Thing("a", color=MaybeKey(None))) == identity(Thing("a", color=MaybeKey("sesame-open")))


def test_a_secret_of_pydantic_makes_an_object_uncacheable():
    made = Thing("a", color=Config(depth=1, token=SecretStr("sesame-open")))
    assert "sesame" not in made.initialization.model_dump_json()
    assert "color" in (made.why_uncacheable() or "")


# --- other objects and opaque arguments ------------------------------------------------------------------


def test_nested_objects_count_by_their_identity():
    inner, other = Thing("b", 1), Thing("b", 2)
    assert identity(Thing("a", color=inner)) == identity(Thing("a", color=Thing("b", 1)))
    assert identity(Thing("a", color=inner)) != identity(Thing("a", color=other))
    assert identity(Thing("a", color=[inner])) != identity(Thing("a", color=[other]))


@pytest.mark.parametrize(
    "opaque", [lambda: 1, object(), {1: 2}, float("nan"), "\ud800", {"deep": [object()]}]
)
def test_an_argument_without_exact_json_makes_an_object_uncacheable(opaque):
    made = Thing("a", color=opaque)
    why = made.why_uncacheable() or ""
    assert "'a'" in why
    assert "color" in why
    assert Initialization.model_validate_json(made.initialization.model_dump_json()) == made.initialization
    outer = Thing("b", size=2, color=made)
    assert "color" in (outer.why_uncacheable() or "")


def test_a_circular_argument_makes_an_object_uncacheable():
    circle: list[Any] = []
    circle.append(circle)
    assert Thing("a", color=circle).why_uncacheable() is not None


def test_an_object_can_say_that_it_is_not_cacheable():
    class Random(Thing):
        cacheable = False

    assert "not cacheable" in (Random("a").why_uncacheable() or "")
    assert "color" in (Thing("b", color=Random("a")).why_uncacheable() or "")


def test_excluded_arguments_do_not_count_but_are_recorded():
    class Quiet(Thing):
        identity_excludes = frozenset({"color"})

    one, other = Quiet("a", color=print), Quiet("a", color="x")
    assert identity(one) == identity(other)
    assert one.why_uncacheable() is None
    assert one.initialization.arguments == {"color": {"$opaque": "builtins:print"}}


def test_the_identity_of_a_judge_holds_those_that_it_asks():
    judge = Plain("judge")
    asking_one, asking_other = judge.identity({"j": Thing("a")}), judge.identity({"j": Thing("b")})
    assert canonical_json(asking_one) != canonical_json(asking_other)
    assert judge.why_uncacheable({"j": Thing("a")}) is None
    assert "color" in (judge.why_uncacheable({"j": Thing("a", color=object())}) or "")


# --- classes ---------------------------------------------------------------------------------------------


def test_a_class_is_named_by_module_and_qualname():
    assert identity_name(Thing) == f"{__name__}:Thing"


def test_cache_identity_stands_for_the_name_and_is_not_inherited():
    class Moved(Thing):
        cache_identity = "old.module:Thing"

    class Heir(Moved):
        pass

    assert Moved("a").initialization.class_name == "old.module:Thing"
    assert Heir("a").initialization.class_name.endswith(
        ":test_cache_identity_stands_for_the_name_and_is_not_inherited.<locals>.Heir"
    )


def test_a_class_of_a_plugin_file_is_named_by_its_path():
    local = type("Local", (Thing,), {"__module__": "/plugins/mine.py"})
    assert identity_name(local) == "/plugins/mine.py:Local"


SCRIPT = """
from modelgauge.interfaces.identity import Identified, identity_name
class Mine(Identified): pass
print(identity_name(Mine))
"""


def test_a_class_of_a_script_is_named_by_the_path_of_the_script(tmp_path: Path):
    names = []
    for folder in ("one", "two"):
        script = tmp_path / folder / "script.py"
        script.parent.mkdir()
        script.write_text(SCRIPT, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "script.py"], cwd=script.parent, capture_output=True, text=True, check=True
        )
        names.append(done.stdout.strip())
        assert names[-1] == f"{script.resolve()}:Mine"
    assert names[0] != names[1]


def test_a_class_of_a_prompt_is_named_by_the_working_directory(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"{tmp_path.resolve() / '<interactive>'}:Mine"


T = TypeVar("T")


class Box(Thing, Generic[T]):
    pass


class Mixin:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.mixed = True


class Mixed(Mixin, Box[int]):
    pass


def test_generic_classes_mixins_and_handed_on_arguments():
    made = Mixed("a", 2, color="blue")
    assert made.mixed
    assert made.uid == "a"
    assert made.given[0] == 2
    assert Mixed(uid="a", color="blue").initialization.arguments == {"color": "blue"}
    assert identity(Mixed("a", 2)) != identity(Mixed("a", 3)) != identity(Mixed("a"))
    assert identity(Mixed("a", color="blue")) == identity(Mixed(uid="a", color="blue"))
    assert Box[int]("a").initialization.class_name == f"{__name__}:Box"


@dataclasses.dataclass
class Data(Identified):
    uid: str
    size: int = 1


@dataclasses.dataclass(frozen=True)
class FrozenData(Identified):
    uid: str
    size: int = 1


@pytest.mark.parametrize("cls", [Data, FrozenData])
def test_a_dataclass_is_captured_too(cls):
    made = cls("a", size=2)
    assert (made.uid, made.size) == ("a", 2)
    assert made.initialization.arguments == {"size": 2}


class Named(Identified):
    def __init__(self, uid: str = "named") -> None:
        super().__init__(uid)


@pytest.mark.parametrize("made", [Thing("a", 2, "x", color=[1]), Data("a", 2), Named(), Named("other")])
def test_copies_and_pickles_are_who_the_original_is(made):
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert again is not made
        assert again.uid == made.uid
        assert again.initialization == made.initialization
        assert again.why_uncacheable() is None


def test_an_uncaptured_object_is_uncacheable():
    class Own(Identified):
        def __new__(cls, uid: str, size: int):
            return super().__new__(cls)

        def __init__(self, uid: str, size: int) -> None:
            super().__init__(uid)

    made = Own("a", 2)
    assert "__new__" in (made.why_uncacheable() or "")
    assert list_secrets(made) == []


# --- definitions that break the contract ------------------------------------------------------------------


class NoUid(Identified):
    def __init__(self) -> None:
        super().__init__("fixed")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Thing(5), "uid 5"),
        (lambda: Thing(""), "uid ''"),
        (lambda: Thing(None), "uid None"),
        (lambda: Thing(["x" * 1_000_000]), "…1,000,000 characters…"),
        (lambda: Mixed(color=1), "uid None"),
        (NoUid, "takes no uid"),
        (lambda: CompletionAnnotator("a"), "translate_request, annotate, translate_response"),
    ],
)
def test_broken_definitions_are_explained(make, said):
    with pytest.raises(DefinitionError) as caught:
        make()
    assert said in caught.value.problem
    assert caught.value.fix


class Sized(Plain):
    def __init__(self, uid: str, size: int = 1, **more: Any) -> None:
        super().__init__(uid, **more)


class OfOneSize(Sized):
    def __init__(self, uid: str) -> None:
        super().__init__(uid, size=1)


@pytest.mark.parametrize(
    ("make", "problem", "fix"),
    [
        (lambda: Plain("a", 1), "too many positional arguments", "The arguments are: uid."),
        (lambda: Plain("a", size=1), "there is no argument 'size'", "The arguments are: uid."),
        (lambda: OfOneSize("a", size=2), "there is no argument 'size'", "The arguments are: uid."),
        (lambda: Plain(uld="a"), "there is no argument 'uld'", "Did you mean 'uid'? The arguments are: uid."),
        (lambda: Thing(size=2), "missing a required argument: 'uid'", "The arguments are: uid, size, color."),
        (
            lambda: Sized(siez=2),
            "there is no argument 'siez'",
            "Did you mean 'size'? The arguments are: uid, size.",
        ),
    ],
)
def test_arguments_that_do_not_exist_are_named_beside_those_that_do(make, problem, fix):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert isinstance(caught.value, TypeError)
    assert caught.value.problem.endswith(f"{problem}.")
    assert caught.value.fix == fix


def test_a_constructor_whose_signature_is_not_true_takes_what_it_takes():
    def lenient(init: Any) -> Any:
        @functools.wraps(init)
        def taking(self: Any, uid: str, **_: Any) -> None:
            init(self, uid)

        return taking

    class Decorated(Plain):
        @lenient
        def __init__(self, uid: str) -> None:
            super().__init__(uid)

    made = Decorated("a", size=1)
    assert made.uid == "a"
    assert "not known" in (made.why_uncacheable() or "")


def test_no_arguments_at_all_are_pythons_own_error():
    with pytest.raises(TypeError, match="uid"):
        Plain()


def test_constructors_see_all_arguments():
    made = Thing("a", 2, "x", color=3, extra=4)
    assert made.given == (2, ("x",), 3, {"extra": 4})


def test_suts_and_annotators_are_identified():
    assert issubclass(PromptResponseSUT, Identified)
    assert issubclass(CompletionAnnotator, Identified)


class PositionalOnly(Identified):
    def __init__(self, uid: str, model: str, /, **more: Any) -> None:
        super().__init__(uid)


def test_arguments_that_share_a_name_with_a_parameter_hide_none():
    made = [Thing("t", 1, word, words="kept") for word in ("a", "b")]
    assert made[0].identity() != made[1].identity()
    assert made[0].initialization.arguments == {"size": 1, "words": ["a"], "**words": "kept"}
    made = [PositionalOnly("p", model, model="large") for model in ("small", "tiny")]
    assert made[0].identity() != made[1].identity()
    assert made[0].initialization.arguments == {"model": "small", "**model": "large"}


def test_a_uid_among_other_arguments_is_found_beside_one_of_their_name():
    class Handing(Identified):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args)

    made = Handing("h", args=3)
    assert (made.uid, made.initialization.arguments) == ("h", {"**args": 3})
