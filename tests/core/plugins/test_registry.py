import re
import sys
from typing import TYPE_CHECKING

import pytest

from modelgauge.config.secrets import (
    InjectSecret,
    OptionalSecret,
    RequiredSecret,
    SecretDescription,
    SecretStore,
)
from modelgauge.errors import (
    DefinitionError,
    InvalidOptionError,
    MissingSecretError,
    NameCollisionError,
    PluginError,
    UnknownNameError,
)
from modelgauge.interfaces.identity import Identified
from modelgauge.plugins.registry import Register, Registry

if TYPE_CHECKING:
    from nowhere import Unknown


class Key(RequiredSecret):
    @classmethod
    def description(cls):
        return SecretDescription("acme", "api_key", "Ask Acme.")


class Captured:
    """Has a `__new__` that takes anything, as the interfaces have: it must not hide `__init__`."""

    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)


class SUT(Captured):
    def __init__(self, uid, temperature: float = 0.0, stop: "list[str] | None" = None, retries=3, loud=False):
        self.uid, self.temperature, self.stop, self.retries, self.loud = uid, temperature, stop, retries, loud


class API(Captured):
    def __init__(self, uid, model, api_key: Key, base_url: str = "https://acme.example"):
        self.uid, self.model, self.api_key, self.base_url = uid, model, api_key, base_url


class Child(SUT):
    def __init__(self, uid, *, depth: int = 1, **kwargs):
        super().__init__(uid, **kwargs)
        self.depth = depth


class Anything:
    def __init__(self, uid, **kwargs):
        self.uid, self.kwargs = uid, kwargs


class Path:
    def __init__(self, uid, model: str, prompt: str = "prompt"):
        self.uid, self.model, self.prompt = uid, model, prompt


class Needy:
    def __init__(self, uid, path: str, size: int):
        self.uid = uid


class Unresolved:
    def __init__(self, uid, strange: "Unknown" = None, fine: int = 0):
        self.uid, self.fine = uid, fine


class Broken:
    def __init__(self, uid, fault: str = "value"):
        raise {"value": ValueError, "exit": SystemExit, "ours": lambda m: DefinitionError(m, fix="Mend.")}[
            fault
        ]("no luck")


class Made(Identified):
    def __init__(self, uid: str, size: int = 1) -> None:
        super().__init__(uid)


def registry(*registrations, distribution="my-plugin", kind="sut", into=None):
    """A registry of what these functions register."""
    made = Registry(kind) if into is None else into
    for registration in registrations:
        register = Register(kind, distribution)
        registration(register)
        made.add(register.entries)
    return made


STORE = SecretStore({"ACME_API_KEY": "key-canary"})


# --- registering ----------------------------------------------------------------------------------


@pytest.mark.parametrize("uid", ["", "a b", "a?b", 3])
def test_a_bad_uid_is_refused(uid):
    with pytest.raises(PluginError, match="cannot be registered"):
        Register("sut", "d")(uid, SUT)


def test_a_provider_has_no_slash():
    with pytest.raises(PluginError, match="no '/'"):
        Register("sut", "d").provider("a/b", API)


def test_what_the_name_says_cannot_be_fixed():
    with pytest.raises(PluginError, match="cannot fix 'uid'"):
        Register("sut", "d")("x", SUT, uid="y")
    with pytest.raises(PluginError, match="cannot fix 'model'"):
        Register("sut", "d").provider("x", API, model="y")


def test_one_distribution_cannot_register_a_uid_twice():
    register = Register("sut", "d")
    register("x", SUT)
    with pytest.raises(PluginError, match="SUT 'x' is registered twice"):
        register("x", SUT)
    register.provider("x", API)  # another name: x/…
    with pytest.raises(PluginError, match="provider 'x' is registered twice"):
        register.provider("x", API)


def test_nor_can_two_plugins_of_it_and_then_nothing_is_added():
    made = registry(lambda register: register("x", SUT))
    second = Register("sut", "my-plugin")
    second("y", SUT)
    second("x", SUT)
    with pytest.raises(PluginError, match="another plugin of my-plugin"):
        made.add(second.entries)
    assert made.uids == ["x"]


# --- listing --------------------------------------------------------------------------------------


