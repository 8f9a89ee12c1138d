"""The folder of a run, with its manifest, journal and record; a kill at any moment loses nothing committed.

`run.json` is written first, `items.jsonl` grows by whole lines, `record.json` appears whole at the end.
"""

import json
import secrets
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modelgauge.config.settings import load_settings
from modelgauge.data.item_records import ItemRecord
from modelgauge.data.json_values import finite, is_exact
from modelgauge.data.records import TestRecord, record_from_json
from modelgauge.engine.run_files.ids import why_no_run_id
from modelgauge.engine.run_files.lines import JournalLines, unreadable
from modelgauge.engine.run_files.manifest import SIGNATURE, is_signed, signed
from modelgauge.errors import RecordError, RunStoppedError, SettingsError, UsageError
from modelgauge.files.causes import advice_for
from modelgauge.files.lock import lock
from modelgauge.files.regular import is_file, is_folder, read_bytes, real_path
from modelgauge.files.whole import replacing
from modelgauge.wording.phrases import counted

RUNS = "runs"
RUN_FILES = MANIFEST, JOURNAL, RECORD, TOTALS = "run.json", "items.jsonl", "record.json", "totals.json"
REPORT = "report.html"
"""The page of the run, which `modelgauge.reports` writes."""

MERGED_FROM = "merged_from"
"""The field of a manifest that names the runs which were joined into this run."""

BUNDLE = "bundle.json"
"""The manifest of a bundle; in a data folder, it says that the runs and the cache there were unpacked from one."""


def new_id(now: datetime | None = None, mark: str | None = None) -> str:
    """Return an id that sorts by time, so that the runs of one command keep their order.

    Processes that must make the same id give the time, in UTC, and the digit at its end.
    """
    now = now or datetime.now(UTC)
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond:05x}{mark or secrets.token_hex(1)[0]}"


