"""The lines between driver and workers: a JSON list of a kind and its fields, then optionally a tab and a JSON text.

The text after the tab is an item, or a line of the journal; it can be passed on unread.

| to a worker | fields | means |
| --- | --- | --- |
| `brief` | | the work, by names (behind the tab): see `Brief` |
| `item` | work, index, classes | an item, and maybe recorded answers (behind tabs); its contexts' classes |
| `drop` | work, index | the item is no longer wanted |
| `go`, `refuse` | call; answers so far, or problem and fix | the call may be sent, or no call may |
| `halt` | target | calls of a target, or of all (null), wait no longer: none will be sent |
| `report` | work | send what the record shall say of the work |
| `end` | | there is no more work |

| from a worker | fields | means |
| --- | --- | --- |
| `ready` | problem and fix by target | it can work, but for targets that cannot be opened |
| `refused` | problem, fix | it cannot do what the brief says |
| `record` | work, index | the journal's line of an item (behind the tab), whose calls are committed |
| `stopped` | work, index, problem, fix | the item was given up, since no call may be sent |
| `enter`, `withdraw` | call, target, work; call | a call wants to be sent, or does not any more |
| `note`, `failed`, `limited`, `left` | call, … | what became of it: see `remote_admission.py` |
| `settle` | target, work, usage | what an answer took |
| `tally` | work, counts | answers since the last such line |
| `reported` | work, notes | all that the worker has to say of the work |
| `broken` | problem, fix, lost | the disk or the cache refuses; if `lost`, no record of this worker comes any more |
| `log` | logger, level, text | a line of its log; no logger: a warning |
"""

from collections import Counter
from typing import Any

from pydantic import ConfigDict, Field
from pydantic_core import from_json, to_json

from modelgauge.data.base import Frozen

TAB, END = b"\t", b"\n"  # neither stands in a JSON text


class Brief(Frozen):
    """The names and options by which workers make the objects of a command.

    Args:
        works: a manifest for each, as `run.json` has it.
        folders: of their runs, in the same order.
        answers: the folders of the runs whose answers are measured; None if a SUT is asked.
        data_dir: the data folder.
        cache: where responses are kept; None for the data folder.
        secrets: values by name, if the executor hands them to its workers.
        files: SHA-256 of the plugin files.
        path: where modules are imported from, on the same machine; None elsewhere.
        log_level: of the driver's log.
    """

    model_config = ConfigDict(extra="ignore", strict=True)

    works: tuple[dict[str, Any], ...] = Field(strict=False)
    folders: tuple[str, ...] = Field(strict=False)
    answers: tuple[str | None, ...] = Field(strict=False)
    data_dir: str
    cache: str | None
    secrets: dict[str, str] | None = None
    files: dict[str, str] = Field(default_factory=dict)
    path: tuple[str, ...] | None = Field(None, strict=False)
    log_level: int = 30


def packed(kind: str, *fields: Any, body: bytes = b"") -> bytes:
    """Write a message of driver or worker as a line.

    Args:
        kind: of the message.
        fields: JSON values.
        body: a JSON text, without its end of line.
    """
    head = to_json([kind, *fields])
    return head + TAB + body + END if body else head + END


def unpacked(line: bytes) -> tuple[str, list[Any], bytes]:
    """Kind, fields and body of a line."""
    head, _, body = line.partition(TAB)
    kind, *fields = from_json(head)
    return kind, fields, body


# --- lines of logs ---------------------------------------------------------------------------------


_REMEMBERED = 10_000  # lines


class ShownOnce:
    """Which lines were shown: what each of several speakers says once is shown once."""

    def __init__(self) -> None:
        self._counts: dict[object, Counter[str]] = {}
        self._shown: Counter[str] = Counter()

    def is_new(self, speaker: object, text: str) -> bool:
        """Whether a sender has repeated a text more often than it was shown."""
        counts = self._counts.setdefault(speaker, Counter())
        counts[text] += 1
        is_new = counts[text] > self._shown[text]
        self._shown[text] += is_new
        if len(self._shown) > _REMEMBERED:
            self._counts.clear()
            self._shown.clear()
        return is_new