def test_listing_is_sorted_and_imports_no_target(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "lazy_target_module.py").write_text(
        "class S:\n    def __init__(self, uid): pass\n", encoding="utf-8"
    )
    made = registry(
        lambda register: (
            register("z", "lazy_target_module:S"),
            register.provider("m", "lazy_target_module:S"),
            register("a", SUT),
        )
    )
    assert made.uids == ["a", "z"]
    assert made.providers == ["m"]
    assert [entry.label for entry in made] == ["a", "m/…", "z"]
    assert [entry.target_name for entry in made][::2] == [f"{__name__}:SUT", "lazy_target_module:S"]
    assert len(made) == 3
    made.resolve("z")
    assert "lazy_target_module" not in sys.modules
    made.make("z")
    assert sys.modules.pop("lazy_target_module")


def test_a_claim_of_two_distributions_is_an_error_only_when_asked_for():
    made = registry(lambda register: (register("x", SUT), register("mine", SUT)), distribution="one")
    registry(lambda register: (register("x", SUT), register("yours", SUT)), distribution="two", into=made)
    assert made.uids == ["mine", "x", "yours"]
    assert made.conflicts == {"x": ["one", "two"]}
    assert "x" in made
    assert made.make("mine").uid == "mine"
    with pytest.raises(NameCollisionError, match=r"'x' is claimed by one and by two.*pip uninstall two"):
        made.make("x?temperature=1")


def test_a_file_that_claims_a_name_too_is_no_package():
    made = registry(lambda register: register("x", SUT), distribution="one")
    registry(lambda register: register("x", SUT), distribution=__file__, into=made)
    with pytest.raises(NameCollisionError, match=r"Rename yours, or leave out its --plugin\.$"):
        made.make("x")


def test_two_providers_of_one_prefix_collide_but_a_uid_and_a_provider_do_not():
    made = registry(lambda register: register.provider("acme", Path), distribution="one")
    registry(lambda register: register("acme", SUT), distribution="two", into=made)
    assert not made.conflicts
    registry(lambda register: register.provider("acme", Path), distribution="three", into=made)
    with pytest.raises(NameCollisionError, match="'acme/…' is claimed by one and by three"):
        made.make("acme/x")


# --- names ----------------------------------------------------------------------------------------


def test_an_exact_uid_comes_before_a_provider():
    made = registry(lambda register: (register("acme/small", SUT), register.provider("acme", Path)))
    assert isinstance(made.make("acme/small"), SUT)
    assert made.make("acme/large").model == "large"


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("replay/data/a.jsonl", "data/a.jsonl"),
        ("replay//tmp/x.jsonl", "/tmp/x.jsonl"),
        ("replay/100%25.jsonl?prompt=q", "100%25.jsonl"),
        (r"replay/C:\x.csv", r"C:\x.csv"),
    ],
)
def test_the_model_is_all_behind_the_first_slash_as_written(name, model):
    made = registry(lambda register: register.provider("replay", Path)).make(name)
    assert made.model == model
    assert made.uid == name


def test_unknown_names_suggest_uids_and_providers():
    made = registry(lambda register: (register("my_sut", SUT), register.provider("openai", Path)))
    with pytest.raises(UnknownNameError, match=r"no SUT 'my_stu'.*Did you mean 'my_sut'.*list-suts"):
        made.make("my_stu?temperature=1")
    with pytest.raises(UnknownNameError, match="Did you mean 'openai/gpt-4o'"):
        made.make("openia/gpt-4o")
    with pytest.raises(UnknownNameError, match=r"write PROVIDER/gpt-4o; the providers are: openai\."):
        made.make("gpt-4o")
    assert "openai/gpt-4o" in made
    assert "nothing" not in made


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (
            "sut",
            "./my.py",
            "Load the file with --plugin ./my.py, and name a SUT in it. `modelgauge list-suts`",
        ),
        (
            "test",
            "my.py",
            "Load the file with --plugin my.py, and name a test in it. `modelgauge list-tests`",
        ),
        (
            "test",
            "goldens.jsonl",
            "A file of goldens is a test by --dataset goldens.jsonl. `modelgauge list-tests`",
        ),
        ("sut", "goldens.csv", "write PROVIDER/goldens.csv"),
    ],
)
def test_a_file_in_the_place_of_a_name_is_told_its_option(kind, name, said):
    with pytest.raises(UnknownNameError, match=re.escape(said)):
        registry(lambda register: register.provider("openai", Path), kind=kind).make(name)