class RunFolder:
    """The folder of one run. Its name is the run's id, also where its files were written under another name.

    Args:
        path: `<data-dir>/runs/<run-id>`.
    """

    def __init__(self, path: Path) -> None:
        self.path = real_path(path) if path.name in ("", "..") else path
        self.run_id = self.path.name

    @classmethod
    def create(cls, runs: Path) -> "RunFolder":
        """Make the folder of a new run among those of the others.

        Raises:
            RunStoppedError: the disk refuses.
        """
        while True:
            path = runs / new_id()
            try:
                path.mkdir(parents=True)
                return cls(path)
            except FileExistsError:
                if not path.is_dir():
                    raise
            except OSError as error:
                raise RunStoppedError(
                    f"The folder {path} cannot be made: {error}.",
                    fix="Choose another --data-dir (in Python data_dir, under pytest MODELGAUGE_DATA_DIR).",
                ) from error

    @property
    def journal(self) -> Path:
        return self.path / JOURNAL

    @property
    def totals(self) -> Path:
        return self.path / TOTALS

    def command(self, verb: str) -> str:
        """Return a command line for this run, relative to the working directory of this process.

        Args:
            verb: `show`, `resume` or `rescore`.
        """
        runs = self.path.parent
        if _default_runs() == real_path(runs):
            return f"modelgauge {verb} {self.run_id}"
        if runs.name != RUNS:
            return f"modelgauge {verb} {shlex.quote(str(self.path))}"
        return f"modelgauge {verb} {self.run_id} --data-dir {shlex.quote(str(runs.parent))}"

    def is_going_on(self) -> bool:
        """Return whether a process is working on the run now."""
        try:
            own = lock(self.journal)
        except OSError:  # there is none yet
            return False
        if own is not None:
            own.close()
        return own is None

    def is_bundled(self) -> bool:
        """Return whether the run lies in an unpacked bundle, whose cache is only for its runs."""
        return self.path.parent.name == RUNS and (self.path.parent.parent / BUNDLE).is_file()

    def is_imported(self) -> bool:
        """Return whether the run came in a bundle. A run made there later is the user's own."""
        return self.is_bundled() and SIGNATURE not in self.read_manifest()

    def forget_if_empty(self) -> None:
        """Remove the folder of a run that never began."""
        with suppress(OSError):  # nearly always: it is not empty
            self.path.rmdir()

    def write_manifest(self, manifest: Any, redact: Callable[[str], str], *, is_own: bool = True) -> None:
        """Write `run.json`, without the secrets of a command line; signed, unless somebody else's stands there.

        Args:
            manifest: JSON data.
            redact: takes secrets out of a JSON text.
            is_own: False for a new run with names that somebody else may have chosen.
        """
        path, clean = self.path / MANIFEST, json.loads(redact(json.dumps(manifest, ensure_ascii=False)))
        is_own = is_signed(self.read_manifest()) if path.exists() else is_own
        text = json.dumps(signed(clean) if is_own else clean, indent=2, ensure_ascii=False)
        write_atomically(path, f"{text}\n")

    def read_manifest(self) -> dict[str, Any]:
        data = read_json(self.path / MANIFEST)
        if not isinstance(data, dict):
            raise RecordError(f"{self.path / MANIFEST} is not a manifest.", fix="Give the folder of a run.")
        return data

    def write_record(self, record: TestRecord, redact: Callable[[str], str]) -> None:
        """Write `record.json`, without secrets that an error may have named."""
        write_atomically(self.path / RECORD, redact(record.model_dump_json(indent=2)) + "\n")

    def remove_record(self) -> None:
        """Remove `record.json` of a complete run that continues."""
        (self.path / RECORD).unlink(missing_ok=True)

    def read_record(self) -> TestRecord:
        """Read the run's record. Its items are read on demand.

        Raises:
            RecordError: there is none (the run is going on, or was killed), or it is damaged.
        """
        path = self.path / RECORD
        if not path.exists():
            going_on = self.is_going_on()
            raise RecordError(
                f"Run {self.run_id} has no record: {'it is going on' if going_on else 'it was killed'}.",
                fix="Wait for its end." if going_on else f"Continue it with: {self.command('resume')}",
            )
        try:
            data = read_json(path)
        except RecordError as error:
            fix = f"Remove it; this writes it again from the journal: {self.command('resume')}"
            raise RecordError(error.problem, fix=fix) from None
        return (
            record_from_json(data, str(path)).replaced(run_id=self.run_id).with_items(self.items, self.path)
        )

    def rescores(self) -> str | None:
        """Return the run that this run rescores; None if it asks a SUT itself.

        Raises:
            RecordError: the manifest names no run that can lie beside this run.
        """
        found = self.read_manifest().get("rescores")
        if found is None:
            return None
        if not isinstance(found, str) or why_no_run_id(found) is not None or found == self.run_id:
            raise self._damaged("rescores", f"{found!r} is not the id of another run")
        return found

    def merged_from(self) -> tuple[str, ...]:
        """Return the ids of the runs merged into this one; empty for other runs.

        Raises:
            RecordError: the manifest holds something else there.
        """
        found = self.read_manifest().get(MERGED_FROM, [])
        if not isinstance(found, list) or not all(isinstance(run_id, str) for run_id in found):
            raise self._damaged(MERGED_FROM, f"{found!r} is not a list of ids")
        return tuple(found)

    def command_line(self) -> list[str] | None:
        """Return the command line that started the run; None if it was started from Python.

        Raises:
            RecordError: the manifest holds something else there.
        """
        found = self.read_manifest().get("command")
        if found is None:
            return None
        if not isinstance(found, list) or not all(isinstance(part, str) for part in found):
            raise self._damaged("command", f"{found!r} is not a list of texts")
        return found

    def _damaged(self, field: str, why: str) -> RecordError:
        return RecordError(
            f"{self.path / MANIFEST} is damaged: {field}: {why}.",
            fix="Put the file back as it was, or start a new run: identical calls come from the cache.",
        )

    def is_complete(self) -> bool:
        """Return whether the run ended with a record for every item."""
        folder, seen = self, {self.run_id}
        while folder._came_to_its_end():
            source = folder.rescores()  # it has no more answers than that run
            if source is None or not (self.path.parent / source / MANIFEST).is_file():
                return True
            if source in seen:
                raise folder._damaged("rescores", f"run '{source}' measures the answers of this one")
            seen.add(source)
            folder = RunFolder(self.path.parent / source)
        return False

    def _came_to_its_end(self) -> bool:
        return (self.path / RECORD).exists() and not self.read_record().ended_early

    def items(self) -> Iterator[ItemRecord]:
        """Yield the item records in the order in which they were written."""
        return (line.record() for line in JournalLines(self.journal))


