"""The tests and SUTs that names stand for: a uid, a uid with a label, a group, or a pattern with `*` or `[…]`.

What a name stands for is in `registry.py`; the objects are made in `resolution.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Generic, TypeVar

from modelgauge.errors import ModelGaugeError, NameCollisionError, UnknownNameError, UsageError
from modelgauge.plugins.construction import Registration, ResolvedName
from modelgauge.plugins.discovery import Plugins
from modelgauge.plugins.registry import KIND_WORDS, Registry
from modelgauge.wording.did_you_mean import did_you_mean

T = TypeVar("T")

_MOST_OF_A_LABEL = 60
_WILDCARD = re.compile(r"\*|\[.+?\]")


@dataclass(frozen=True, slots=True)
class NameMatch(Generic[T]):
    """A test or a SUT that a name stands for.

    Args:
        name: a uid, or an object.
        label: what tables call it; None for its uid.
        groups: the groups that the caller named and that it is in: how many members each has, by name.
        is_named: whether it was named by itself, not by a group or a pattern alone.
    """

    name: T | str
    label: str | None = None
    groups: Mapping[str, int] = field(default_factory=dict)
    is_named: bool = True


def match_names(registry: Registry, names: Iterable[T | str]) -> list[NameMatch[T]]:
    """Return the tests or the SUTs that names stand for; each uid once, in the order in which it was named first.

    Args:
        registry: of tests, or of SUTs.
        names: objects and texts. A text is a name, else `LABEL=NAME` of a SUT, a group, or a pattern, in which `*`
            stands for any characters of a uid, and `[15]` for one of these characters. Options behind a group or a
            pattern are those of each member.

    Raises:
        UnknownNameError: a pattern matches nothing.
        NameCollisionError: two plugins have a group of one name.
        UsageError: a label is not valid, or two SUTs have the same label.
    """
    matches: dict[str, NameMatch[T]] = {}
    order: list[NameMatch[T] | str] = []
    for name in names:
        if not isinstance(name, str):
            order.append(NameMatch(name))
            continue
        match: NameMatch[T]
        for match in _matches(registry, name):
            uid = str(match.name)
            if uid not in matches:
                order.append(uid)
            matches[uid] = match if uid not in matches else _both(matches[uid], match)
    return [matches[entry] if isinstance(entry, str) else entry for entry in order]


def _both(first: NameMatch[T], second: NameMatch[T]) -> NameMatch[T]:
    """Join two matches of one uid."""
    if first.label != second.label and first.is_named and second.is_named:
        raise UsageError(
            f"SUT '{first.name}' is named twice: with the label '{first.label or second.label}', and "
            + (f"with '{second.label}'." if first.label and second.label else "without one."),
            fix="Name it once.",
        )
    return replace(
        first,
        label=first.label or second.label,
        groups={**first.groups, **second.groups},
        is_named=first.is_named or second.is_named,
    )


def _matches(registry: Registry, name: str) -> Iterator[NameMatch[T]]:
    base, mark, options = name.partition("?")
    if name in registry:
        yield NameMatch(name)
        return
    label, has_label, uid = base.partition("=")
    if registry.kind == "sut" and has_label and "/" not in label:
        yield NameMatch(f"{uid}{mark}{options}", _checked_label(label, name))
        return
    groups = registry.groups
    if base in groups:
        _check_owner(registry, base, groups[base])
        uids, size = [entry.uid for entry in groups[base]], {base: len(groups[base])}
    elif _WILDCARD.search(base):
        uids, size = [uid for uid in registry.uids if fnmatchcase(uid, base)], {}
        if not uids:
            raise _unmatched(registry, base)
    else:
        yield NameMatch(name)  # whose error says more
        return
    for uid in uids:
        yield NameMatch(f"{uid}{mark}{options}", None, size, is_named=False)


def _checked_label(label: str, name: str) -> str:
    shown = label.strip()
    if not shown or not shown.isprintable() or len(shown) > _MOST_OF_A_LABEL:
        raise UsageError(
            f"{name!r} has no label before its '='.",
            fix=f"Write LABEL=UID, as in small=acme/model: a text of at most {_MOST_OF_A_LABEL} characters.",
        )
    return shown


def _check_owner(registry: Registry, group: str, members: Sequence[Registration]) -> None:
    owners = list(dict.fromkeys(entry.owner for entry in members))
    if len(owners) > 1:
        raise NameCollisionError(
            f"The group {group!r} of {KIND_WORDS[registry.kind]}s is claimed by {' and by '.join(owners)}.",
            fix="Name the members, by a pattern with *, say.",
        )


def _unmatched(registry: Registry, pattern: str) -> UnknownNameError:
    word = KIND_WORDS[registry.kind]
    begin = _WILDCARD.split(pattern)[0]
    others = ((uid, f"{uid[: len(begin)]}{pattern[len(begin) :]}") for uid in registry.uids)
    like = did_you_mean(pattern, [other for uid, other in others if fnmatchcase(uid, other)])
    provider = pattern.partition("/")[0]
    why = f" Models of {provider} are not listed here: name each." if provider in registry.providers else ""
    return UnknownNameError(
        f"No {word} matches {pattern!r}.{why}", fix=f"{like}`modelgauge list-{registry.kind}s` shows all."
    )


def check_labels(suts: Sequence[tuple[str, str | None]]) -> None:
    """Refuse two SUTs that tables would call the same.

    Args:
        suts: the uid and the label of each.

    Raises:
        UsageError: two SUTs have the same label, or a label is the uid of another SUT.
    """
    uids: dict[str, str] = {}
    for uid, label in suts:
        other = uids.setdefault(label or uid, uid)
        if other != uid:
            raise UsageError(
                f"'{label or uid}' is the name of two SUTs: {other} and {uid}.",
                fix="Give each a label of its own.",
            )


# --- whether there is what was named ------------------------------------------------------------------


def check_names(plugins: Plugins, tests: Iterable[object], suts: Iterable[object]) -> None:
    """Refuse names of nothing; takes little time, since nothing that they name is imported.

    Raises:
        UsageError: a name is unknown or malformed.
    """
    failures: list[ModelGaugeError] = []
    for registry, names in ((plugins.tests, tests), (plugins.suts, suts)):
        dict(resolve_each(registry, [match.name for match in match_names(registry, names)], failures))
    raise_together(failures)


def resolve_each(
    registry: Registry, names: Iterable[object], failures: list[ModelGaugeError]
) -> Iterator[tuple[str, ResolvedName]]:
    """Yield each name with what it stands for; objects are skipped, and errors are added to `failures`."""
    for name in names:
        if isinstance(name, str):
            try:
                yield name, registry.resolve(name)
            except UsageError as error:
                failures.append(error)


def raise_together(failures: Sequence[ModelGaugeError], notes: Sequence[str] = ()) -> None:
    """Raise several errors as a single error, which ends with the fix of the last, and with the notes."""
    if not failures:
        return
    *others, last = failures
    if not others:
        raise last
    problem = "\n".join([*map(str, others), last.problem])
    raise type(last)(problem, fix="\n".join([last.fix, *notes]))