@pytest.mark.parametrize("name", ["acme", "acme/"])
def test_a_provider_needs_a_model(name):
    made = registry(lambda register: register.provider("acme", Path))
    assert name not in made
    with pytest.raises(UnknownNameError, match="Write acme/MODEL"):
        made.make(name)


def test_an_installed_plugin_is_not_suggested():
    made = registry(
        lambda register: register("bbh_snarks", SUT),
        kind="test",
        distribution="modelgauge-plugin-standard-tests",
    )
    with pytest.raises(UnknownNameError, match="Did you mean 'bbh_snarks'") as caught:
        made.make("bbh_snark")
    assert "pip install" not in str(caught.value)


def test_plugins_that_failed_are_mentioned():
    failed = []
    made = Registry("metric", failed)
    failed.append("my_broken")
    with pytest.raises(UnknownNameError, match="could not be loaded: my_broken"):
        made.make("x")


# --- making ---------------------------------------------------------------------------------------


def test_registered_arguments_come_after_the_uid():
    made = registry(lambda register: register("x", SUT, 0.5, ["a"], loud=True)).make("x")
    assert (made.uid, made.temperature, made.stop, made.loud) == ("x", 0.5, ["a"], True)


def test_options_override_registered_arguments_by_position_and_by_name():
    made = registry(lambda register: register("x", SUT, 0.5, loud=True)).make(
        "x?temperature=1&loud=no&stop=a,b%2Cc"
    )
    assert (made.temperature, made.loud, made.stop) == (1.0, False, ["a", "b,c"])


def test_the_uid_has_its_options_sorted_and_in_one_spelling():
    made = registry(lambda register: register("x", SUT))
    uid = made.make("x?temperature=1&stop=%61,b%20c&retries=2").uid
    assert uid == "x?retries=2&stop=a,b%20c&temperature=1"
    assert made.make(uid).uid == uid


def test_without_a_hint_the_default_tells_the_type():
    assert registry(lambda register: register("x", SUT)).make("x?retries=7").retries == 7


def test_a_child_that_hands_keywords_on_takes_its_parents_options():
    made = registry(lambda register: register("x", Child))
    child = made.make("x?depth=2&temperature=0.5")
    assert (child.depth, child.temperature) == (2, 0.5)
    with pytest.raises(InvalidOptionError, match=r"no option 'temprature'.*Did you mean 'temperature'"):
        made.make("x?temprature=1")


def test_open_keywords_take_any_option_as_text():
    assert registry(lambda register: register("x", Anything)).make("x?a=1").kwargs == {"a": "1"}


def test_unknown_options_list_the_known():
    made = registry(lambda register: register.provider("acme", API, api_key=InjectSecret(Key)))
    with pytest.raises(InvalidOptionError, match=r"no option 'nothing'. Known: base_url \(a text\)\.$"):
        made.make("acme/m?nothing=1", secrets=STORE)
    with pytest.raises(InvalidOptionError, match=r"retries \(a whole number\), loud \(true or false\)"):
        registry(lambda register: register("x", SUT)).make("x?nothing=1")


def test_word_of_another_tool_names_our_option():
    class Translated(SUT):
        meant_by = {"patience": "retries"}  # noqa: RUF012

    made = registry(lambda register: register("sut", Translated))
    with pytest.raises(InvalidOptionError, match=r"'patience' is called 'retries' here\. Write retries="):
        made.make("sut?patience=3")


def test_a_value_that_does_not_convert_names_option_and_type():
    with pytest.raises(InvalidOptionError, match=r"option 'temperature' cannot be 'very hot'. Give a number"):
        registry(lambda register: register("x", SUT)).make("x?temperature=very%20hot")


@pytest.mark.parametrize("option", ["uid=y", "model=y"])
def test_uid_and_a_providers_model_are_no_options(option):
    with pytest.raises(InvalidOptionError, match="cannot be an option"):
        registry(lambda register: register.provider("acme", Path)).make(f"acme/m?{option}")


def test_model_is_an_option_where_no_provider_says_it():
    assert registry(lambda register: register("x", Path, model="a")).make("x?model=b").model == "b"


def test_options_that_are_needed_are_named():
    made = registry(lambda register: register("x", Needy))
    with pytest.raises(
        InvalidOptionError, match=r"needs path \(a text\), size \(a whole number\). Write x\?path=…&size=…"
    ):
        made.make("x")
    assert made.make("x?path=a&size=3").uid == "x?path=a&size=3"


