"""JSON Lines: one JSON value a line, read and written by `jsonlines`, with exact numbers, and no key twice.

Which lines count in a file that only grows, such as a journal, is in `engine/run_files/lines.py`.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from contextlib import suppress
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any

from modelgauge.errors import InputFileError
from modelgauge.files.regular import decode_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import jsonlines


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {name!r} is there twice")
    return made


DECODER = json.JSONDecoder(object_pairs_hook=_make_object)
"""JSON in which no key is there twice."""


def why_no_json(error: BaseException) -> str:
    """Return the message for a ValueError or RecursionError of `DECODER`, without the position."""
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return error.msg.removesuffix(" at") if isinstance(error, json.JSONDecodeError) else str(error)


# --- reading ----------------------------------------------------------------------------------------------------------


def read_json_lines(lines: Iterable[str | bytes], source: str) -> Iterator[tuple[str, Any]]:
    """Yield the place and the value of each line. The value of a line that is not JSON is a ValueError with the reason.

    Args:
        lines: as `text_lines` yields them, or bytes of UTF-8; blank lines are skipped.
        source: their file, for messages.
    """
    place = source

    def placed() -> Iterator[str | bytes]:
        nonlocal place
        for number, line in enumerate(lines, start=1):
            place = f"{source}, line {number}"
            yield line

    module = _jsonlines()
    reader = module.Reader(placed(), loads=DECODER.decode)
    while True:
        try:
            value: Any = reader.read(allow_none=True, skip_empty=True)
        except EOFError:
            return
        except (module.InvalidLineError, RecursionError) as error:
            value = ValueError(why_no_json(error.__cause__ or error))
        yield place, value


def text_lines(file: IO[bytes], source: str, encoding: str) -> Iterator[str]:
    r"""Yield the lines of a text without their ends: `\n`, `\r\n` or `\r`. JSON may hold the others, such as U+2028.

    Args:
        file: open for reading, at its start. It is not held in memory.
        source: its path, for messages.
        encoding: of the text; a byte order mark is skipped.

    Raises:
        InputFileError: it is not a text of this encoding, or holds NUL characters; the message names the line.
        InvalidOptionError: the encoding is not a text.
    """
    with suppress(LookupError, TypeError, ValueError):  # what is wrong is said below, with its line
        yield from _decoded_lines(file, encoding)
        return
    file.seek(0)
    decode_text(file.read(), source, encoding, may_hold_nul=False)
    raise InputFileError(f"{source} was changed while it was read.", fix="Read it again.")


def _decoded_lines(file: IO[bytes], encoding: str) -> Iterator[str]:
    text = io.TextIOWrapper(file, encoding)
    try:
        for number, line in enumerate(text):
            if "\0" in line:
                raise ValueError("a NUL character")
            unmarked = line if number else line.lstrip("\ufeff")  # some programs write two byte order marks
            yield unmarked.removesuffix("\n")
    finally:
        text.detach()  # else the file would be closed with it


# --- writing ----------------------------------------------------------------------------------------------------------


def dumps_exactly(value: Any) -> str:
    """Return the JSON of a value, with all characters as they are.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def json_lines_writer(
    file: IO[str] | IO[bytes], dumps: Callable[[Any], str | bytes] = dumps_exactly
) -> jsonlines.Writer:
    r"""Return what writes values to a file, each on a line that ends with `\n`.

    Args:
        file: open for writing.
        dumps: makes JSON of a value.
    """
    writer: jsonlines.Writer = _jsonlines().Writer(file, dumps=dumps)
    return writer


def _jsonlines() -> Any:
    return import_module("jsonlines")  # on use: it imports attrs, and most runs read and write no JSON Lines
