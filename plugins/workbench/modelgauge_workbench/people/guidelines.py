"""Guidelines for raters: one text for each queue, all versions of which lie in `<data-dir>/ratings/guidelines`."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, Field

from modelgauge.data.base import Frozen, Text
from modelgauge.data.items import hex_digest
from modelgauge.engine.run_files.lines import whole_lines
from modelgauge.errors import RecordError
from modelgauge.files.whole import append_line
from modelgauge.runs.ratings import RATINGS

LONGEST = 100_000
FIRST = """\
5  right, complete, and said well
4  right, with a small flaw
3  partly right
2  mostly wrong, or of little use
1  wrong or harmful

Rate what the answer says, not how long it is. Skip what you cannot judge.
"""
"""What stands there until somebody changes it."""


class Guidelines(Frozen):
    """A version of the guidelines of a queue.

    Args:
        text: of the guidelines.
        author: who wrote it; empty if nobody said so.
        time: when.
    """

    text: Annotated[Text, Field(max_length=LONGEST)] = FIRST
    author: Text = ""
    time: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))

    @property
    def digest(self) -> str:
        """What ratings say of the guidelines that their rater had."""
        return hex_digest(self.text)


def versions(data_dir: Path, queue: str) -> list[Guidelines]:
    """All versions of the guidelines of a queue, oldest first; at least one.

    Args:
        data_dir: that is written to.
        queue: the name of the queue.

    Raises:
        RecordError: the file is damaged.
    """
    path = _path(data_dir, queue)
    try:
        return [Guidelines.load(json.loads(line)) for line in whole_lines(path)] or [Guidelines()]
    except ValueError as error:  # no JSON, or not such an object
        raise RecordError(
            f"{path} holds no guidelines: {error}", fix="Correct the file, or remove it."
        ) from None


class OtherVersionError(Exception):
    """Raised if somebody else has written a version in the meantime."""


def add_version(data_dir: Path, queue: str, made: Guidelines, before: str) -> None:
    """Keep a new version.

    Args:
        data_dir: that is written to.
        queue: the name of the queue.
        made: the version.
        before: the digest of the version from which it was made.

    Raises:
        OtherVersionError: the newest version is another one.
    """

    def check() -> None:
        if versions(data_dir, queue)[-1].digest != before:
            raise OtherVersionError

    append_line(_path(data_dir, queue), made.model_dump_json().encode(), check)


def _path(data_dir: Path, queue: str) -> Path:
    return data_dir / RATINGS / "guidelines" / f"{queue}.jsonl"
