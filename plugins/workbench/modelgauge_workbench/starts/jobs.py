"""Jobs: what people ordered, each in a folder of its own. What became of a job follows from its files."""

import json
import os
import signal
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from modelgauge.engine.run_files.folder import new_id
from modelgauge.errors import RecordError, UsageError
from modelgauge.files.lock import lock
from modelgauge.files.regular import check_regular, is_folder, read_bytes
from modelgauge.files.whole import replacing

JobState = Literal[
    "draft", "queued", "running", "done", "stopped", "failed", "cancelled", "killed", "withdrawn"
]

_OF_EXIT_CODES: dict[int, JobState] = {0: "done", 1: "done", 3: "done", 4: "stopped", 130: "cancelled"}
_WORDS = {
    "draft": "not started: look at the estimate",
    "queued": "waits for its turn",
    "running": "running",
    "done": "done",
    "stopped": "stopped early: a limit was reached, or a system could not be asked",
    "failed": "failed before it could run: its output says why",
    "cancelled": "cancelled: what was answered is kept",
    "killed": "its process was killed: what was answered is kept",
    "withdrawn": "withdrawn",
}
_MORE_WORDS = {1: "done: a threshold was not reached", 3: "done: more items failed than allowed"}
_MOST_OF_LOG = 16_000  # bytes of its end that are shown


