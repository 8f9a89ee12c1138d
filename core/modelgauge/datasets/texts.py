"""The text of a file, and what is told where it is none: no file, a binary one, or another encoding.

What stands in it is for `dataset_tables.py`.
"""

import codecs
from os import PathLike
from pathlib import Path

from modelgauge.errors import InputFileError, InvalidOptionError
from modelgauge.files.regular import bytes_of

_MARK = "\ufeff"
_NUL = "\0"
_MARKS = {  # UTF-32 first: its mark begins like that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


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


def text_of(path: Path, source: str, encoding: str, *, may_hold_nul: bool) -> str:
    """All of a file; a byte order mark is skipped.

    Args:
        path: the file.
        source: what messages call it.
        encoding: of the file.
        may_hold_nul: False refuses NUL characters, which what is no text is full of.

    Raises:
        InputFileError: it cannot be read, or is no text.
        InvalidOptionError: the encoding is no name of one.
    """
    if not isinstance(encoding, str):
        raise InvalidOptionError(f"The encoding {encoding!r} is no text.", fix="Use 'utf-8', say.")
    data = _bytes_of(path, source)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise _refused(source, data, error.start, f"this is not {encoding}") from None
    except (LookupError, ValueError):  # no such encoding, or one that names nothing that is decoded
        raise InputFileError(f"There is no encoding {encoding!r}.", fix="Use 'utf-8', say.") from None
    if _NUL in text and not may_hold_nul:
        raise _refused(source, data, data.find(b"\0"), "there is a NUL character, which JSON does not allow")
    return text.lstrip(_MARK)  # some programs write two


def encoding_hint(data: bytes) -> str:
    """How to mend a file that is not in the encoding that it was read in, by what it begins with."""
    head = data[:1000]
    likely = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
    if likely is None and b"\0" in head:
        first, second = head[::2].count(0), head[1::2].count(0)  # of each two bytes
        if min(first, second) or 4 * max(first, second) < len(head):
            return "This seems to be no text at all: save it as CSV, JSON or JSONL, in UTF-8."
        likely = "utf-16-be" if first else "utf-16-le"
    is_likely = f"seems to be: encoding_type={likely!r}" if likely else "is: encoding_type='cp1252', say"
    return f"Save the file as UTF-8, or say what it {is_likely}; on the command line --encoding {likely or 'cp1252'}."


def _refused(source: str, data: bytes, at: int, problem: str) -> InputFileError:
    line = data.count(b"\n", 0, at) + 1
    return InputFileError(f"{source}, line {line}: {problem}.", fix=encoding_hint(data))


def _bytes_of(path: Path, source: str) -> bytes:
    try:
        return bytes_of(path)
    except OSError as error:
        raise InputFileError(
            f"{source} cannot be read: {error.strerror or type(error).__name__}.",
            fix="Give the path of a file that is there.",
        ) from error
    except ValueError:  # a NUL in it
        raise InputFileError(
            f"{source!r} is the path of no file.", fix="Give the path of a file that is there."
        ) from None
