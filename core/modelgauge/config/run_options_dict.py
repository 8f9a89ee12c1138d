"""The options of a run as keyword arguments. `docs/generate.py` writes them from the fields of `RunOptions`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from modelgauge.data.prompts import SUTOptions


class RunOptionsDict(TypedDict, total=False):
    """The options of a run."""

    runs_dir: str | Path | None
    """The folder in which runs get their folders; by default `runs` in data_dir."""
    cache: str | None
    """Cache of responses, so that each is paid for once: a folder, or the URL of a server that machines share
    (postgresql://…, redis://…); by default `cache` in data_dir.
    """
    caching: bool
    """False asks for every answer again, and stores none."""
    identifier: str | None
    """A name for this run."""
    hyperparameters: Mapping[str, Any]
    """The settings of the measured app; JSON, for the record."""
    seed: int
    """The seed of the choice of items."""
    item_range: tuple[int, int] | None
    """Measure only the items of these places, the second excluded: 0:500, in Python (0, 500), for the first 500. With
    it, several machines share a run, whose parts `modelgauge merge` joins.
    """
    repeats: int
    """Ask each prompt this many times, each time for a new answer."""
    reduce: str
    """Reduction of the measurements of the repeats to one: mean, majority, min, max, all, pass@K, pass^K or MofN.
    """
    cluster: str | None
    """Make intervals that treat items with equal values in this field of their context, or column of the data set, as
    dependent. An item without the field is a cluster by itself.
    """
    finite: bool
    """Make intervals for the items of this test only, not for all items like these."""
    first_repeat: int
    """The number of the first repeat of all calls, those of judges too. The cache answers a call only with an answer to
    the same number.
    """
    sut_options: SUTOptions
    """Options that override those of each prompt."""
    executor: str
    """Executor that processes the items: local (this process), processes (several on this machine), or the executor of
    a plugin, with options after its name: 'ray?address=HOST:6379&gpus=1'.
    """
    workers: int | None
    """Number of workers; by default the executor chooses: processes has one for each processor."""
    concurrency: int | None
    """Calls at once of each SUT and annotator; by default the engine finds out how many are best."""
    max_retries: int
    """Further attempts after a failed attempt; 0 for none at all. Attempts that meet a rate limit or an unreachable
    server do not count.
    """
    attempt_timeout: float
    """Seconds for one attempt of a call."""
    call_timeout: float
    """Seconds for all attempts of a call and the pauses between them. It is also the longest wait for a server that
    became unreachable, and for the answer to a call that another process makes.
    """
    requests_per_minute: float | None
    """Most requests a minute of each SUT; 0.5 for one in two minutes."""
    tokens_per_minute: int | None
    """Most tokens a minute of each SUT, as it reports them."""
    max_calls: int | None
    """Stop after this many calls; 0 uses the cache only."""
    max_tokens_total: int | None
    """Stop when SUTs have reported this many tokens."""
    max_cost: float | None
    """Stop when SUTs have reported a cost of this many US dollars."""
    only_cached: bool
    """Send nothing: a call that the cache does not answer fails its item."""
    grace: float
    """Seconds that calls under way get when the run is interrupted."""
    allow_code: bool
    """Run the code that the SUT writes, where a test measures by that: on this machine, with your rights."""
    progress: bool
    """Show a progress bar."""
