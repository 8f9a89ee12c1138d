"""The options of `modelgauge test run` that concern `assert_test`, each declared once by a field."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from modelgauge.config.options import option

Display = Literal["all", "failing", "passing"]


@dataclass(frozen=True, slots=True)
class TestRunOptions:
    """The options that the processes of a session get from the command."""

    __test__ = False

    repeat: int = option(
        1,
        "Run each test N times, and ask judges again each time; the record has the means of each case.",
        ge=1,
        metavar="N",
    )
    use_cache: bool = option(
        True,
        "Whether earlier answers of judges are used again.  [default: --use-cache]",
        metavar="",
        flags=("--use-cache/--no-caching",),
    )
    ignore_errors: bool = option(
        False, "Let a metric without a score fail its case, instead of raising its error.", metavar=""
    )
    skip_on_missing_params: bool = option(
        False, "Skip metrics that need a field that a test case does not have.", metavar=""
    )
    display: Display = option(
        "all", "Which test cases are listed at the end.", metavar="[all|failing|passing]"
    )
    identifier: str | None = option(None, "A name for this run.", metavar="NAME")
    folder_file: str | None = None
    """The file into which the session writes the folder of its run, for the command."""
    command_file: str | None = None
    """The file that holds the command line; None if pytest was called directly."""

    def command_line(self) -> list[str] | None:
        """Return the command line of `modelgauge test run`; None if pytest was called directly."""
        if self.command_file is None:
            return None
        command: list[str] = json.loads(Path(self.command_file).read_text(encoding="utf-8"))
        return command

    def recorded(self) -> dict[str, Any]:
        """Return the options for the manifest."""
        return {
            name: value for name, value in asdict(self).items() if name not in ("folder_file", "command_file")
        }

    def as_json(self) -> str:
        """Return the options as JSON, for the processes of the session."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "TestRunOptions":
        """Make the options of what `as_json` returned."""
        return cls(**json.loads(text))