@dataclass(frozen=True, slots=True)
class Job:
    """One order, and what became of it.

    Args:
        path: its folder, `<data-dir>/workbench/jobs/<id>`. It holds `job.json`; `run.toml`, unless a run is resumed;
            `plans.json`, the estimate; `process`, locked by the process that works on it; `runs`, the ids of its runs;
            `log`, what the process prints; and `ended.json`, how it ended.
    """

    path: Path

    @property
    def id(self) -> str:
        """The name of its folder, which sorts by time."""
        return self.path.name

    @property
    def run_file(self) -> Path:
        """What is run."""
        return self.path / "run.toml"

    @property
    def process(self) -> Path:
        """The file that the job's process locks, and in which its id stands."""
        return self.path / "process"

    @property
    def log(self) -> Path:
        """What the process printed."""
        return self.path / "log"

    # --- what its files say -------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """What was ordered and when: `created`, `resumes` (the folder of a run), `approved` and `withdrawn`.

        Raises:
            RecordError: the file is damaged.
        """
        return _read(self.path / "job.json") or {}

    def state(self) -> JobState:
        """What became of it.

        Raises:
            RecordError: one of its files is damaged.
        """
        ended = self.ended()
        if ended is not None:
            return _OF_EXIT_CODES.get(ended["exit_code"], "failed")
        if self.process.exists():
            return "running" if self.is_held() else "killed"
        facts = self.facts()
        if facts.get("withdrawn"):
            return "withdrawn"
        return "queued" if facts.get("approved") else "draft"

    def words(self, state: JobState) -> str:
        """A state in words."""
        ended = self.ended() if state == "done" else None
        return _MORE_WORDS.get(ended["exit_code"] if ended else 0, _WORDS[state])

    def ended(self) -> dict[str, Any] | None:
        """The exit code of its process, and when it ended; None if it has not said so."""
        found = _read(self.path / "ended.json")
        return found if found is None or isinstance(found.get("exit_code"), int) else None

    def is_held(self) -> bool:
        """Whether a process works on it now."""
        try:
            own = lock(self.process, "r+b")
        except OSError:  # there is none yet, or it is not a file of ours
            return False
        if own is not None:
            own.close()
        return own is None

    def run_ids(self) -> list[str]:
        """The runs that it began, and the one that it resumes."""
        resumed = self.resumes()
        return [*dict.fromkeys([*([resumed.name] if resumed else []), *_text(self.path / "runs").split()])]

    def resumes(self) -> Path | None:
        """The folder of the run that it resumes; None if it begins new ones."""
        found = self.facts().get("resumes")
        return Path(str(found)) if found else None

    def command(self, data_dir: Path) -> tuple[str, str, Path]:
        """What is done, with what, and in which data folder: that of a run that is resumed.

        Args:
            data_dir: of what is new.
        """
        run = self.resumes()
        return (
            ("run", str(self.run_file), data_dir) if run is None else ("resume", str(run), run.parent.parent)
        )

    def log_end(self) -> str:
        """The last part of what the process printed."""
        data = _bytes(self.log)
        text = data[-_MOST_OF_LOG:].decode("utf-8", "replace")
        return text if len(data) <= _MOST_OF_LOG else text.partition("\n")[2]

    def plans(self) -> dict[str, Any] | None:
        """The estimate: `plans` as `--dry-run --json` prints them, or `problem`; None if there is none."""
        return _read(self.path / "plans.json")

    # --- what changes it ----------------------------------------------------------------------------

    def note(self, **facts: Any) -> None:
        """Change what was ordered; None takes a fact away."""
        self.write("job.json", {**self.facts(), **facts})

    def write(self, name: str, data: dict[str, Any]) -> None:
        """Write one of its files, all or nothing."""
        with replacing(self.path / name) as written:
            written.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")

    def send(self, number: int) -> bool:
        """Send a signal to the process that works on it.

        Returns:
            False if there is none. Where the system has handles of processes, no other process can be meant, also
            if this one ends now and its id is given away.
        """
        text = _text(self.process)
        if not text.isdecimal():
            return False
        if not hasattr(os, "pidfd_open"):
            if is_held := self.is_held():
                os.kill(int(text), number)
            return is_held
        try:
            handle = os.pidfd_open(int(text))
        except ProcessLookupError:
            return False
        try:
            if not self.is_held():  # its id may be another's by now
                return False
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True


def jobs_folder(data_dir: Path) -> Path:
    """Where the jobs of a data folder lie."""
    return data_dir / "workbench" / "jobs"


def new_job(data_dir: Path, *, text: str | None = None, resumes: Path | None = None) -> Job:
    """Make a job, which waits for a person's yes.

    Args:
        data_dir: the data folder.
        text: of a run file.
        resumes: the folder of a run, instead.
    """
    jobs_folder(data_dir).mkdir(parents=True, exist_ok=True)
    job = Job(jobs_folder(data_dir) / new_id())
    job.path.mkdir()
    if text is not None:
        job.run_file.write_text(text, encoding="utf-8")
    # Last: without it the folder is not a job.
    job.write("job.json", {"created": now(), "resumes": resumes and str(resumes)})
    return job


def find_job(data_dir: Path, job_id: str) -> Job:
    """The job of an id.

    Raises:
        UsageError: there is none.
    """
    job = next((job for job in jobs_of(data_dir) if job.id == job_id), None)
    if job is None:
        raise UsageError("There is no such job.", fix="The page 'Start a run' lists the jobs that there are.")
    return job


def jobs_of(data_dir: Path) -> list[Job]:
    """All jobs of a data folder, newest first."""
    folder = jobs_folder(data_dir)
    found = [Job(path) for path in folder.iterdir() if not path.is_symlink()] if is_folder(folder) else []
    return sorted(
        (job for job in found if (job.path / "job.json").is_file()), key=lambda job: job.id, reverse=True
    )


def now() -> str:
    """The time in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _bytes(path: Path) -> bytes:
    try:
        return read_bytes(path, links=False)
    except FileNotFoundError:
        return b""


def _text(path: Path) -> str:
    return _bytes(path).decode("utf-8", "replace").strip()


def _read(path: Path) -> dict[str, Any] | None:
    """The JSON object of a file; None if there is no file.

    Raises:
        RecordError: it holds something else.
    """
    if not path.exists():
        return None
    try:
        check_regular(path)
        found = json.loads(_bytes(path))
    except (OSError, ValueError) as error:
        raise RecordError(f"{path} cannot be read: {error}.", fix="Remove its folder.") from error
    if not isinstance(found, dict):
        raise RecordError(f"{path} holds no JSON object.", fix="Remove its folder.")
    return found
