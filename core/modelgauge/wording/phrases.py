"""Parts of messages: names with their article ("a str"), counts with their noun, times, and shortened long texts."""

import re
import string
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

_LETTERS = string.ascii_letters + string.digits + "_+/=.%:~-"
"""The characters of secrets. Languages without spaces have others, and are cut anywhere."""

_LONGEST_SECRET = 4096
"""Characters; a longer word is none, and is cut."""


def with_article(name: str) -> str:
    """Add the indefinite article to a name."""
    # Of an LLMTestCase the first letters are spoken one by one.
    return f"{'an' if name.startswith(('LLM', *'aeioAEIO')) else 'a'} {name}"


def a_class(kind: type) -> str:
    """Describe an object of a class."""
    return with_article(kind.__name__)


def a_thing(value: object) -> str:
    """Describe the kind of an object; None is itself."""
    return "None" if value is None else a_class(type(value))


def capitalized(text: str) -> str:
    """Capitalize the first letter, for the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def counted(number: int, singular: str, plural: str = "") -> str:
    """`1 item`, `1,200 items`; with words that agree: `counted(n, "item was", "items were")`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def first_few(names: Sequence[str], most: int) -> str:
    """Join names with commas, `a, b`; of more than `most`, show the first, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def in_common(one: Sequence[object], other: Sequence[object]) -> int:
    """Return the length of the common prefix of two texts or lists."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (first, second) in pairs if first != second), min(len(one), len(other)))


def time_in(seconds: float) -> str:
    """Format the local time in so many seconds, with the date if it is on another day."""
    now = datetime.now().astimezone()
    then = now + timedelta(seconds=seconds)
    return f"{then:%H:%M:%S}" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M}"


def parse_time(text: str) -> datetime:
    """Parse a time: a date, in UTC unless specified, or hours or days ago (`12h`, `7d`).

    Raises:
        ValueError: it is neither.
    """
    if ago := re.fullmatch(r"(\d{1,5})([dh])", text):
        return datetime.now(UTC) - timedelta(hours=int(ago[1]) * (24 if ago[2] == "d" else 1))
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


# --- long texts, cut between words: half a secret is none that the redactor would know --------------


def beginning(text: str, most: int) -> str:
    """Return a text, truncated to `most` characters and an ellipsis."""
    return text if len(text) <= most else f"{_head(text, most)}…"


def quoted(text: str, most: int) -> str:
    """Quote a text, truncated with an ellipsis."""
    return repr(text) if len(text) <= most else f"{_head(text, most)!r}…"


def ends(text: str, most: int) -> str:
    """Return a text, or both its ends, and the length of the omitted part."""
    if len(text) <= most:
        return text
    head, tail = _head(text, most // 2), _head(text[::-1], most // 2)[::-1]
    return f"{head} […{counted(len(text) - len(head) - len(tail), 'character')}…] {tail}"


def _head(text: str, most: int) -> str:
    head = text[:most]
    whole = head.rstrip(_LETTERS) if text[most] in _LETTERS else head
    return whole if len(head) - len(whole) <= _LONGEST_SECRET else head


# --- texts on one line, and on several -----------------------------------------------------------


def one_line(text: str, most: int) -> str:
    """Return the text on one line of at most `most` characters, with white space collapsed."""
    line = " ".join(text[: 4 * most + 200].split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def keep_ends(text: str, most: int) -> str:
    """Return the text on one line of at most `most` characters, cut in the middle, because messages end with the
    fix.
    """
    reach = 4 * most + 200
    whole = text if len(text) <= 2 * reach else f"{text[:reach]} {text[-reach:]}"
    line = " ".join(whole.split())
    if len(line) <= most:
        return line
    end = (most - 5) * 2 // 3
    return f"{line[: most - 5 - end].rstrip()} ... {line[-end:].lstrip()}"


def indented(text: str, indent: str = "  ") -> str:
    """Indent each line of a text."""
    return "\n".join(f"{indent}{line}".rstrip() for line in text.split("\n"))
