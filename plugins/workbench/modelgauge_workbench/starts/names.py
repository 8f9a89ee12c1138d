"""The names that a page may choose: installed objects, with options that reach no file, server or secret.

A visitor may not be the owner of the machine. So the objects that names refer to, and the judges that these ask, are
checked, not the spelling of the names. The owner lists anything else in `modelgauge.toml`.
"""

import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any
from urllib.parse import unquote

from modelgauge.config.entry_points import DISTRIBUTION
from modelgauge.errors import UsageError
from modelgauge.interfaces.identity import declared
from modelgauge.metrics.judges import judging_by_default
from modelgauge.plugins.construction import ResolvedName
from modelgauge.plugins.discovery import Plugins
from modelgauge.plugins.name_matches import NameMatch, match_names
from modelgauge.plugins.names import decode
from modelgauge.suts.function import FunctionSUT

OF_FILES = ("replay",)
"""Providers whose models are files."""

_IN_A_TERMINAL = "or use the command in a terminal: modelgauge run-test."
_MOST_CODED = 20  # how many layers of percent-encoding are decoded


def check_name(plugins: Plugins, field: str, text: str) -> None:
    """Refuse a name that a page may not choose. Ask nothing, and make no SUT.

    Args:
        plugins: whose names can be chosen.
        field: "tests", "metrics", "suts" or "judge".
        text: the name.

    Raises:
        ModelGaugeError: the name is wrong, or reaches a file, a server or a secret.
    """
    match: NameMatch[Any]
    if field == "metrics":
        _check_metric(plugins, text)
    elif field == "judge":
        _check_sut(plugins, text)
    elif field == "suts":
        for match in match_names(plugins.suts, [text]):
            _check_sut(plugins, str(match.name))
    else:
        for match in match_names(plugins.tests, [text]):
            if _free_texts(resolved := plugins.tests.resolve(str(match.name))):
                raise _refused_option(str(match.name), next(iter(resolved.options)))


def _check_sut(plugins: Plugins, name: str) -> None:
    """Refuse a SUT with options, since their names do not show what they reach, and one that reads a file."""
    resolved = plugins.suts.resolve(name)
    entry = resolved.entry
    for option, value in resolved.options.items():
        if not (option == "server" and decode(value) in entry.own_servers):
            raise _refused_option(name, option, entry.uid)
    if entry.uid in OF_FILES or _is_address(resolved.model or ""):
        raise UsageError(
            f"'{name}' names a file or an address, which cannot be chosen on a page.",
            fix=f"Name a server in modelgauge.toml, {_IN_A_TERMINAL}",
        )


def _check_metric(plugins: Plugins, name: str) -> None:
    """Refuse a metric with a text that could be an address, and one whose judges cannot be chosen."""
    resolved = plugins.metrics.resolve(name)
    if not _free_texts(resolved):
        return
    if resolved.entry.distribution != DISTRIBUTION:
        raise _refused_option(name, next(iter(resolved.options)))
    with judging_by_default(FunctionSUT("default", str)):  # the default judge is checked by its own field
        judges = declared(resolved.make(), "get_suts").values()
    for judge in judges:
        if isinstance(judge, str):
            _check_sut(plugins, judge)


def _free_texts(resolved: ResolvedName) -> list[str]:
    """Return the texts in the options of a name, apart from choices from a list."""
    return [text for value, hint in resolved.arguments().values() for text in _texts(value, hint)]


def _texts(value: Any, hint: Any) -> Iterator[str]:
    if value is None or isinstance(value, bool | int | float | Enum):
        return
    if isinstance(value, str) and value in _choices(hint):
        return
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _texts(part, hint)
    else:
        yield str(value)


def _choices(hint: Any) -> set[Any]:
    """Return the members of all `Literal`s in a type."""
    if typing.get_origin(hint) is typing.Literal:
        return set(typing.get_args(hint))
    return {member for part in typing.get_args(hint) for member in _choices(part)}


def _is_address(model: str) -> bool:
    """Return whether a model, however encoded, can be a path, a URL, or a name with options."""
    for _ in range(_MOST_CODED):
        plain = unquote(model)
        if plain == model:
            break
        model = plain
    parts = model.split("/")
    return (
        "%" in model
        or model[:1] in ("/", "~", ".")
        or ".." in parts
        or bool({*"\\?"} & {*model})
        or ":/" in model
    )


def _refused_option(name: str, option: str, provider: str = "") -> UsageError:
    where = f"[{provider}.servers.NAME] of modelgauge.toml, and choose NAME/MODEL" if provider else ""
    return UsageError(
        f"The option '{option}' of '{name}' cannot be chosen on a page.",
        fix=f"Write it under {where}, {_IN_A_TERMINAL}" if where else f"Leave it out, {_IN_A_TERMINAL}",
    )
