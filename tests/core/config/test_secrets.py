import copy
import json
import os
import pickle
import stat
from urllib.parse import unquote

import pytest

from modelgauge.config.secrets import (
    InjectSecret,
    OptionalSecret,
    RequiredSecret,
    Secret,
    SecretDescription,
    SecretStore,
)
from modelgauge.errors import (
    DefinitionError,
    InvalidDataError,
    MissingSecretError,
    PluginError,
    SettingsError,
)

VALUE = "sk-canary-0123456789"


class AcmeKey(RequiredSecret):
    @classmethod
    def description(cls):
        return SecretDescription("acme-ai", "api_key", "See https://acme.example/keys", env=("ACME_TOKEN",))


class OtherKey(RequiredSecret):
    @classmethod
    def description(cls):
        return SecretDescription("other", "key", "Ask Olga.")


class MaybeKey(OptionalSecret):
    @classmethod
    def description(cls):
        return SecretDescription("acme-ai", "organization", "Not needed.")


def secrets_file(folder, text, mode=0o600):
    file = folder / "secrets.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file


IN_FILE = '[acme-ai]\napi_key = "from-file"\n'


def test_the_named_variable_then_the_default_one_then_the_file(tmp_path):
    file = secrets_file(tmp_path, IN_FILE)
    env = {"ACME_TOKEN": "named", "ACME_AI_API_KEY": "default"}
    assert SecretStore(env, file).get(AcmeKey).value == "named"
    del env["ACME_TOKEN"]
    assert SecretStore(env, file).get(AcmeKey).value == "default"
    assert SecretStore({}, file).get(AcmeKey).value == "from-file"


def test_the_environment_is_read_at_each_look_up(monkeypatch):
    store = SecretStore()
    monkeypatch.setenv("ACME_TOKEN", "now")
    assert store.get(AcmeKey).value == "now"


def test_empty_is_missing_and_white_space_around_a_value_is_dropped():
    assert SecretStore({"ACME_TOKEN": "  ", "ACME_AI_API_KEY": " key\n"}).get(AcmeKey).value == "key"


def test_an_optional_secret_may_be_missing(tmp_path):
    assert SecretStore({}, tmp_path / "none.toml").get(MaybeKey).value is None


def test_all_missing_secrets_are_named_at_once_with_where_to_get_them():
    wanted = [InjectSecret(AcmeKey), InjectSecret(MaybeKey), InjectSecret(OtherKey), InjectSecret(AcmeKey)]
    with pytest.raises(MissingSecretError, match=r"^2 required secrets") as caught:
        SecretStore({}).require(wanted)
    message = str(caught.value)
    for part in (
        "ACME_TOKEN",
        "ACME_AI_API_KEY",
        "[acme-ai]",
        "https://acme.example/keys",
        "OTHER_KEY",
        "Ask Olga.",
    ):
        assert part in message
    assert message.count("acme-ai.api_key") == 1
    SecretStore({"ACME_TOKEN": "x", "OTHER_KEY": "y"}).require(wanted)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_file_that_others_can_read_is_refused(tmp_path, mode):
    file = secrets_file(tmp_path, IN_FILE, mode)
    with pytest.raises(SettingsError, match=f"chmod 600 {file}$"):
        SecretStore({}, file).get(AcmeKey)
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_a_wrong_file_is_named_and_its_values_are_not_shown(tmp_path):
    with pytest.raises(SettingsError, match="line 2") as caught:
        SecretStore({}, secrets_file(tmp_path, f'[acme-ai]\napi_key = {VALUE}"\n')).get(AcmeKey)
    assert VALUE not in str(caught.value)
    with pytest.raises(SettingsError, match="not written as a text") as caught:
        SecretStore({}, secrets_file(tmp_path, "[acme-ai]\napi_key = 4711\n")).get(AcmeKey)
    assert "4711" not in str(caught.value)
    with pytest.raises(SettingsError, match="not written as a text"):
        SecretStore({}, secrets_file(tmp_path, "acme-ai = 'x'\n")).get(AcmeKey)


@pytest.mark.parametrize("show", [repr, str, "{}".format, "{!r:>60}".format, lambda s: f"{s:>50}"])
def test_no_way_to_show_a_secret_shows_it(show):
    assert VALUE not in str(show(AcmeKey(VALUE)))


def test_a_secret_is_no_json_and_no_pickle():
    secret = AcmeKey(VALUE)
    for refuse in (json.dumps, pickle.dumps):
        with pytest.raises(TypeError) as caught:
            refuse(secret)
        assert VALUE not in str(caught.value)
    assert copy.deepcopy({"key": secret})["key"].value == VALUE
    assert VALUE not in str(getattr(secret, "__dict__", {}))


def test_its_identity_is_its_name():
    assert AcmeKey("one").identity() == AcmeKey("two").identity() == {"secret": "acme-ai.api_key"}


def test_what_the_store_handed_out_is_redacted():
    store = SecretStore({"ACME_TOKEN": VALUE})
    assert store.redact(VALUE) == VALUE
    store.get(AcmeKey)
    assert store.redact(f"Bearer {VALUE}") == "Bearer [secret acme-ai.api_key]"


def test_a_secret_takes_itself_out_of_a_text():
    assert AcmeKey(VALUE).redact(f"401 for {VALUE!r}") == "401 for '[secret acme-ai.api_key]'"
    assert MaybeKey().redact("nothing") == "nothing"


