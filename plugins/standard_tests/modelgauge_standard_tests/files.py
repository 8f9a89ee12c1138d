"""Reading published files: what is not as published is an error that names the file and the place in it.

What the files mean is the tests' business, each in its own module.
"""

import json
from pathlib import Path
from typing import Any

from modelgauge.errors import InputFileError


def read_text(path: Path, source: str) -> str:
    """Read a text file, with line ends as `\\n` on every system.

    Args:
        path: of a UTF-8 file.
        source: the address of the published file, for the error.

    Raises:
        InputFileError: it cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise not_as_published(f"{path} cannot be read: {error.strerror}.", source) from error
    except UnicodeDecodeError as error:
        raise not_as_published(
            f"{path} is not UTF-8: {error.reason} at byte {error.start:,}.", source
        ) from error


def parse_json(text: str, place: str, source: str) -> Any:
    """Parse a JSON value.

    Args:
        text: the JSON.
        place: where it stands, such as `FILE, line 3`; begins the message.
        source: as above.

    Raises:
        InputFileError: it is not JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise not_as_published(f"{place}: not JSON: {error}.", source) from error


def text_field(row: Any, key: str, place: str, source: str) -> str:
    """Return the text under a key of a JSON object.

    Raises:
        InputFileError: the row is not an object, or there is no text under the key.
    """
    value = row.get(key) if isinstance(row, dict) else None
    if not isinstance(value, str) or not value.strip():
        raise not_as_published(f"{place}: no object with a text '{key}'.", source)
    return value


def not_as_published(problem: str, source: str) -> InputFileError:
    """Return the error for a file that a test cannot use."""
    return InputFileError(problem, fix=f"Use the published file: {source}")
