"""Names as users write them: `uid`, `provider/model`, either with `?key=value&…`. Their syntax only.

Which names exist is the registry's; what the values of options mean is the constructor's, see `construct.py`.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from modelgauge.errors import InvalidOptionError

# What a value holds as it is, so that URLs and paths stay readable.
_PLAIN = "/:@$!*'();=~"


def uid_problem(uid: object) -> str | None:
    """Why this cannot be a uid; None where it can."""
    if not isinstance(uid, str) or not uid:
        return "a uid is a text that is not empty"
    if uid.split() != [uid] or not uid.isprintable():
        return "a uid has no white space"
    if "?" in uid:
        return "a uid has no '?': options begin there"
    return None


def provider_problem(prefix: object) -> str | None:
    """Why this cannot be the prefix of a provider; None where it can."""
    if isinstance(prefix, str) and "/" in prefix:
        return "a provider has no '/': the model begins there"
    return uid_problem(prefix)


def split_name(name: str) -> tuple[str, dict[str, str]]:
    """Split a name at its first `?`.

    Returns:
        What stands before the `?`, and the options: keys decoded, values as written.

    Raises:
        InvalidOptionError: an option without `=` or without a key, or a key that is given twice.
    """
    base, has_options, query = name.partition("?")
    options: dict[str, str] = {}
    for part in query.split("&") if has_options else ():
        key_as_written, equals, value = part.partition("=")
        key = decode(key_as_written)
        if not (equals and key):
            raise InvalidOptionError(
                f"{name!r}: {part!r} is no option.", fix="Write NAME?key=value&key=value."
            )
        if key in options:
            raise InvalidOptionError(f"{name!r} gives {key!r} twice.", fix="Give it once; lists take commas.")
        options[key] = value
    return base, options


def join_name(base: str, options: dict[str, str]) -> str:
    """The one spelling of a name: options sorted by key; the values are already in their one spelling."""
    query = "&".join(f"{quote(key, safe='')}={value}" for key, value in sorted(options.items()))
    return f"{base}?{query}" if query else base


def decode(text: str) -> str:
    """Resolve percent-encoding; `+` stays a plus.

    Raises:
        InvalidOptionError: the bytes are not UTF-8.
    """
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidOptionError(f"{text!r} is not percent-encoded UTF-8.", fix="Encode it anew.") from None


def encode(text: str, *, within_list: bool = False) -> str:
    """Percent-encode a value, or one element of a list, in its one spelling."""
    return quote(text, safe=_PLAIN if within_list else _PLAIN + ",")