def test_a_hint_that_cannot_be_resolved_spoils_its_own_option_only():
    made = registry(lambda register: register("x", Unresolved))
    assert made.make("x?fine=3").fine == 3
    with pytest.raises(InvalidOptionError, match="type of option 'strange' cannot be told: NameError"):
        made.make("x?strange=1")


@pytest.mark.parametrize(
    ("fault", "cause"), [("value", "ValueError: no luck"), ("exit", "SystemExit: no luck")]
)
def test_a_constructor_that_raises_is_the_plugins_error(fault, cause):
    with pytest.raises(PluginError, match=rf"'x' \(from my-plugin\) cannot be made: {cause}"):
        registry(lambda register: register("x", Broken, fault=fault)).make("x")


def test_arguments_that_a_plugin_registers_wrongly_are_the_plugins_error():
    with pytest.raises(
        PluginError, match=r"cannot be made: ArgumentError: Made: there is no argument 'siez'"
    ):
        registry(lambda register: register("x", Made, siez=1)).make("x")


def test_our_own_errors_pass_as_they_are():
    with pytest.raises(DefinitionError, match="no luck"):
        registry(lambda register: register("x", Broken, fault="ours")).make("x")


def test_functions_can_be_targets_and_other_objects_cannot():
    def factory(uid, size: int = 1):
        return (uid, size)

    assert registry(lambda register: register("x", factory)).make("x?size=2") == ("x?size=2", 2)
    with pytest.raises(PluginError, match=r"modelgauge.config.settings:PREFIX is not a class"):
        registry(lambda register: register("x", "modelgauge.config.settings:PREFIX")).make("x")


# --- secrets --------------------------------------------------------------------------------------


def test_a_secret_is_injected():
    made = registry(lambda register: register.provider("acme", API, api_key=InjectSecret(Key)))
    sut = made.make("acme/m?base_url=http://localhost:1/v1", secrets=STORE)
    assert sut.api_key.value == "key-canary"
    assert sut.uid == "acme/m?base_url=http://localhost:1/v1"
    with pytest.raises(MissingSecretError, match="ACME_API_KEY"):
        made.make("acme/m", secrets=SecretStore({}))


class OtherKey(RequiredSecret):
    @classmethod
    def description(cls):
        return SecretDescription("acme", "other_key", "Ask Acme.")


def test_all_secrets_that_an_object_lacks_are_named_at_once():
    secrets = {"api_key": InjectSecret(Key), "other_key": InjectSecret(OtherKey)}
    made = registry(lambda register: register("x", Anything, **secrets))
    with pytest.raises(MissingSecretError, match="ACME_API_KEY") as missing:
        made.make("x", secrets=SecretStore({}))
    assert "ACME_OTHER_KEY" in str(missing.value)


def test_the_secrets_of_an_entry_are_known_before_it_is_made():
    injection = InjectSecret(Key)
    resolved = registry(lambda register: register("x", API, "m", injection)).resolve("x")
    assert resolved.entry.injections == [injection]
    with pytest.raises(MissingSecretError):
        SecretStore({}).require(resolved.entry.injections)


@pytest.mark.parametrize(
    "registration",
    [
        lambda register: register("x", API, model="m", api_key=InjectSecret(Key)),
        lambda register: register("x", API, "m", InjectSecret(Key)),
        lambda register: register("x", API, "m", Key("fixed")),
        lambda register: register("x", Anything, api_key=InjectSecret(Key)),
    ],
)
def test_an_option_never_overrides_a_secret(registration):
    with pytest.raises(InvalidOptionError, match="'api_key' is a secret"):
        registry(registration).make("x?api_key=stolen", secrets=STORE)


def test_a_secret_that_is_not_registered_is_the_plugins_error():
    with pytest.raises(PluginError, match="api_key=InjectSecret"):
        registry(lambda register: register("x", API, "m")).make("x")


def test_an_optional_secrets_hint_is_seen_through():
    class Maybe(OptionalSecret):
        pass

    class WithMaybe:
        def __init__(self, uid, token: "Maybe | None" = None):
            self.uid = uid

    WithMaybe.__init__.__annotations__["token"] = Maybe | None
    with pytest.raises(InvalidOptionError, match="'token' is a secret"):
        registry(lambda register: register("x", WithMaybe)).make("x?token=1")


