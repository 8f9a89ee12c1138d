"""The API key: where it is looked up, and to which servers it is sent."""

from collections.abc import Mapping
from typing import Any

from modelgauge import OptionalSecret, SecretDescription
from modelgauge.errors import InvalidOptionError, MissingSecretError, SettingsError
from modelgauge_openai.address import is_official, is_on_this_machine

_DEFAULT = SecretDescription(
    scope="openai", key="api_key", instructions="Create one at https://platform.openai.com/api-keys."
)


class OpenAIKey(OptionalSecret):
    """The key that is sent as `Authorization: Bearer KEY`; servers of one's own may need none."""

    @classmethod
    def description(cls) -> SecretDescription:
        """Looked up in `OPENAI_API_KEY`, then under `[openai]` in `secrets.toml`."""
        return _DEFAULT


class FoundKey(OpenAIKey):
    """The key of a SUT that is made by its name: OpenAI's, unless the name says where another one stands."""

    @classmethod
    def chosen(cls, options: Mapping[str, Any]) -> SecretDescription:
        """`key_env` names an environment variable, `key` a secret: `groq.api_key`.

        Raises:
            InvalidOptionError: `key` is no SCOPE.NAME, or both are given.
        """
        variable, name = options.get("key_env"), options.get("key")
        if variable and name:
            raise InvalidOptionError("key_env and key both say which key is sent.", fix="Give one of them.")
        if variable:
            return SecretDescription(
                scope=_DEFAULT.scope, key=_DEFAULT.key, instructions="", env=(variable,), only_env=True
            )
        if name:
            scope, dot, key = name.rpartition(".")
            if not dot:
                raise InvalidOptionError(
                    f"key={name} names no secret.", fix="Write SCOPE.NAME: key=groq.api_key"
                )
            return SecretDescription(scope=scope, key=key, instructions="")
        return _DEFAULT


def key_to_send(
    url: str, api_key: OpenAIKey | None, *, key_env: str | None, key: str | None, send_key: bool | None
) -> tuple[OpenAIKey | None, str | None]:
    """Return the key to send, and the name of a key that was found but is not sent.

    Args:
        url: of the server.
        api_key: the key, found or given.
        key_env: the variable that the user named.
        key: the secret that the user named.
        send_key: whether the user wants it sent; None if nothing was said.

    Raises:
        MissingSecretError: a key that the user named is nowhere, or there is none for OpenAI.
        SettingsError: it cannot stand in a header.
    """
    value = (api_key.value or "").strip() if api_key is not None and send_key is not False else ""
    named = key_env or key if send_key is not False else None
    if named and not value:
        where = (
            f"the environment variable {key_env}" if key_env else FoundKey.chosen({"key": key}).variables[0]
        )
        raise MissingSecretError(
            f"The key that {'key_env' if key_env else 'key'}={named} names was found nowhere.",
            fix=f"Set {where}{'' if key_env else ', or write it into secrets.toml'}.",
        )
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise SettingsError(
            f"The key {named or _DEFAULT.name} holds characters that no HTTP header can carry.",
            fix="Copy it again, without white space and quotes.",
        )
    if not value and is_official(url):
        raise _missing_key()
    if not value:
        return None, None
    trusted = is_official(url) or is_on_this_machine(url)
    if isinstance(api_key, FoundKey) and not (named or send_key or trusted):
        return None, _DEFAULT.name
    return OpenAIKey(value), None


def _missing_key() -> MissingSecretError:
    return MissingSecretError(
        f"OpenAI answers with a key only, and {_DEFAULT.name} was found nowhere.",
        fix=(
            f"Set {' or '.join(_DEFAULT.variables)}, or write under [{_DEFAULT.scope}] in secrets.toml: "
            f'{_DEFAULT.key} = "…". {_DEFAULT.instructions} Other servers are asked by ?base_url=…'
        ),
    )