def test_required_means_a_text():
    with pytest.raises(InvalidDataError, match="AcmeKey"):
        AcmeKey("")
    assert MaybeKey().value is None


def test_a_description_is_needed_and_its_names_are_plain():
    class Nameless(RequiredSecret):
        pass

    with pytest.raises(DefinitionError, match=r"no description\(\)"):
        Nameless("x").identity()
    with pytest.raises(DefinitionError, match="cannot be named"):
        SecretDescription("a b", "key", "")
    assert SecretDescription("a", "b", "", env="ONE").variables == ("ONE", "A_B")


def test_injection_takes_secrets_only():
    assert InjectSecret(AcmeKey).secret_class() is AcmeKey
    assert InjectSecret("modelgauge.config.secrets:RequiredSecret").secret_class() is RequiredSecret
    for target in ("modelgauge.config.secrets:SecretStore", "modelgauge.config.secrets:SECRETS_FILE", Secret):
        with pytest.raises(PluginError, match="not a secret"):
            InjectSecret(target).secret_class()
    with pytest.raises(PluginError, match="not a target"):
        InjectSecret("AcmeKey")


@pytest.mark.parametrize(
    "proxy",
    [
        "http://user:passw0rd@host:notaport",
        "user:passw0rd@host:80",
        "http//user:passw0rd@host",
        "http:/user:passw0rd@host",
        "htp://user:pass/w0rd@host:80",
        "socks5://passw0rd@host",
        "http://user:p%40ssw0rd!@host",
    ],
)
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "all_proxy"])
def test_the_password_of_a_proxy_is_a_secret_however_the_proxy_is_misspelt(name, proxy):
    store = SecretStore({name: proxy, "NO_PROXY": "host"})
    password = proxy.rpartition("@")[0].rpartition("user:")[2].rpartition("//")[2]
    for shown in (f"InvalidURL: {proxy}.", f"Basic of {unquote(password)}", repr({"proxy": proxy})):
        assert password not in store.redact(shown)
        assert unquote(password) not in store.redact(shown)
        assert "[secret " in store.redact(shown)


def test_a_copy_of_a_secret_is_the_secret():
    secret = AcmeKey(VALUE)
    assert copy.copy(secret) is copy.deepcopy(secret) is secret


def test_how_a_secret_shows_itself():
    secret = AcmeKey(VALUE)
    assert repr(secret) == "AcmeKey([secret acme-ai.api_key])"
    assert str(secret) == f"{secret}" == "[secret acme-ai.api_key]"
    assert f"{secret:>30}" == "      [secret acme-ai.api_key]"
    assert repr(InjectSecret(AcmeKey)) == "InjectSecret(AcmeKey)"
    assert repr(InjectSecret("acme:Key")) == "InjectSecret(acme:Key)"


@pytest.mark.parametrize(
    ("scope", "key"), [("a b", "k"), ("a", ""), ("a", "k\n"), (3, "k"), ("a", None), ("a", "é")]
)
def test_scope_and_key_are_plain_names(scope, key):
    with pytest.raises(DefinitionError, match="cannot be named"):
        SecretDescription(scope, key, "")


def test_variables_are_looked_in_in_order_each_once():
    description = SecretDescription("acme.ai", "api-key", "", env=("ONE", "ACME_AI_API_KEY", "TWO"))
    assert description.variables == ("ONE", "ACME_AI_API_KEY", "TWO")
    assert description.name == "acme.ai.api-key"


def test_one_missing_secret_is_told_with_where_it_was_looked_for(tmp_path):
    with pytest.raises(MissingSecretError) as caught:
        SecretStore({}, tmp_path / "secrets.toml").get(AcmeKey)
    head, told, fix = str(caught.value).splitlines()
    assert head == "A required secret is missing:"
    assert told.startswith(
        "  acme-ai.api_key: set ACME_TOKEN or ACME_AI_API_KEY, or write under [acme-ai] in secrets.toml: "
    )
    assert told.strip().endswith('api_key = "…". See https://acme.example/keys')
    assert (
        fix == f"Give it in the environment or in secrets.toml (looked up here: {tmp_path / 'secrets.toml'})."
    )
    with pytest.raises(MissingSecretError) as caught:
        SecretStore({}).require([InjectSecret(AcmeKey), InjectSecret(OtherKey)])
    assert str(caught.value).endswith("\nGive them in the environment or in secrets.toml.")


def test_a_file_that_cannot_be_looked_at_is_told(tmp_path):
    with pytest.raises(SettingsError, match=r"cannot be read: .*Correct its permissions"):
        SecretStore({}, tmp_path / ("x" * 300)).get(AcmeKey)
    (tmp_path / "file").touch()
    assert SecretStore({}, tmp_path / "file" / "secrets.toml").get(MaybeKey).value is None


def test_a_value_of_white_space_in_the_file_is_missing(tmp_path):
    file = secrets_file(tmp_path, '[acme-ai]\napi_key = " key "\norganization = " "\n')
    store = SecretStore({}, file)
    assert (store.get(AcmeKey).value, store.get(MaybeKey).value) == ("key", None)


def test_only_what_names_a_proxy_holds_a_password():
    store = SecretStore(
        {"PAGE": "http://user:passw0rd@host", "HTTP_PROXY": "host:8080", "PROXY_OF": "a:passw0rd@b"}
    )
    assert store.redact("passw0rd to host:8080") == "passw0rd to host:8080"