def test_the_message_of_a_constructor_does_not_show_its_secret():
    class Leaky:
        def __init__(self, uid, key: Key):
            raise ValueError(f"bad key {key.value}")

    with pytest.raises(PluginError) as caught:
        registry(lambda register: register("x", Leaky, InjectSecret(Key))).make("x", secrets=STORE)
    assert "key-canary" not in str(caught.value)


def test_a_function_that_takes_any_keywords_takes_any_option():
    def factory(uid, size: int = 1, **more):
        return (uid, size, more)

    made = registry(lambda register: register("x", factory))
    assert made.make("x?size=2&a=1") == ("x?a=1&size=2", 2, {"a": "1"})
    assert made.make("x") == ("x", 1, {})


# --- named servers --------------------------------------------------------------------------------


class Chat(Identified):
    options_in_uid = ("server",)
    identity_excludes = frozenset({"server"})

    def __init__(
        self, uid: str, model: str, url: str = "https://acme.example", omit: tuple[str, ...] = ()
    ) -> None:
        super().__init__(uid)
        self.model, self.url, self.omit = model, url, omit


ACME = {"eu": {"url": "https://eu.acme.example", "omit": ("seed",)}}


def chat_registry(tables=None):
    made = registry(lambda register: register.provider("acme", Chat, servers=ACME))
    if tables is not None:
        made.add_servers("acme", tables)
    return made


def test_a_server_is_named_and_other_options_override_its_own():
    made = chat_registry().make("acme/m?server=eu&omit=stop")
    assert (made.uid, made.model) == ("acme/m?omit=stop&server=eu", "m")
    assert (made.url, made.omit) == ("https://eu.acme.example", ("stop",))


def test_the_identity_holds_where_the_server_is_not_how_it_is_called():
    mine, theirs = (chat_registry({"x": {"url": url}}) for url in ("https://a.example", "https://b.example"))
    assert mine.make("acme/m?server=x").identity() != theirs.make("acme/m?server=x").identity()
    assert mine.make("x/m").identity() != theirs.make("x/m").identity()
    other = chat_registry({"y": {"url": "https://a.example"}})
    assert mine.make("acme/m?server=x").identity() == other.make("acme/m?server=y").identity()


def test_a_server_of_the_user_is_a_name_of_its_own_too():
    made = chat_registry({"mine": {"url": "http://localhost:1", "omit": ["seed", "stop"]}})
    assert made.providers == ["acme", "mine"]
    for name in ("mine/m", "acme/m?server=mine"):
        sut = made.make(name)
        assert (sut.model, sut.url, sut.omit) == ("m", "http://localhost:1", ("seed", "stop"))
    assert chat_registry({"eu": {"url": "http://mine"}}).make("acme/m?server=eu").url == "http://mine"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("acme/m?server=bat", r"no server 'bat'.*Did you mean 'bad'.*\[acme.servers.bat\]"),
        ("bad/m", r"'bad/m' \(from \[acme.servers.bad\] of modelgauge.toml\) has no option 'ulr'"),
        ("worse/m", "option 'omit' cannot be {'seed': 1}"),
    ],
)
def test_a_server_that_is_wrong_is_told_when_it_is_asked_for(name, problem):
    made = chat_registry({"bad": {"ulr": "x"}, "worse": {"omit": {"seed": 1}}})
    assert made.make("acme/m").model == "m"
    with pytest.raises(InvalidOptionError, match=problem):
        made.make(name)


def test_a_server_that_is_called_like_a_plugin_names_both():
    made = chat_registry({"other": {}})
    registry(lambda register: register.provider("other", API), distribution="other-plugin", into=made)
    table = r"\[acme.servers.other\] of modelgauge.toml"
    with pytest.raises(NameCollisionError, match=rf"{table} and by other-plugin.*Rename the table {table}"):
        made.make("other/m")
    assert made.conflicts == {"other/…": ["[acme.servers.other] of modelgauge.toml", "other-plugin"]}


@pytest.mark.parametrize(("provider", "name"), [("acne", "x"), ("acme", "a/b"), ("acme", "a b")])
def test_servers_of_no_provider_or_without_a_good_name(provider, name):
    with pytest.raises(PluginError, match=r"Did you mean 'acme'|names no server"):
        chat_registry().add_servers(provider, {name: {}})
