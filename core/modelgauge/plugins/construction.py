"""From a registered name to an object: its target, the options of the name, and its secrets.

Signatures are read from `__init__`, not from the class, for the interfaces' base classes have a `__new__`.
"""

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Literal

from modelgauge.config.import_by_name import describe, import_target
from modelgauge.config.secrets import InjectSecret, Secret, SecretStore
from modelgauge.errors import ArgumentError, InvalidOptionError, ModelGaugeError, PluginError
from modelgauge.interfaces.arguments import BY_NAME, constructors
from modelgauge.plugins.names import convert, decode, describe_type, encode, join_name, spelling
from modelgauge.wording.did_you_mean import did_you_mean

Servers = Mapping[str, Mapping[str, Any]]  # the options of named servers, by name


Names = Callable[[], Iterable[str]]  # the names of a provider's models

Kind = Literal["test", "sut", "annotator", "metric"]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Registration:
    """A registration: of one uid, or of the prefix of one provider.

    Args:
        kind: what it makes.
        uid: the uid, or a provider's prefix, without the `/`.
        target: a class or another callable, or `"module:Class"`.
        args: positional arguments after the uid.
        kwargs: keyword arguments; secrets among them stand as `InjectSecret`.
        distribution: who registered it.
        is_provider: whether it makes `uid/any-model`.
        servers: of a provider, the options of each server that can be named (`?server=NAME`), or `"module:NAMES"`.
        own_servers: further servers, from the user's settings.
        options: those that hold where the name gives no other.
        table: the table of the settings that the name stands in.
        groups: the groups that it is in.
        names: of a provider, returns the names of its models, or `"module:function"`; None if nobody knows them.
    """

    kind: Kind
    uid: str
    target: Callable[..., Any] | str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    distribution: str
    is_provider: bool = False
    servers: Servers | str = field(default_factory=dict)
    own_servers: Servers = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    table: str = ""
    groups: tuple[str, ...] = ()
    names: Names | str | None = None

    @property
    def owner(self) -> str:
        """The claimant of the name: a distribution, or a table of the user's settings."""
        return f"[{self.table}] of modelgauge.toml" if self.table else self.distribution

    @property
    def label(self) -> str:
        """The uid for a listing: `acme/…` for a provider."""
        return f"{self.uid}/…" if self.is_provider else self.uid

    @property
    def target_name(self) -> str:
        """`module:Class`, without importing it."""
        if isinstance(self.target, str):
            return self.target
        name = getattr(self.target, "__qualname__", type(self.target).__qualname__)
        return f"{getattr(self.target, '__module__', '?')}:{name}"

    @property
    def injections(self) -> list[InjectSecret]:
        """The secrets that it asks for."""
        return [value for value in (*self.args, *self.kwargs.values()) if isinstance(value, InjectSecret)]

    def preset(self, options: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the options that a name implies besides the given ones: its own, or those of its server.

        Args:
            options: those of the name.

        Raises:
            InvalidOptionError: there is no server of that name.
            PluginError: the plugin's servers cannot be imported.
        """
        if "server" not in options or not (self.servers or self.own_servers):
            return self.options
        servers = self.servers
        if isinstance(servers, str):
            servers = import_target(servers, owner=repr(self.label), distribution=self.distribution)
        servers = {**servers, **self.own_servers}
        name = decode(options["server"])
        if name not in servers:
            raise InvalidOptionError(
                f"{self.label!r}: there is no server {name!r}.",
                fix=f"{did_you_mean(name, servers)}Known: {', '.join(servers)}. Name your own in modelgauge.toml, "
                f"under [{self.uid}.servers.{name}].",
            )
        return servers[name]

    def known_names(self) -> list[str]:
        """Return the full names of a provider's models.

        Raises:
            InvalidOptionError: the provider does not know them.
            PluginError: its function cannot be imported.
        """
        names = self.names
        if names is None:
            raise InvalidOptionError(
                f"{self.label!r} (from {self.owner}) does not list its names.",
                fix=f"Its own documentation does; write {self.uid}/NAME.",
            )
        if isinstance(names, str):
            names = import_target(names, owner=repr(self.label), distribution=self.distribution)
        return [f"{self.uid}/{name}" for name in names()]

    def load(self) -> Callable[..., Any]:
        """Return the target, importing it if it was given by name.

        Raises:
            PluginError: it cannot be imported, or cannot be called.
        """
        target = self.target
        if isinstance(target, str):
            target = import_target(target, owner=repr(self.label), distribution=self.distribution)
        if not callable(target):
            raise PluginError(
                f"{self.label!r} (from {self.distribution}): {self.target_name} is not a class, but {target!r}.",
                fix="Register a class.",
            )
        return target


@dataclass(frozen=True, slots=True)
class ResolvedName:
    """A name that was found; nothing is imported or made yet."""

    entry: Registration
    base: str
    model: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def make(self, secrets: SecretStore | None = None) -> Any:
        """Make the object; see `Registry.make`."""
        return _Construction(self).make(SecretStore() if secrets is None else secrets)

    def arguments(self) -> dict[str, tuple[Any, Any]]:
        """Return the options of the name as arguments: their values, and the types of their parameters. Make nothing.

        Raises:
            InvalidOptionError: an option is unknown, does not convert, or is not to be given.
            PluginError: the target cannot be imported.
        """
        return _Construction(self).arguments() if self.options else {}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a constructor; `hint` is its type, and `unresolved` is why it cannot be read."""

    name: str
    hint: Any
    has_default: bool
    unresolved: str | None = None

    @property
    def is_secret(self) -> bool:
        """True if the parameter takes a secret, so that no option may set it."""
        members = (self.hint, *typing.get_args(self.hint))
        return any(isinstance(member, type) and issubclass(member, Secret) for member in members)


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a constructor after the uid.

    Args:
        by_name: those that can be passed by name, those of parents included where `**kwargs` hands them on.
        positional: the names of those that can be passed by position, in order.
        own: the names that the constructor itself has, as against its parents.
        takes_any: whether unknown names are taken as well (`**kwargs` that no parent explains).
    """

    by_name: Mapping[str, Parameter]
    positional: tuple[str, ...]
    own: frozenset[str]
    takes_any: bool


def read_parameters(target: Callable[..., Any]) -> Parameters:
    """Read the signature of a class's `__init__`, or of another callable."""
    by_name: dict[str, Parameter] = {}
    positional: tuple[str, ...] | None = None
    own: frozenset[str] = frozenset()
    takes_any = False
    for function, parameters, takes_any in constructors(target):  # noqa: B007  the last one says
        after_uid = parameters[1:] if parameters and parameters[0].kind in _POSITIONAL else parameters
        for parameter in after_uid:
            if parameter.kind in BY_NAME and parameter.name not in by_name:
                by_name[parameter.name] = _parameter(function, parameter)
        if positional is None:
            positional = tuple(parameter.name for parameter in after_uid if parameter.kind in _POSITIONAL)
            own = frozenset(by_name)
    return Parameters(by_name, positional or (), own, takes_any)


def _parameter(function: Callable[..., Any], parameter: inspect.Parameter) -> Parameter:
    has_default = parameter.default is not inspect.Parameter.empty
    hint = parameter.annotation
    if hint is inspect.Parameter.empty:
        # The type of a default says as much as a hint does, where text can be told apart from it.
        hint = type(parameter.default) if isinstance(parameter.default, bool | int | float | str) else str
        return Parameter(parameter.name, hint, has_default)
    try:
        # One by one, so that a name known to the type checker only spoils no other parameter.
        names = getattr(inspect.unwrap(function), "__globals__", {})
        holder = SimpleNamespace(__annotations__={parameter.name: hint})
        hints = typing.get_type_hints(holder, names, include_extras=True)
    except Exception as error:  # noqa: BLE001  annotations are the author's: evaluating them can raise anything
        return Parameter(parameter.name, str, has_default, unresolved=describe(error))
    return Parameter(parameter.name, hints[parameter.name], has_default)


class _Construction:
    """The making of `target(uid, *args, **kwargs)`, for a provider with `model=` as well.

    The uid is the name with its options sorted. Options override those of a named server, and these what was
    registered.
    """

    def __init__(self, resolved: ResolvedName) -> None:
        entry = resolved.entry
        self._target, self._resolved = entry.load(), resolved
        self._owner = f"{resolved.base!r} (from {entry.owner})"
        self._parameters = read_parameters(self._target)
        names = self._parameters.positional
        self._by_position, self._more = dict(zip(names, entry.args, strict=False)), entry.args[len(names) :]
        self._named = dict(entry.kwargs)
        if resolved.model is not None:
            self._named["model"] = resolved.model

    def make(self, secrets: SecretStore) -> Any:
        """Make the object; `secrets` has those of `InjectSecret`.

        Raises:
            InvalidOptionError: an option is unknown, does not convert, or is not to be given; or an option is missing.
            MissingSecretError: a required secret is nowhere.
            PluginError: the target cannot be imported, or its constructor raised.
        """
        entry, options = self._resolved.entry, self._resolved.options
        for key, value in entry.preset(options).items():
            self._refuse_reserved(key)
            self._named[key] = self._converted_value(self._find(key), value)
        name = join_name(self._resolved.base, {key: self._take(key, options[key]) for key in options})
        self._require_all()
        secrets.require(entry.injections)

        def injected(value: Any) -> Any:
            is_secret = isinstance(value, InjectSecret)
            return secrets.get(value.secret_class(), self._named) if is_secret else value

        positional = map(injected, [*self._by_position.values(), *self._more])
        named = {key: injected(value) for key, value in self._named.items()}
        try:
            return self._target(name, *positional, **named)
        except (Exception, SystemExit) as error:
            if isinstance(error, ModelGaugeError) and not isinstance(error, ArgumentError):
                raise
            problem = f"{self._owner} cannot be made: {secrets.redact(describe(error))}."
            raise PluginError(problem, fix="Correct its options, or what its plugin registers.") from error

    def arguments(self) -> dict[str, tuple[Any, Any]]:
        """Return the options of the name; see `Resolved.arguments`."""
        found: dict[str, tuple[Any, Any]] = {}
        for key, written in self._resolved.options.items():
            self._refuse_reserved(key)
            parameter = Parameter(key, str, has_default=True) if self._is_in_uid(key) else self._find(key)
            found[key] = self._converted(parameter, written), parameter.hint
        return found

    def _is_in_uid(self, key: str) -> bool:
        """Return whether the object reads an option in its uid."""
        return key in getattr(self._target, "options_in_uid", ()) and key not in self._parameters.by_name

    def _take(self, key: str, written: str) -> str:
        """Take an option of the name as an argument, and return its one spelling."""
        self._refuse_reserved(key)
        if self._is_in_uid(key):
            return spelling(written, str)
        parameter = self._find(key)
        value = self._converted(parameter, written)
        (self._by_position if key in self._by_position else self._named)[key] = value
        return spelling(written, parameter.hint)

    def _refuse_reserved(self, key: str) -> None:
        if key == "uid":
            raise InvalidOptionError(
                f"{self._owner}: 'uid' cannot be an option.", fix="The name itself is the uid."
            )
        if key == "model" and self._resolved.model is not None:
            raise InvalidOptionError(
                f"{self._owner}: 'model' cannot be an option here.", fix="The model stands behind the '/'."
            )
        registered = {**self._by_position, **self._named}
        parameter = self._parameters.by_name.get(key)
        if isinstance(registered.get(key), InjectSecret) or (parameter is not None and parameter.is_secret):
            raise InvalidOptionError(
                f"{self._owner}: {key!r} is a secret; secrets are not options, for names are recorded.",
                fix="Put it into the environment or secrets.toml: `modelgauge list-secrets` says where.",
            )

    def _find(self, key: str) -> Parameter:
        by_name = self._parameters.by_name
        if key in by_name:
            return by_name[key]
        if self._parameters.takes_any:
            return Parameter(key, str, has_default=True)
        if meant := getattr(self._target, "meant_by", {}).get(key):
            raise InvalidOptionError(
                f"{self._owner}: {key!r} is called {meant!r} here.", fix=f"Write {meant}=…."
            )
        known = {name: each for name, each in by_name.items() if not each.is_secret and name != "model"}
        shown = ", ".join(f"{name} ({describe_type(each.hint)})" for name, each in known.items())
        raise InvalidOptionError(
            f"{self._owner} has no option {key!r}.",
            fix=f"{did_you_mean(key, known)}Known: {shown or 'none at all'}.",
        )

    def _converted_value(self, parameter: Parameter, value: Any) -> Any:
        """Convert a JSON value to the type of its parameter; a text is read as in a name."""
        if isinstance(value, str):
            return self._converted(parameter, encode(value))
        # Imported for named servers only: listing names stays without pydantic.
        adapter = import_module("pydantic").TypeAdapter(parameter.hint)
        try:
            return adapter.validate_python(value)
        except ValueError:
            raise self._unfit(parameter, value) from None

    def _converted(self, parameter: Parameter, written: str) -> Any:
        if parameter.unresolved:
            raise InvalidOptionError(
                f"{self._owner}: the type of option {parameter.name!r} cannot be told: {parameter.unresolved}.",
                fix="Its author should import at run time what the type hint names.",
            )
        try:
            return convert(written, parameter.hint)
        except ValueError:
            lists = " A list is written with commas: a,b (a comma within is %2C)." if "[" in written else ""
            raise self._unfit(parameter, decode(written), lists) from None

    def _unfit(self, parameter: Parameter, value: Any, how: str = "") -> InvalidOptionError:
        return InvalidOptionError(
            f"{self._owner}: option {parameter.name!r} cannot be {value!r}.",
            fix=f"Give {describe_type(parameter.hint)}.{how}",
        )

    def _require_all(self) -> None:
        parameters = self._parameters
        filled = {*self._by_position, *self._named}
        missing = [
            each
            for name, each in parameters.by_name.items()
            if name in parameters.own and not each.has_default and name not in filled
        ]
        if any(each.is_secret for each in missing):
            names = ", ".join(each.name for each in missing if each.is_secret)
            raise PluginError(
                f"{self._owner} needs the secret {names}, and its plugin registers none.",
                fix=f"The plugin should register it with {names}=InjectSecret(…).",
            )
        if missing:
            described = ", ".join(f"{each.name} ({describe_type(each.hint)})" for each in missing)
            options = "&".join(f"{each.name}=…" for each in missing)
            raise InvalidOptionError(
                f"{self._owner} needs {described}.", fix=f"Write {self._resolved.base}?{options}"
            )
