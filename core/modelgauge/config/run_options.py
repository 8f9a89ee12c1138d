"""The options of a run, each declared once by a field of `RunOptions`.

The command line, the settings, `Runner`, the manifest of a run and `resume` follow from the fields. Nothing here
imports pydantic, since `modelgauge list` reads the settings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from modelgauge.config.options import (
    FIELD,
    FOLDER,
    Option,
    Values,
    check_options,
    declared,
    instance_of,
    is_number,
    option,
    options_in,
)
from modelgauge.config.redaction import Redactor
from modelgauge.wording.visible import without_password

if TYPE_CHECKING:
    from modelgauge.data.prompts import SUTOptions

Group = Literal["storage", "record", "sample", "results", "calls", "limits", "workers", "code", "process"]
"""Subjects of options.

The results of a run depend on `sample` and `results`, so `resume` changes none of them. `calls`, `limits` and `workers`
(where the items are worked on) stay as they were unless others are given. `record` is for readers alone. `code` (what
may run here) and `process` are not recorded.
"""

_SECONDS = "a number of seconds above 0"
_JSON = instance_of(Mapping, "a dict")
_PLACES = Values(
    "two places, the first of them 0 or more: (0, 500), on the command line 0:500",
    lambda value: (
        isinstance(value, tuple | list)
        and len(value) == 2
        and all(is_number(place, int) for place in value)
        and 0 <= value[0] < value[1]
    ),
    read=lambda text: tuple(map(int, text.split(":"))),
)
_SUT_OPTIONS = Values("SUTOptions(…)", lambda value: isinstance(value, type(_no_sut_options())))


def _no_sut_options() -> "SUTOptions":
    made: SUTOptions = import_module("modelgauge.data.prompts").SUTOptions()  # which needs pydantic
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run, and what else the engine is told.

    Raises:
        InvalidOptionError: an option cannot have the given value.
    """

    data_dir: Path = option(
        Path("run_data"), "The folder of runs, cache and external data.", group="storage", values=FOLDER
    )
    runs_dir: str | Path | None = option(
        None,
        "The folder in which runs get their folders; by default `runs` in data_dir.",
        group="storage",
        values=FOLDER,
    )
    cache: str | None = option(
        None,
        "Cache of responses, so that each is paid for once: a folder, or the URL of a server that machines share "
        "(postgresql://…, redis://…); by default `cache` in data_dir.",
        group="storage",
    )
    caching: bool = option(True, "False asks for every answer again, and stores none.", group="storage")
    identifier: str | None = option(None, "A name for this run.", group="record")
    hyperparameters: Mapping[str, Any] = field(
        default_factory=dict,
        metadata=declared(
            "The settings of the measured app; JSON, for the record.", group="record", values=_JSON
        ),
    )
    max_test_items: int | None = option(
        None,
        "Measure only this many items, which the seed chooses; a smaller choice is part of a larger choice.",
        group="sample",
        ge=1,
        metavar="N",
        flags=("-m", "--max-test-items"),
    )
    seed: int = option(0, "The seed of the choice of items.", group="sample", metavar="N")
    item_range: tuple[int, int] | None = option(
        None,
        "Measure only the items of these places, the second excluded: 0:500, in Python (0, 500), for the first 500. "
        "With it, several machines share a run, whose parts `modelgauge merge` joins.",
        group="sample",
        values=_PLACES,
        metavar="FIRST:END",
    )
    repeats: int = option(
        1,
        "Ask each prompt this many times, each time for a new answer.",
        group="results",
        ge=1,
        metavar="N",
    )
    reduce: str = option(
        "mean",
        "Reduction of the measurements of the repeats to one: mean, majority, min, max, all, pass@K, pass^K or MofN.",
        group="results",
        metavar="HOW",
    )
    cluster: str | None = option(
        None,
        "Make intervals that treat items with equal values in this field of their context, or column of the data set, "
        "as dependent. An item without the field is a cluster by itself.",
        group="results",
        wanted=FIELD,
        metavar="FIELD",
    )
    finite: bool = option(
        False,
        "Make intervals for the items of this test only, not for all items like these.",
        group="results",
        metavar="",
    )
    first_repeat: int = option(
        0,
        "The number of the first repeat of all calls, those of judges too. The cache answers a call only with an "
        "answer to the same number.",
        group="results",
        ge=0,
    )
    sut_options: "SUTOptions" = field(
        default_factory=_no_sut_options,
        metadata=declared(
            "Options that override those of each prompt.", group="results", values=_SUT_OPTIONS
        ),
    )
    executor: str = option(
        "local",
        "Executor that processes the items: local (this process), processes (several on this machine), or the executor "
        "of a plugin, with options after its name: 'ray?address=HOST:6379&gpus=1'.",
        group="workers",
        metavar="NAME",
    )
    workers: int | None = option(
        None,
        "Number of workers; by default the executor chooses: processes has one for each processor.",
        group="workers",
        ge=1,
        metavar="N",
    )
    concurrency: int | None = option(
        None,
        "Calls at once of each SUT and annotator; by default the engine finds out how many are best.",
        group="calls",
        ge=1,
        metavar="N",
    )
    max_retries: int = option(
        4,
        "Further attempts after a failed attempt; 0 for none at all. Attempts that meet a rate limit or an unreachable "
        "server do not count.",
        group="calls",
        ge=0,
        metavar="N",
    )
    attempt_timeout: float = option(
        120,
        "Seconds for one attempt of a call.",
        group="calls",
        gt=0,
        wanted=_SECONDS,
        metavar="SECONDS",
        flags=("--timeout",),
    )
    call_timeout: float = option(
        600,
        "Seconds for all attempts of a call and the pauses between them. It is also the longest wait for a server that "
        "became unreachable, and for the answer to a call that another process makes.",
        group="limits",
        gt=0,
        wanted=_SECONDS,
        metavar="SECONDS",
    )
    requests_per_minute: float | None = option(
        None,
        "Most requests a minute of each SUT; 0.5 for one in two minutes.",
        group="limits",
        gt=0,
        metavar="N",
    )
    tokens_per_minute: int | None = option(
        None, "Most tokens a minute of each SUT, as it reports them.", group="limits", ge=1, metavar="N"
    )
    max_calls: int | None = option(
        None, "Stop after this many calls; 0 uses the cache only.", group="limits", ge=0, metavar="N"
    )
    max_tokens_total: int | None = option(
        None, "Stop when SUTs have reported this many tokens.", group="limits", ge=0, metavar="N"
    )
    max_cost: float | None = option(
        None,
        "Stop when SUTs have reported a cost of this many US dollars.",
        group="limits",
        ge=0,
        metavar="USD",
    )
    only_cached: bool = option(
        False, "Send nothing: a call that the cache does not answer fails its item.", group="limits"
    )
    grace: float = option(
        5, "Seconds that calls under way get when the run is interrupted.", group="limits", ge=0
    )
    allow_code: bool = option(
        False,
        "Run the code that the SUT writes, where a test measures by that: on this machine, with your rights.",
        group="code",
        metavar="",
    )
    progress: bool = option(False, "Show a progress bar.", group="process")
    redactor: Redactor = field(default_factory=Redactor)
    """Knows the secrets that must not be written anywhere."""
    first_patience: float = 30
    """Seconds that are waited for a server that has never answered: its address may be wrong."""
    retry_failed: bool = False
    """Ask the failed items of the run again, and replace unusable answers in the cache."""

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def runs(self) -> Path:
        """The folder that holds the folders of runs."""
        return Path(self.runs_dir) if self.runs_dir is not None else self.data_dir / "runs"

    @property
    def reduction(self) -> str | None:
        """The reduction of several repeats to one number, if it is not their mean."""
        return None if self.repeats == 1 or self.reduce == "mean" else self.reduce

    def recorded(self) -> dict[str, Any]:
        """Return the options for a run's manifest."""
        unrecorded = list_options("code", "process")
        kept = {name: getattr(self, name) for name in OPTIONS if name not in unrecorded}
        asked = self.sut_options.model_dump(mode="json", exclude_none=True)
        cache = self.cache
        if cache is not None:
            cache = without_password(cache) if "://" in cache else str(Path(cache).absolute())
        places = {"data_dir": str(self.data_dir), "runs_dir": str(self.runs), "cache": cache}
        return {**kept, **places, "sut_options": asked}


OPTIONS: dict[str, Option] = options_in(RunOptions)
"""Each option by its name."""


def list_options(*groups: Group) -> list[str]:
    """Return the names of the options in some groups."""
    return [name for name, info in OPTIONS.items() if info.group in groups]
