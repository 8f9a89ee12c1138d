"""The uids of one kind (tests, SUTs, annotators or metrics) and how each is made, lazily.

A `Registry` is filled by discovery and passed on; there is no global registry. Listing imports no target. The syntax
of names is in `names.py`, making an object in `construction.py`, finding plugins in `discovery.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelgauge.config.import_by_name import check_target
from modelgauge.config.secrets import SecretStore
from modelgauge.errors import NameCollisionError, PluginError, UnknownNameError
from modelgauge.plugins.construction import Kind, Names, Registration, ResolvedName, Servers
from modelgauge.plugins.names import provider_problem, split_name, uid_problem
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.first_party import how_to_install
from modelgauge.wording.phrases import with_article

KIND_WORDS: Mapping[Kind, str] = {"test": "test", "sut": "SUT", "annotator": "annotator", "metric": "metric"}


class Register:
    """The function that a hook receives and calls once for each uid, for one kind and one distribution."""

    def __init__(self, kind: Kind, distribution: str) -> None:
        self.kind = kind
        self.distribution = distribution
        self._entries: dict[tuple[str, bool], Registration] = {}

    @property
    def entries(self) -> Sequence[Registration]:
        """The entries registered so far."""
        return tuple(self._entries.values())

    def __call__(self, uid: str, target: Callable[..., Any] | str, /, *args: Any, **kwargs: Any) -> None:
        """Register a uid, which is made as `target(uid, *args, **kwargs)`.

        Args:
            uid: a name without white space and without `?`.
            target: a class, or `"module:Class"`, which is imported when it is first made.
            args: further arguments of the constructor; a secret is an `InjectSecret`.
            kwargs: keyword arguments of the constructor; `?key=value` behind a uid overrides them.

        Raises:
            PluginError: the uid is not valid or was registered before, or the target is none.
        """
        self._add(Registration(self.kind, uid, target, args, kwargs, self.distribution), uid_problem(uid))

    def provider(
        self,
        prefix: str,
        target: Callable[..., Any] | str,
        /,
        *,
        servers: Servers | str | None = None,
        names: Names | str | None = None,
        **kwargs: Any,
    ) -> None:
        """Register a provider: `prefix/any-model` is made as `target(uid, model="any-model", **kwargs)`.

        Args:
            prefix: a name without white space, `?` and `/`.
            target: a class, or `"module:Class"`.
            servers: what `?server=NAME` means: further arguments of the constructor by the server's name, or
                `"module:NAMES"`, which is imported when a server is named. Users add their own in `modelgauge.toml`.
                The class says `options_in_uid = ("server",)`, and `"server"` in `identity_excludes`.
            names: returns the names that can stand for `any-model`, for completion and `list-tests --provider`: a
                function, or `"module:function"`.
            kwargs: further arguments of the constructor.

        Raises:
            PluginError: the prefix is not valid or was registered before, or the target is not valid.
        """
        entry = Registration(
            *(self.kind, prefix, target, (), kwargs, self.distribution),
            is_provider=True,
            servers=servers or {},
            names=names,
        )
        self._add(entry, provider_problem(prefix))

    def group(self, name: str, uids: Iterable[str], /) -> None:
        """Register a group: its name means all of these uids, as in `run-test --test NAME`.

        Of a group of tests, reports show the mean over the tests too.

        Args:
            name: a name without white space and without `?`.
            uids: those of its members, which this call's `register` has registered before.

        Raises:
            PluginError: the name is not valid or is a uid, or a member was not registered.
        """
        problem = uid_problem(name)
        if (name, False) in self._entries:
            problem = f"{name!r} is a uid"
        if problem:
            raise PluginError(f"group {name!r} cannot be registered: {problem}.", fix="Choose another name.")
        for uid in uids:
            entry = self._entries.get((uid, False))
            if entry is None:
                raise PluginError(
                    f"group {name!r} names {uid!r}, which is not registered.",
                    fix=f"{did_you_mean(uid, (entry.uid for entry in self.entries))}Register it before the group.",
                )
            self._entries[uid, False] = replace(entry, groups=(*entry.groups, name))

    def _add(self, entry: Registration, problem: str | None) -> None:
        what = f"{'provider' if entry.is_provider else KIND_WORDS[self.kind]} {entry.uid!r}"
        if problem:
            raise PluginError(f"{what} cannot be registered: {problem}.", fix="Choose another name.")
        for reserved in ("uid", "model") if entry.is_provider else ("uid",):
            if reserved in entry.kwargs:
                raise PluginError(f"{what} cannot fix {reserved!r}: the name says it.", fix="Leave it out.")
        check_target(entry.target, owner=what)
        if (entry.uid, entry.is_provider) in self._entries:
            raise PluginError(f"{what} is registered twice.", fix="Rename one of the two.")
        self._entries[entry.uid, entry.is_provider] = entry


class Registry:
    """The registered entries of one kind, by uid.

    Args:
        kind: what they make.
        failed_plugins: names of plugins that could not be loaded, for the error about an unknown name; it may
            still grow.
        others: the registries of the other kinds, for that error too; they may still be added.
    """

    def __init__(
        self, kind: Kind, failed_plugins: Sequence[str] = (), others: "Sequence[Registry]" = ()
    ) -> None:
        self.kind = kind
        self._failed_plugins = failed_plugins
        self._others = others
        # Of each uid, and of each prefix of a provider.
        self._claims: dict[tuple[str, bool], list[Registration]] = {}

    def add(self, entries: Iterable[Registration]) -> None:
        """Add what one plugin registered, all or nothing.

        A uid that another distribution registered too becomes an error when it is used.

        Raises:
            PluginError: the same distribution registered one of the uids before.
        """
        new = list(entries)
        self.check(new)
        for entry in new:
            self._claims.setdefault((entry.uid, entry.is_provider), []).append(entry)

    def add_servers(self, provider: str, tables: Servers) -> None:
        """Add the user's own servers to a provider: as `?server=NAME`, and as `NAME/any-model`.

        Args:
            provider: its prefix.
            tables: the options of each server.

        Raises:
            PluginError: there is no such provider, or a server's name is not valid.
        """
        if provider not in self.providers:
            raise PluginError(
                f"There is no provider {provider!r}.",
                fix=f"{did_you_mean(provider, self.providers)}Install its plugin, or remove the table.",
            )
        providers = self._claims[provider, True]
        self._claims[provider, True] = [replace(each, own_servers=tables) for each in providers]
        for name, options in tables.items():
            table = f"{provider}.servers.{name}"
            problem = provider_problem(name)
            if problem:
                raise PluginError(f"[{table}] names no server: {problem}.", fix="Choose another name.")
            named = [replace(each, uid=name, options=options, table=table) for each in providers]
            self._claims.setdefault((name, True), []).extend(named)

    def check(self, entries: Iterable[Registration]) -> None:
        """Raise what `add` would raise, and add nothing."""
        for entry in entries:
            claims = self._claims.get((entry.uid, entry.is_provider), ())
            if any(other.distribution == entry.distribution for other in claims):
                raise PluginError(
                    f"{KIND_WORDS[self.kind]} {entry.label!r} is registered by another plugin of "
                    f"{entry.distribution} as well.",
                    fix="Rename one of the two.",
                )

    def __iter__(self) -> Iterator[Registration]:
        """Yield every entry, by uid. A disputed uid occurs once for each plugin that claims it."""
        return (entry for _, claims in sorted(self._claims.items()) for entry in claims)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        """Return whether the name exists, disputed or not."""
        return isinstance(name, str) and self._lookup(name.partition("?")[0]) is not None

    @property
    def uids(self) -> list[str]:
        """The uids, sorted; providers are not among them."""
        return sorted(uid for uid, is_provider in self._claims if not is_provider)

    @property
    def providers(self) -> list[str]:
        """The prefixes of the providers, sorted."""
        return sorted(prefix for prefix, is_provider in self._claims if is_provider)

    @property
    def groups(self) -> dict[str, list[Registration]]:
        """The members of each group, by uid."""
        found: dict[str, list[Registration]] = {}
        for entry in self:
            for name in entry.groups:
                found.setdefault(name, []).append(entry)
        return dict(sorted(found.items()))

    @property
    def conflicts(self) -> dict[str, list[str]]:
        """The distributions by name, for each name that several distributions claim."""
        disputed = [claims for _, claims in sorted(self._claims.items()) if len(claims) > 1]
        return {claims[0].label: [entry.owner for entry in claims] for claims in disputed}

    def list_names(self, provider: str) -> list[str]:
        """Return the full names that a provider knows.

        Raises:
            UnknownNameError: there is no such provider.
            InvalidOptionError: it does not know the names of its models.
            PluginError: its function cannot be imported.
        """
        if provider not in self.providers:
            raise UnknownNameError(
                f"There is no provider {provider!r} of {KIND_WORDS[self.kind]}s.",
                fix=f"{did_you_mean(provider, self.providers)}The providers are: {', '.join(self.providers)}.",
            )
        return self._claims[provider, True][0].known_names()

    def resolve(self, name: str) -> ResolvedName:
        """Find a name: as an exact uid, else as `provider/model`. Imports nothing.

        Raises:
            UnknownNameError: there is no such name.
            NameCollisionError: two distributions claim it.
            InvalidOptionError: what stands behind its `?` is malformed.
        """
        base, options = split_name(name)
        found = self._lookup(base)
        if found is None:
            raise self._unknown_name(base)
        claims, model = found
        if len(claims) > 1:
            raise self._collision(claims)
        return ResolvedName(claims[0], base, model, options)

    def make(self, name: str, *, secrets: SecretStore | None = None) -> Any:
        """Make the object of that name; its uid is the name with its options sorted.

        Args:
            name: `uid` or `provider/model`, either with `?key=value&…`.
            secrets: where secrets come from; the environment alone when None.

        Raises:
            UnknownNameError, NameCollisionError, InvalidOptionError: the name is wrong.
            MissingSecretError: a required secret is nowhere.
            PluginError: the target cannot be imported or its constructor raised.
        """
        return self.resolve(name).make(secrets)

    def _lookup(self, base: str) -> tuple[list[Registration], str | None] | None:
        prefix, _, model = base.partition("/")
        if (base, False) in self._claims:
            return self._claims[base, False], None
        return (self._claims[prefix, True], model) if model and (prefix, True) in self._claims else None

    def _collision(self, claims: list[Registration]) -> NameCollisionError:
        owners = [entry.owner for entry in claims]
        last = claims[-1].distribution
        fix = "Rename yours" if Path(last).is_absolute() else f"Keep one of them: `pip uninstall {last}`"
        fix = f"{fix}, or leave out its --plugin."
        return NameCollisionError(
            f"{KIND_WORDS[self.kind]} {claims[0].label!r} is claimed by {' and by '.join(owners)}.",
            fix=next((f"Rename the table {entry.owner}." for entry in claims if entry.table), fix),
        )

    def _unknown_name(self, base: str) -> UnknownNameError:
        prefix, _, model = base.partition("/")
        if members := [entry.uid for entry in self.groups.get(base, ())]:
            return UnknownNameError(
                f"{base!r} is a group of {len(members)} {KIND_WORDS[self.kind]}s, and one is wanted.",
                fix=f"Name one of them: {', '.join(members)}.",
            )
        if prefix in self.providers:
            return UnknownNameError(
                f"{prefix!r} is a provider and needs a model.", fix=f"Write {prefix}/MODEL."
            )
        for other in self._others:
            if other is not self and (base in other or base in other.groups):
                found, wanted = (with_article(KIND_WORDS[kind]) for kind in (other.kind, self.kind))
                return UnknownNameError(
                    f"{base!r} is {found}, and {wanted} is wanted.",
                    fix=f"--{other.kind} takes it. `modelgauge list-{self.kind}s` shows what to name here.",
                )
        known = [*self.uids, *self.groups, *(f"{provider}/{model}" for provider in self.providers if model)]
        suggestion = _suggested_option(self.kind, base) or did_you_mean(base, known)
        if not suggestion and "/" not in base and self.providers:
            suggestion = (
                f"For a provider's, write PROVIDER/{base}; the providers are: {', '.join(self.providers)}. "
            )
        fixes = [suggestion, how_to_install(self.kind, base)]
        if self._failed_plugins:
            names = ", ".join(self._failed_plugins)
            fixes.append(f"Plugins that could not be loaded: {names} (`modelgauge plugins` says why). ")
        fixes.append(f"`modelgauge list-{self.kind}s` shows all.")
        return UnknownNameError(f"There is no {KIND_WORDS[self.kind]} {base!r}.", fix="".join(fixes))


def _suggested_option(kind: Kind, name: str) -> str:
    """Return the option that takes a file, if a file is given as a name; "" for other names."""
    if name.endswith(".py"):
        return f"Load the file with --plugin {name}, and name a {KIND_WORDS[kind]} in it. "
    is_dataset = kind == "test" and name.endswith((".csv", ".json", ".jsonl"))
    return f"A file of goldens is a test by --dataset {name}. " if is_dataset else ""
