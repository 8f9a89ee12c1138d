"""The texts of files that users name: a path, its bytes, and these decoded, with what is said where one is none."""

import codecs
from os import PathLike
from pathlib import Path

from modelgauge.errors import InputFileError, InvalidOptionError
from modelgauge.files.regular import bytes_of


def path_of(file_path: str | PathLike[str]) -> Path:
    """The path that a caller means.

    Raises:
        InvalidOptionError: it is none.
    """
    try:
        return Path(file_path)
    except TypeError:
        raise InvalidOptionError(
            f"A value of type {type(file_path).__name__} is no path of a file.",
            fix="Give the path as a text or a pathlib.Path.",
        ) from None


def bytes_of_file(path: str | PathLike[str]) -> bytes:
    """What a regular file holds.

    Raises:
        InputFileError: it cannot be read.
        InvalidOptionError: the path is none.
    """
    file = path_of(path)
    try:
        return bytes_of(file)
    except (OSError, ValueError) as error:  # a ValueError for a NUL in the path
        why = getattr(error, "strerror", None) or str(error)
        raise InputFileError(
            f"{path} cannot be read: {why}.", fix="Give the path of a file that is there."
        ) from error


_BYTE_ORDER_MARKS = {  # UTF-32 first: its mark begins like that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def text_of(data: bytes, source: str, encoding: str, *, may_hold_nul: bool) -> str:
    """Decode what a file holds; a byte order mark is skipped.

    Args:
        data: all of the file.
        source: its path, for messages.
        encoding: by name.
        may_hold_nul: False refuses NUL characters, which what is no text is full of.

    Raises:
        InputFileError: it is no text of this encoding; the message names the line, and what it may be.
        InvalidOptionError: the encoding is no text.
    """
    if not isinstance(encoding, str):
        raise InvalidOptionError(f"The encoding {encoding!r} is no text.", fix="Use 'utf-8', say.")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        at, problem = error.start, f"this is not {encoding}"
    except (LookupError, ValueError):  # no such encoding, or one that names nothing that is decoded
        raise InputFileError(f"There is no encoding {encoding!r}.", fix="Use 'utf-8', say.") from None
    else:
        if may_hold_nul or "\0" not in text:
            return text.lstrip("\ufeff")  # some programs write two byte order marks
        at, problem = data.find(b"\0"), "there is a NUL character, which JSON does not allow"
    line = data.count(b"\n", 0, at) + 1
    raise InputFileError(f"{source}, line {line}: {problem}.", fix=_encoding_hint(data[:1000]))


def _encoding_hint(head: bytes) -> str:
    likely = next((name for mark, name in _BYTE_ORDER_MARKS.items() if head.startswith(mark)), None)
    if likely is None and b"\0" in head:
        first, second = head[::2].count(0), head[1::2].count(0)  # of each two bytes
        if min(first, second) or 4 * max(first, second) < len(head):
            return "This seems to be no text at all: save it as CSV, JSON or JSONL, in UTF-8."
        likely = "utf-16-be" if first else "utf-16-le"
    is_likely = f"seems to be: encoding_type={likely!r}" if likely else "is: encoding_type='cp1252', say"
    return f"Save the file as UTF-8, or say what it {is_likely}; on the command line --encoding {likely or 'cp1252'}."