def merged_note(run_ids: Sequence[str]) -> str:
    """Return the note on a run that was joined from others."""
    return f"Merged from {counted(len(run_ids), 'run')}: {', '.join(run_ids)}."


def write_atomically(path: Path, text: str) -> None:
    """Replace a file: a reader finds the old or the new content, never a part.

    Raises:
        RunStoppedError: the disk refuses.
        UsageError: a name in the text, of a file or a folder, is not UTF-8.
    """
    try:
        with replacing(path) as written:
            written.write_text(text, encoding="utf-8")
    except OSError as error:
        raise refused(path, error) from error
    except UnicodeEncodeError as error:
        name = text[text.rfind('"', 0, error.start) + 1 : text.find('"', error.start)]
        raise UsageError(
            f"{path.name} cannot hold the name {name!r}, which is not UTF-8.",
            fix="Rename the file or folder, and give its new name.",
        ) from None


def refused(path: Path, error: OSError) -> RunStoppedError:
    """Return the error for a file of a run that cannot be written."""
    fix = f"{advice_for(error)}, then run `{RunFolder(path.parent).command('resume')}`."
    if isinstance(error, FileNotFoundError):
        fix = "Its folder was removed meanwhile. Run the same command again: it does not pay again for cached answers."
    return RunStoppedError(f"{path} cannot be written: {error.strerror or error}.", fix=fix)


def _default_runs() -> Path | None:
    """Return the folder of runs for commands without `--data-dir`; None if the settings cannot be read."""
    try:
        return real_path(load_settings().data_dir / RUNS)
    except SettingsError:
        return None


def read_json(path: Path, *, links: bool = False) -> Any:
    """Read a JSON file that modelgauge wrote.

    Args:
        path: of the file.
        links: whether a link to it will do: the user named it.

    Raises:
        RecordError: it cannot be read; the message names file and line.
    """
    try:
        return parsed_json(read_bytes(path, links=links).decode("utf-8"))
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError:
        raise RecordError(
            f"{path} is not UTF-8 text.",
            fix=f"Give a file that modelgauge wrote. If it is a bundle, unpack it: modelgauge unbundle {path}",
        ) from None
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is not JSON: {error}.", fix="Give a file that modelgauge wrote.") from None


def parsed_json(text: str) -> Any:
    """JSON data of a file that modelgauge wrote.

    Raises:
        ValueError: the text is no JSON, or holds what no JSON can.
    """
    data = json.loads(text, parse_float=finite, parse_constant=finite)
    if ("\\ud" in text or "\\uD" in text) and not is_exact(data):  # lone surrogates, which nothing can write
        raise ValueError("a text in it is no Unicode")
    return data


def by_invocation(runs: Path) -> tuple[dict[str, list[RunFolder]], list[RecordError]]:
    """Group runs by invocation id, both in the order of starting.

    Damaged runs do not hide others: errors of unreadable manifests come second.

    Args:
        runs: the folder of the runs.
    """
    found: list[tuple[str, str, RunFolder]] = []
    damaged: list[RecordError] = []
    for folder in runs_in(runs):
        try:
            manifest = folder.read_manifest()
        except RecordError as error:
            damaged.append(error)
            continue
        began, invocation = (
            str(manifest.get(name, folder.run_id)) for name in ("run_timestamp", "invocation_id")
        )
        found.append((began, invocation, folder))
    invocations: dict[str, list[RunFolder]] = {}
    for _, invocation, folder in sorted(found, key=lambda each: each[:2]):
        invocations.setdefault(invocation, []).append(folder)
    return invocations, damaged


def runs_in(runs: Path) -> list[RunFolder]:
    """Return all runs in a folder, oldest first."""
    paths = sorted(runs.iterdir()) if is_folder(runs) else []
    return [RunFolder(path) for path in paths if is_file(path / MANIFEST)]


def all_runs(data_dir: Path) -> list[RunFolder]:
    """Return all runs in a data folder, oldest first."""
    return runs_in(data_dir / RUNS)
