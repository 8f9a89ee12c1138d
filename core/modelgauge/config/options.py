"""How a run is done: the options that the command line and `Runner` share."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from modelgauge.config.redaction import Redactor
from modelgauge.data.prompts import SUTOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of a run.

    Args:
        data_dir: where runs, cache and dependencies live.
        runs_dir: where the folders of runs are made; None for `runs` in data_dir.
        hyperparameters: what the app that is measured was set to; JSON, for the record.
        identifier: what the user calls this run, for the record.
        max_test_items: measure this many items, the same ones each time for one seed; None for all.
        seed: what the choice of items depends on.
        sut_options: laid over the options of each prompt.
        repeats: ask each prompt this many times, each time for an answer of its own.
        reduce: how the measurements of the repeats become one: mean, majority, max or pass@K.
        cluster: a field of the items' contexts, or a column of a data set: items of one value are not independent, and
            every mean has an interval that allows for that. Items without the field stand for themselves.
        finite: whether intervals are about the items of this very test, and not about all items like these.
        first_repeat: the number of the first repeat of all that is asked, judges too: what was answered for one
            number is not taken from the cache for another.
        caching: False asks for every answer anew, and keeps none.
        concurrency: calls at once of each SUT and annotator; None leaves it to the engine.
        max_retries: further attempts after a failed one.
        attempt_timeout: seconds for one attempt.
        call_timeout: seconds for all attempts of a call with the pauses between them; as long is waited for the
            answer to a call that another process makes.
        requests_per_minute: most requests a minute of each SUT, 0.5 for one in two minutes; None for no limit.
        tokens_per_minute: most tokens a minute of each SUT, as it reports them; None for no limit.
        max_calls: most calls that the whole run may send.
        max_tokens_total: tokens after which the run sends no more calls.
        max_cost: US dollars after which the run sends no more calls.
        grace: seconds that calls under way get when the run is interrupted.
        progress: show a progress bar.
        redactor: knows the secrets that must not be written anywhere.
    """

    data_dir: Path = Path("run_data")
    runs_dir: Path | None = None
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    identifier: str | None = None
    max_test_items: int | None = None
    seed: int = 0
    sut_options: SUTOptions = field(default_factory=SUTOptions)
    repeats: int = 1
    reduce: str = "mean"
    cluster: str | None = None
    finite: bool = False
    first_repeat: int = 0
    caching: bool = True
    concurrency: int | None = None
    max_retries: int = 4
    attempt_timeout: float = 120.0
    call_timeout: float = 600.0
    requests_per_minute: float | None = None
    tokens_per_minute: int | None = None
    max_calls: int | None = None
    max_tokens_total: int | None = None
    max_cost: float | None = None
    grace: float = 5.0
    progress: bool = False
    redactor: Redactor = field(default_factory=Redactor)

    @property
    def runs(self) -> Path:
        """The folder that holds the folders of runs."""
        return self.runs_dir if self.runs_dir is not None else self.data_dir / "runs"

    @property
    def reduction(self) -> str | None:
        """How several repeats become one number, where that is not their mean."""
        return None if self.repeats == 1 or self.reduce == "mean" else self.reduce

    def recorded(self) -> dict[str, Any]:
        """The options as a run's manifest keeps them."""
        kept = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if one.name not in ("redactor", "progress")
        }
        asked = self.sut_options.model_dump(mode="json", exclude_none=True)
        return {**kept, "data_dir": str(self.data_dir), "runs_dir": str(self.runs), "sut_options": asked}
