"""Secrets: how plugins declare them, where they are looked up, and one error that names all missing secrets.

A plugin writes a subclass of `RequiredSecret` or `OptionalSecret` and registers `InjectSecret` of it; the
constructor receives an instance and reads `.value`. Taking values out of texts is in `redaction.py`.
"""

import os
import re
import shlex
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar
from urllib.parse import unquote

from modelgauge.config.import_by_name import check_target, import_target
from modelgauge.config.redaction import Redactor
from modelgauge.config.settings import SECRETS_FILE, read_toml
from modelgauge.errors import (
    DefinitionError,
    InvalidDataError,
    MissingSecretError,
    PluginError,
    SettingsError,
)

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_BEFORE_USER = re.compile(r"^[A-Za-z0-9+.-]*:?/+")  # the scheme of a URL, misspelt ones too


@dataclass(frozen=True, slots=True)
class SecretDescription:
    """Location of a secret, and instructions for getting it.

    Args:
        scope: whose secret it is, a provider or a plugin: the table in `secrets.toml`.
        key: its name there.
        instructions: where to get the secret, a sentence or a URL.
        env: environment variables to look in first, in order; one may be given as a plain text.
        only_env: whether it is looked for in `env` alone.
    """

    scope: str
    key: str
    instructions: str
    env: tuple[str, ...] = ()
    only_env: bool = False

    def __post_init__(self) -> None:
        for part in (self.scope, self.key):
            if not isinstance(part, str) or not _NAME.fullmatch(part):
                raise DefinitionError(
                    f"A secret cannot be named {self.scope!r}, {self.key!r}.",
                    fix="Write scope and key with letters, digits, '_', '-' and '.' only.",
                )
        written: object = self.env
        object.__setattr__(self, "env", (written,) if isinstance(written, str) else tuple(self.env))

    @property
    def name(self) -> str:
        """`scope.key`: the name of the secret in all places where its value must not appear."""
        return f"{self.scope}.{self.key}"

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that are looked in, in order: `env`, then `SCOPE_KEY` unless `only_env`."""
        if self.only_env:
            return self.env
        default = re.sub(r"[^A-Z0-9]", "_", f"{self.scope}_{self.key}".upper())
        return tuple(dict.fromkeys((*self.env, default)))


class Secret:
    """Base of `RequiredSecret` and `OptionalSecret`: only `.value` shows the secret.

    Printing, formatting, `vars` and JSON never show it, and pickling is refused.
    """

    __slots__ = ("__value",)

    def __init__(self, value: str | None = None) -> None:
        self.__value = value

    @classmethod
    def description(cls) -> SecretDescription:
        """Scope, key and instructions; every secret class returns its own."""
        raise DefinitionError(
            f"{cls.__qualname__} has no description().",
            fix="Return SecretDescription(scope, key, instructions) from a classmethod of that name.",
        )

    @classmethod
    def chosen(cls, options: Mapping[str, Any]) -> SecretDescription:
        """Return where to look up the secret of an object. Override it if options of the name choose another place.

        Args:
            options: those of the name, by name; `key_env` and `key` of a model behind an API, say.
        """
        del options
        return cls.description()

    @property
    def value(self) -> str | None:
        """The secret itself."""
        return self.__value

    def redact(self, text: str) -> str:
        """Remove this secret from a text, for messages outside a run. Runs redact everything that they write."""
        redactor = Redactor()
        redactor.add(self.description().name, self.value or "")
        return redactor.redact(text)

    @classmethod
    def identity(cls) -> dict[str, str]:
        """Return the JSON of the secret for cache keys and records: only its name, so a new key reuses the cache."""
        return {"secret": cls.description().name}

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}([secret {self.description().name}])"

    def __str__(self) -> str:
        return f"[secret {self.description().name}]"

    def __format__(self, format_spec: str) -> str:
        return format(str(self), format_spec)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{self!r} cannot be pickled: its value would be written. Look it up again instead.")


class RequiredSecret(Secret):
    """A secret without which its owner cannot be made: `.value` is a text that is not empty."""

    __slots__ = ()

    def __init__(self, value: str) -> None:
        if not isinstance(value, str) or not value:
            raise InvalidDataError(
                f"{type(self).__qualname__} is a required secret and was given no text.",
                fix="Give the value, or derive from OptionalSecret.",
            )
        super().__init__(value)

    @property
    def value(self) -> str:
        """The secret itself."""
        value = super().value
        return value if value is not None else ""


class OptionalSecret(Secret):
    """A secret that its owner can do without: `.value` is None if none was found."""

    __slots__ = ()


SecretT = TypeVar("SecretT", bound=Secret)


class InjectSecret:
    """A placeholder for a secret among the arguments of a registration; construction puts the instance there.

    Args:
        target: the secret's class, or `"module:Class"`, which is imported when the secret is wanted.
    """

    __slots__ = ("target",)

    def __init__(self, target: type[Secret] | str) -> None:
        check_target(target, owner="InjectSecret")
        self.target = target

    def __repr__(self) -> str:
        target = self.target if isinstance(self.target, str) else self.target.__qualname__
        return f"InjectSecret({target})"

    def secret_class(self) -> type[Secret]:
        """Return the class, importing it if it was given by name.

        Raises:
            PluginError: it cannot be imported, or is neither a RequiredSecret nor an OptionalSecret.
        """
        found = self.target
        if isinstance(found, str):
            found = import_target(found, owner=f"secret {found!r}")
        if not (isinstance(found, type) and issubclass(found, RequiredSecret | OptionalSecret)):
            raise PluginError(
                f"{self!r}: this is not a secret.", fix="Derive it from RequiredSecret or OptionalSecret."
            )
        return found


class SecretStore:
    """Looks secrets up, and remembers those it handed out so that they can be redacted.

    It also knows the passwords of the proxies in the environment, since clients quote an address that they cannot
    read.

    Args:
        env: the environment; the process's own, as it is at each look-up, when None.
        file: `secrets.toml`; it need not exist. None: no file is looked in.
        handed_down: values by the names of secrets, which a driver hands to a worker; they count before all others.

    Attributes:
        found: the values that were handed out, by name.
    """

    def __init__(
        self,
        env: Mapping[str, str] | None = None,
        file: str | Path | None = None,
        handed_down: Mapping[str, str] | None = None,
    ) -> None:
        self._env, self._handed_down = env, handed_down or {}
        self.found: dict[str, str] = {}
        self._file = None if file is None else Path(file)
        self._tables: dict[str, Any] | None = None
        self.redactor = Redactor()
        for name, value in (os.environ if env is None else env).items():
            if "@" in value and name.lower().endswith("_proxy"):
                userinfo = _BEFORE_USER.sub("", value.rpartition("@")[0])
                password = userinfo.partition(":")[2] or userinfo
                for spelling in {password, unquote(password)}:
                    self.redactor.add(name, spelling)

    def find(self, description: SecretDescription) -> str | None:
        """Return the value of a secret without surrounding white space; None if it is missing or empty.

        Raises:
            SettingsError: `secrets.toml` is wanted and cannot be used; it is read once.
        """
        env = os.environ if self._env is None else self._env
        found = self._handed_down.get(description.name) or next(
            (value for value in (env.get(name, "").strip() for name in description.variables) if value), None
        )
        if found is None and not description.only_env:
            found = self._find_in_file(description)
        if found is not None:
            self.redactor.add(description.name, found)
            self.found[description.name] = found
        return found

    def get(self, secret: type[SecretT], options: Mapping[str, Any] | None = None) -> SecretT:
        """Create an instance of a secret class with its value.

        Args:
            secret: the class.
            options: of the object that the secret is for; they may choose where it is looked up.

        Raises:
            MissingSecretError: it is required and nowhere.
            SettingsError: `secrets.toml` cannot be used.
        """
        description = secret.chosen(options or {})
        value = self.find(description)
        if value is None and issubclass(secret, RequiredSecret):
            raise self._missing_error([description])
        return secret(value)

    def require(self, injections: Iterable[InjectSecret]) -> None:
        """Check that every required secret is there, before anything is made or called.

        Raises:
            MissingSecretError: naming all that are missing, each with where to get it.
            PluginError: a secret's class cannot be imported.
            SettingsError: `secrets.toml` cannot be used.
        """
        missing = self.missing(injection.secret_class() for injection in injections)
        if missing:
            raise self._missing_error(missing)

    def missing(self, secrets: Iterable[type[Secret]]) -> list[SecretDescription]:
        """Return the required secrets among these that are found nowhere, each once, in order."""
        required = [secret.description() for secret in secrets if issubclass(secret, RequiredSecret)]
        by_name = {description.name: description for description in required}
        return [description for description in by_name.values() if self.find(description) is None]

    def redact(self, text: str) -> str:
        """Remove the values that this store has handed out from a text; see `Redactor`."""
        return self.redactor.redact(text)

    def _find_in_file(self, description: SecretDescription) -> str | None:
        if self._tables is None:
            self._tables = _read_secrets(self._file) if self._file else {}
        table = self._tables.get(description.scope, {})
        value = table.get(description.key, "") if isinstance(table, dict) else None
        if not isinstance(value, str):
            raise SettingsError(
                f"{self._file}: the secret {description.name} is not written as a text.",
                fix=f'Write, under [{description.scope}]: {description.key} = "…"',
            )
        return value.strip() or None

    def _missing_error(self, missing: list[SecretDescription]) -> MissingSecretError:
        single = len(missing) == 1
        lines = [
            f"  {each.name}: set {' or '.join(each.variables)}, or write under [{each.scope}] in "
            f'{SECRETS_FILE}: {each.key} = "…". {each.instructions}'
            for each in missing
        ]
        head = "A required secret is missing:" if single else f"{len(missing)} required secrets are missing:"
        where = f" (looked up here: {self._file})" if self._file else ""
        return MissingSecretError(
            "\n".join([head, *lines]),
            fix=f"\nGive {'it' if single else 'them'} in the environment or in {SECRETS_FILE}{where}.",
        )


def _read_secrets(file: Path) -> dict[str, Any]:
    """Return the tables of `secrets.toml`; none if there is no file.

    Raises:
        SettingsError: others can read the file (POSIX), or it is not TOML.
    """
    try:
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise SettingsError(
            f"{file} cannot be read: {error.strerror}.", fix="Correct its permissions."
        ) from error
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(
            f"{file} can be read by others (mode {stat.S_IMODE(mode):04o}), so it is not used.",
            fix=f"Run: chmod 600 {shlex.quote(str(file))}",
        )
    return read_toml(file)
