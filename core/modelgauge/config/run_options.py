"""The options of a run: the values, the meaning and the group of each, in one place.

The command line, the settings, `Runner`, the manifest of a run and `resume` follow from it. Nothing here imports
pydantic, since `modelgauge list` reads the settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from modelgauge.config.options import (
    ABOVE_0,
    FIELD,
    FOLDER,
    FROM_0,
    TEXT,
    YES_NO,
    OptionInfo,
    Values,
    check_options,
    info,
    instance_of,
    is_number,
    option,
    options_in,
    whole_number,
)
from modelgauge.config.redaction import Redactor
from modelgauge.wording.visible import without_password

if TYPE_CHECKING:
    from modelgauge.data.prompts import SUTOptions

Group = Literal["storage", "record", "sample", "results", "calls", "limits", "workers", "process"]
"""What an option concerns.

The results of a run depend on `sample` and `results`, so `resume` changes none of them. `calls`, `limits` and `workers`
(where the items are worked on) stay as they were unless others are given. `record` is for readers alone, and `process`
is not recorded.
"""

_TIMEOUT = ABOVE_0._replace(wanted="a number of seconds above 0")
_JSON = instance_of(Mapping, "a dict")
_PLACES = Values(
    "two places, the first of them 0 or more: (0, 500)",
    lambda value: (
        isinstance(value, tuple | list)
        and len(value) == 2
        and all(is_number(place, int) for place in value)
        and 0 <= value[0] < value[1]
    ),
)
_SUT_OPTIONS = Values("SUTOptions(…)", lambda value: isinstance(value, type(_no_sut_options())))


def _no_sut_options() -> SUTOptions:
    made: SUTOptions = import_module("modelgauge.data.prompts").SUTOptions()  # which needs pydantic
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run.

    Args:
        data_dir: The folder of runs, cache and external data.
        runs_dir: The folder in which runs get their folders; by default `runs` in data_dir.
        cache: Where responses are stored, so that each is paid once: a folder, or the URL of a server that machines
            share (postgresql://…, redis://…); by default `cache` in data_dir.
        caching: False asks for every answer again, and stores none.
        identifier: A name for this run.
        hyperparameters: The settings of the measured app; JSON, for the record.
        max_test_items: Measure only this many items, which the seed chooses; a smaller choice is part of a larger
            choice.
        seed: The seed of the choice of items.
        item_range: Measure only the items of these places, the second excluded: (0, 500) for the first 500. With it,
            several processes share a run.
        repeats: Ask each prompt this many times, each time for a new answer.
        reduce: How the measurements of the repeats become one: mean, majority, max or pass@K.
        cluster: Make intervals that treat items with equal values in this field of their context, or column of the
            data set, as dependent. An item without the field is a cluster by itself.
        finite: Make intervals for the items of this test only, not for all items like these.
        first_repeat: The number of the first repeat of all calls, those of judges too. The cache answers a call only
            with an answer to the same number.
        sut_options: Options that override those of each prompt.
        executor: What works on the items: local (this process), processes (several on this machine), or the executor
            of a plugin, with options after its name: 'ray?address=HOST:6379&gpus=1'.
        workers: Number of workers; by default the executor chooses: processes has one for each processor.
        concurrency: Calls at once of each SUT and annotator; by default the engine finds out how many are best.
        max_retries: Further attempts after a failed attempt; 0 for none at all. Attempts that meet a rate limit or an
            unreachable server do not count.
        attempt_timeout: Seconds for one attempt of a call.
        call_timeout: Seconds for all attempts of a call and the pauses between them. It is also the longest wait for a
            server that became unreachable, and for the answer to a call that another process makes.
        requests_per_minute: Most requests a minute of each SUT; 0.5 for one in two minutes.
        tokens_per_minute: Most tokens a minute of each SUT, as it reports them.
        max_calls: Stop after this many calls; 0 uses the cache only.
        max_tokens_total: Stop when SUTs have reported this many tokens.
        max_cost: Stop when SUTs have reported a cost of this many US dollars.
        only_cached: Send nothing: a call that the cache does not answer fails its item.
        grace: Seconds that calls under way get when the run is interrupted.
        progress: Show a progress bar.
        redactor: Knows the secrets that must not be written anywhere.
        first_patience: Seconds that are waited for a server that has never answered: its address may be wrong.
        retry_failed: Ask the failed items of the run again, and replace unusable answers in the cache.

    Raises:
        InvalidOptionError: an option cannot have the given value.
    """

    data_dir: Path = option(Path("run_data"), "storage", FOLDER)  # noqa: RUF009  it makes a field
    runs_dir: str | Path | None = option(None, "storage", FOLDER)  # noqa: RUF009  likewise
    cache: str | None = option(None, "storage", TEXT)
    caching: bool = option(True, "storage", YES_NO)
    identifier: str | None = option(None, "record", TEXT)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict, metadata=info(None, "record", _JSON))
    max_test_items: int | None = option(None, "sample", whole_number(1), "N", "-m", "--max-test-items")
    seed: int = option(0, "sample", whole_number(), "N")
    item_range: tuple[int, int] | None = option(None, "sample", _PLACES)
    repeats: int = option(1, "results", whole_number(1), "N")
    reduce: str = option("mean", "results", TEXT, "HOW")
    cluster: str | None = option(None, "results", FIELD, "FIELD")
    finite: bool = option(False, "results", YES_NO, "")
    first_repeat: int = option(0, "results", whole_number(0))
    sut_options: SUTOptions = field(
        default_factory=_no_sut_options, metadata=info(None, "results", _SUT_OPTIONS)
    )
    executor: str = option("local", "workers", TEXT, "NAME")
    workers: int | None = option(None, "workers", whole_number(1), "N")
    concurrency: int | None = option(None, "calls", whole_number(1), "N")
    max_retries: int = option(4, "calls", whole_number(0), "N")
    attempt_timeout: float = option(120, "calls", _TIMEOUT, "SECONDS", "--timeout")
    call_timeout: float = option(600, "limits", _TIMEOUT, "SECONDS")
    requests_per_minute: float | None = option(None, "limits", ABOVE_0, "N")
    tokens_per_minute: int | None = option(None, "limits", whole_number(1), "N")
    max_calls: int | None = option(None, "limits", whole_number(0), "N")
    max_tokens_total: int | None = option(None, "limits", whole_number(0), "N")
    max_cost: float | None = option(None, "limits", FROM_0, "USD")
    only_cached: bool = option(False, "limits", YES_NO)
    grace: float = option(5, "limits", FROM_0)
    progress: bool = option(False, "process", YES_NO)
    redactor: Redactor = field(default_factory=Redactor)
    first_patience: float = 30
    retry_failed: bool = False

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def runs(self) -> Path:
        """The folder that holds the folders of runs."""
        return Path(self.runs_dir) if self.runs_dir is not None else self.data_dir / "runs"

    @property
    def reduction(self) -> str | None:
        """How several repeats become one number, where that is not their mean."""
        return None if self.repeats == 1 or self.reduce == "mean" else self.reduce

    def recorded(self) -> dict[str, Any]:
        """The options as a run's manifest keeps them."""
        kept = {name: getattr(self, name) for name, info in OPTIONS.items() if info.group != "process"}
        asked = self.sut_options.model_dump(mode="json", exclude_none=True)
        cache = self.cache
        if cache is not None:
            cache = without_password(cache) if "://" in cache else str(Path(cache).absolute())
        places = {"data_dir": str(self.data_dir), "runs_dir": str(self.runs), "cache": cache}
        return {**kept, **places, "sut_options": asked}


class RunOptionsDict(TypedDict, total=False):
    """The options of a run that functions take by name alone; what each means is in `OPTIONS`."""

    runs_dir: str | Path | None
    cache: str | None
    caching: bool
    identifier: str | None
    hyperparameters: Mapping[str, Any]
    seed: int
    item_range: tuple[int, int] | None
    repeats: int
    reduce: str
    cluster: str | None
    finite: bool
    first_repeat: int
    sut_options: SUTOptions
    executor: str
    workers: int | None
    concurrency: int | None
    max_retries: int
    attempt_timeout: float
    call_timeout: float
    requests_per_minute: float | None
    tokens_per_minute: int | None
    max_calls: int | None
    max_tokens_total: int | None
    max_cost: float | None
    only_cached: bool
    grace: float
    progress: bool


OPTIONS: dict[str, OptionInfo] = options_in(RunOptions)
"""Each option by its name, but the redactor, which no user gives."""


def options_of(*groups: Group) -> list[str]:
    """The names of the options of some groups."""
    return [name for name, info in OPTIONS.items() if info.group in groups]
