"""An earlier run as its manifest tells it: what it takes to do it again."""

import shlex
from typing import Any, TypeVar

from pydantic import ConfigDict, Field

from modelgauge.data.base import Frozen
from modelgauge.data.records import DatasetReference
from modelgauge.data.results import GIVEN
from modelgauge.engine.journal import MANIFEST, RunFolder
from modelgauge.errors import InvalidDataError, RecordError
from modelgauge.evals.session import UID as PYTEST

AnyPart = TypeVar("AnyPart", bound="Part")

NEW_RUN = "Start a new run: the cache pays for what is equal."
"""The fix of whatever keeps a run from being done again."""

LIMITS = (
    *("concurrency", "max_retries", "attempt_timeout", "call_timeout", "grace"),
    *("requests_per_minute", "tokens_per_minute", "max_calls", "max_tokens_total", "max_cost"),
)
"""The options that `resume` keeps where it is given no others."""


class Part(Frozen):
    """A part of a manifest: the fields that matter here."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Options(Part):
    """What the results of the run depend on, what it was called, and how it called."""

    max_test_items: int | None = Field(ge=1)
    seed: int
    repeats: int = Field(ge=1)
    reduce: str
    first_repeat: int = Field(default=0, ge=0)
    caching: bool
    sut_options: dict[str, Any]
    hyperparameters: dict[str, Any] | None = None
    identifier: str | None = None
    concurrency: int | None = None
    max_retries: int | None = None
    attempt_timeout: float | None = None
    call_timeout: float | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: int | None = None
    max_calls: int | None = None
    max_tokens_total: int | None = None
    max_cost: float | None = None
    grace: float | None = None

    def limits(self) -> dict[str, Any]:
        """How it called, and what it might spend, as far as it says so."""
        found = {name: getattr(self, name) for name in LIMITS}
        return {name: value for name, value in found.items() if value is not None}


class Inputs(Part):
    """What it was made of, beside what is registered."""

    plugins: tuple[str, ...] = Field((), strict=False)
    dependencies: dict[str, str] = Field(default_factory=dict)
    datasets: dict[str, str] = Field(default_factory=dict)
    columns: dict[str, str] = Field(default_factory=dict)
    delimiter: str | None = None
    encoding: str | None = None
    metrics: tuple[str, ...] = Field((), strict=False)
    judge: str | None = None


class Manifest(Part):
    """What a run is done again with."""

    python: str = ""
    test_uid: str
    test_initialization: dict[str, Any]
    sut_uid: str
    sut_initialization: dict[str, Any]
    dependency_versions: dict[str, str]
    dataset: DatasetReference | None = None
    annotators: dict[str, dict[str, Any]] = Field(default_factory=dict)
    judges: dict[str, dict[str, dict[str, Any]]] | None = None
    options: Options
    inputs: Inputs = Inputs()


def manifest_of(folder: RunFolder) -> Manifest:
    """The manifest of a run that can be done again.

    Raises:
        RecordError: it is damaged, or of a session of pytest.
    """
    data = folder.read_manifest()
    made = data.get("test_initialization")
    if data.get("sut_uid") == GIVEN and isinstance(made, dict) and made.get("class_name") == PYTEST:
        said = folder.command_line()
        # A manifest of anybody's may say anything.
        command = shlex.join(said) if said and said[0] in ("pytest", "modelgauge") else "pytest"
        raise RecordError(
            f"Run {folder.run_id} is of a session of pytest, whose tests made its cases.",
            fix=f"Run the tests again: {command}. What judges answered is in the cache.",
        )
    return loaded(Manifest, folder, data)


def loaded(part: type[AnyPart], folder: RunFolder, data: Any) -> AnyPart:
    """A part of a manifest.

    Args:
        part: its class.
        folder: of the run.
        data: JSON.

    Raises:
        RecordError: it is not what the class says.
    """
    try:
        return part.load(data)
    except InvalidDataError as error:
        raise RecordError(
            f"{folder.path / MANIFEST} is damaged: {error.problem}",
            fix=NEW_RUN,
        ) from None
