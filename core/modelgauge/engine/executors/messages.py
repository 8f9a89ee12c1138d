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
| `alive` | | every second while its event loop makes progress or, before it is ready, its process runs |
| `ready` | target, problem and fix of each | it can work, but for targets that cannot be opened |
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
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, StrictStr, TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from modelgauge.data.base import Count, Frozen, Seconds
from modelgauge.data.responses import Usage
from modelgauge.engine.calls.limits import Outcome

TAB, END = b"\t", b"\n"  # neither stands in a JSON text
BEAT = 1.0
"""Seconds between two heartbeats of a worker."""

_LONGEST = 1 << 28  # bytes


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
        retry_failed: see `RunOptions`.
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
    retry_failed: bool = False


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


class MessageError(ValueError):
    """Raised for data that no worker of this version sends. The message completes "it sent"."""


class LineBuffer:
    """Splits chunks of bytes into whole lines, and keeps the rest for the next chunk.

    Args:
        longest: the maximum length of a line in bytes; None for no limit.
    """

    def __init__(self, longest: int | None = _LONGEST) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0

    def split(self, data: bytes) -> list[bytes]:
        """Return the lines that end in this chunk.

        Raises:
            MessageError: a line is too long.
        """
        first, *others = data.split(END)
        self._parts.append(first)
        self._size += len(first)
        if self._longest is not None and self._size > self._longest:
            raise MessageError(f"a line of more than {self._longest >> 20} MB")
        if not others:
            return []
        *whole, rest = others
        lines = [b"".join(self._parts), *whole]
        self._parts, self._size = [rest], len(rest)
        return lines


def _seconds(text: str) -> str:
    if not float(text) >= 0:
        raise ValueError
    return text


_After = Annotated[StrictStr, AfterValidator(_seconds)] | None
_Verdict = tuple[()] | tuple[_After, bool, bool] | None
_Growth = tuple[Count, Count, list[StrictStr], dict[StrictStr, Count]]


class WorkerMessages:
    """The messages that workers send in a run.

    Args:
        works: how many works the run has.
        targets: how many targets it has.
    """

    def __init__(self, works: int, targets: int) -> None:
        work: Any = Annotated[int, Field(ge=0, lt=works)]
        target: Any = Annotated[int, Field(ge=0, lt=targets)]
        fields: dict[str, Any] = {
            "alive": tuple[()],
            "ready": tuple[list[tuple[target, StrictStr, StrictStr]]],
            "refused": tuple[StrictStr, StrictStr],
            "record": tuple[work, Count],
            "stopped": tuple[work, Count, StrictStr, StrictStr],
            "enter": tuple[Count, target, work],
            "withdraw": tuple[Count],
            "note": tuple[Count, Outcome],
            "failed": tuple[Count, _Verdict, StrictStr],
            "limited": tuple[Count, _Verdict, StrictStr],
            "left": tuple[Count, Outcome | None, Seconds, bool],
            "settle": tuple[target, work, Usage | None],
            "tally": tuple[work, tuple[_Growth, _Growth, _Growth]],
            "reported": tuple[work, list[StrictStr]],
            "broken": tuple[StrictStr, StrictStr, bool],
            "log": tuple[StrictStr | None, int, StrictStr],
        }
        self._fields = {kind: TypeAdapter(types) for kind, types in fields.items()}

    def read(self, line: bytes) -> tuple[str, Any, bytes]:
        """Parse a line into its kind, fields and body.

        Raises:
            MessageError: the line is no valid message.
        """
        try:
            kind, fields, body = unpacked(line)
            return kind, self._fields[kind].validate_python(fields), body
        except ValidationError as error:
            raise MessageError(f"wrong fields in a message '{kind}'") from error
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise MessageError("a line that is not a message") from error


# --- lines of logs ---------------------------------------------------------------------------------


_REMEMBERED = 10_000  # lines


class OutputFilter:
    """Filter of repeated output: a line that several workers print once each is shown once."""

    def __init__(self) -> None:
        self._counts: dict[object, Counter[str]] = {}
        self._shown: Counter[str] = Counter()

    def is_new(self, speaker: object, text: str) -> bool:
        """Return whether a sender has printed a text more often than it was shown."""
        counts = self._counts.setdefault(speaker, Counter())
        counts[text] += 1
        is_new = counts[text] > self._shown[text]
        self._shown[text] += is_new
        if len(self._shown) > _REMEMBERED:
            self._counts.clear()
            self._shown.clear()
        return is_new
