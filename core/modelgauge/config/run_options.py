"""The options of a run: the values, the meaning and the group of each, in one place.

The command line, the settings, `Runner`, the manifest of a run and `resume` follow from it. Nothing here imports
pydantic, since `modelgauge list` reads the settings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, TypeVar

from modelgauge.config.redaction import Redactor
from modelgauge.errors import InvalidOptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from modelgauge.data.prompts import SUTOptions

T = TypeVar("T")

Group = Literal["storage", "record", "sample", "results", "calls", "limits", "process"]
"""What an option concerns.

The results of a run depend on `sample` and `results`, so `resume` changes none of them. `calls` and `limits` stay as
they were unless others are given. `record` is for readers alone, and `process` is not recorded.
"""


_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")

# --- what an option may be ---------------------------------------------------------------------------------


class Values(NamedTuple):
    """The values that an option may have.

    Args:
        wanted: what to give, for messages.
        holds: whether a value is one of them.
        read: makes a value of a text, or raises ValueError.
    """

    wanted: str
    holds: Callable[[Any], bool]
    read: Callable[[str], Any] = str

    def parse(self, written: object) -> Any:
        """Return the value of what stands in a command line, the environment or a file of settings.

        Raises:
            ValueError: it is no such value; the message is what is wanted.
        """
        value = written
        if isinstance(written, str):
            with suppress(ValueError):
                value = self.read(written)
        if not self.holds(value):
            raise ValueError(self.wanted)
        return value

    def check(self, name: str, value: object, *, or_none: bool = False) -> None:
        """Refuse a value that an option cannot have.

        Raises:
            InvalidOptionError: the message names the option and what to give.
        """
        if not (self.holds(value) or (or_none and value is None)):
            raise InvalidOptionError(
                f"{name} is {value!r}.", fix=f"Give {self.wanted}{', or None' if or_none else ''}."
            )


def instance_of(kind: Any, wanted: str) -> Values:
    """The objects of a class, or of one of several."""
    return Values(wanted, lambda value: isinstance(value, kind))


def whole_number(least: int | None = None) -> Values:
    """The whole numbers from `least` on."""
    return Values(
        "a whole number" if least is None else f"a whole number of {least} or more",
        lambda value: _is_number(value, int) and (least is None or value >= least),
        int,
    )


def truth(text: str) -> bool:
    """True or false, as settings and the options of names write them.

    Raises:
        ValueError: the text is neither.
    """
    word = text.strip().lower()
    if word not in (*_YES, *_NO):
        raise ValueError(text)
    return word in _YES


def _is_number(value: object, kind: Any = int | float) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


_FROM_0 = Values("a number of 0 or more", lambda value: _is_number(value) and 0 <= value < math.inf, float)
_ABOVE_0 = Values("a number above 0", lambda value: _is_number(value) and 0 < value < math.inf, float)
SECONDS = _FROM_0._replace(wanted="a number of seconds of 0 or more")
_TIMEOUT = _ABOVE_0._replace(wanted="a number of seconds above 0")
YES_NO = instance_of(bool, "True or False")._replace(read=truth)
FOLDER = instance_of((str, Path), "the path of a folder")
_TEXT = instance_of(str, "a text")
_FIELD = _TEXT._replace(wanted="the name of a field of the items' contexts")
_JSON = instance_of(Mapping, "a dict")
_PLACES = Values(
    "two places, the first of them 0 or more: (0, 500)",
    lambda value: (
        isinstance(value, tuple | list)
        and len(value) == 2
        and all(_is_number(place, int) for place in value)
        and 0 <= value[0] < value[1]
    ),
)
_SUT_OPTIONS = Values("SUTOptions(…)", lambda value: isinstance(value, type(_no_sut_options())))


def _no_sut_options() -> SUTOptions:
    made: SUTOptions = import_module("modelgauge.data.prompts").SUTOptions()  # which needs pydantic
    return made


# --- the options -------------------------------------------------------------------------------------------


class OptionInfo(NamedTuple):
    """Default, group, values and help of an option.

    Args:
        default: without it; None where each run makes its own.
        group: what it concerns.
        values: what it may be.
        metavar: what stands for its value in the help of commands; None where no command has it.
        flags: its names on the command line.
        help: what it means.
    """

    default: Any
    group: Group
    values: Values
    metavar: str | None = None
    flags: tuple[str, ...] = ()
    help: str = ""


def _info(*facts: Any) -> dict[str, OptionInfo]:
    return {"info": OptionInfo(*facts)}


def _option(default: T, group: Group, values: Values, metavar: str | None = None, *flags: str) -> T:
    return field(default=default, metadata=_info(default, group, values, metavar, flags))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run.

    Args:
        data_dir: The folder of runs, cache and external data.
        runs_dir: The folder in which runs get their folders; by default `runs` in data_dir.
        caching: False asks for every answer again, and keeps none.
        identifier: What you call this run.
        hyperparameters: What the app that is measured was set to; JSON, for the record.
        max_test_items: Measure this many items only, the same ones each time for one seed; 10 of them are among 100.
        seed: What the choice of items depends on.
        item_range: Measure the items of these places only, the second left out: (0, 500) for the first 500. What a
            process measures of a run that several share.
        repeats: Ask each prompt this many times, each time for an answer of its own.
        reduce: How the measurements of the repeats become one: mean, majority, max or pass@K.
        cluster: Items with equal values in this field of their context, or column of the data set, are not
            independent: make intervals that allow for it. Items without the field stand for themselves.
        finite: Make intervals about the items of this very test, not about all items like these.
        first_repeat: The number of the first repeat of all that is asked, judges too: what was answered for one number
            is not taken from the cache for another.
        sut_options: Laid over the options of each prompt.
        concurrency: Calls at once of each SUT and annotator; by default the engine finds out how many are best.
        max_retries: Further attempts after a failed one.
        attempt_timeout: Seconds for one attempt of a call.
        call_timeout: Seconds for all attempts of a call with the pauses between them; as long is waited for the answer
            to a call that another process makes.
        requests_per_minute: Most requests a minute of each SUT; 0.5 for one in two minutes.
        tokens_per_minute: Most tokens a minute of each SUT, as it reports them.
        max_calls: Stop after this many calls; 0 for the cache alone.
        max_tokens_total: Stop when SUTs have reported this many tokens.
        max_cost: Stop when SUTs have reported a cost of this many US dollars.
        grace: Seconds that calls under way get when the run is interrupted.
        progress: Show a progress bar.
        redactor: Knows the secrets that must not be written anywhere.

    Raises:
        InvalidOptionError: one cannot be what was given.
    """

    data_dir: Path = _option(Path("run_data"), "storage", FOLDER)  # noqa: RUF009  it makes a field
    runs_dir: str | Path | None = _option(None, "storage", FOLDER)  # noqa: RUF009  likewise
    caching: bool = _option(True, "storage", YES_NO)
    identifier: str | None = _option(None, "record", _TEXT)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict, metadata=_info(None, "record", _JSON))
    max_test_items: int | None = _option(None, "sample", whole_number(1), "N", "-m", "--max-test-items")
    seed: int = _option(0, "sample", whole_number(), "N")
    item_range: tuple[int, int] | None = _option(None, "sample", _PLACES)
    repeats: int = _option(1, "results", whole_number(1), "N")
    reduce: str = _option("mean", "results", _TEXT, "HOW")
    cluster: str | None = _option(None, "results", _FIELD, "FIELD")
    finite: bool = _option(False, "results", YES_NO, "")
    first_repeat: int = _option(0, "results", whole_number(0))
    sut_options: SUTOptions = field(
        default_factory=_no_sut_options, metadata=_info(None, "results", _SUT_OPTIONS)
    )
    concurrency: int | None = _option(None, "calls", whole_number(1), "N")
    max_retries: int = _option(4, "calls", whole_number(0), "N")
    attempt_timeout: float = _option(120, "calls", _TIMEOUT, "SECONDS", "--timeout")
    call_timeout: float = _option(600, "limits", _TIMEOUT, "SECONDS")
    requests_per_minute: float | None = _option(None, "limits", _ABOVE_0, "N")
    tokens_per_minute: int | None = _option(None, "limits", whole_number(1), "N")
    max_calls: int | None = _option(None, "limits", whole_number(0), "N")
    max_tokens_total: int | None = _option(None, "limits", whole_number(0), "N")
    max_cost: float | None = _option(None, "limits", _FROM_0, "USD")
    grace: float = _option(5, "limits", _FROM_0)
    progress: bool = _option(False, "process", YES_NO)
    redactor: Redactor = field(default_factory=Redactor)

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.metadata:
                values = one.metadata["info"].values
                values.check(one.name, getattr(self, one.name), or_none=one.default is None)

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
        return {**kept, "data_dir": str(self.data_dir), "runs_dir": str(self.runs), "sut_options": asked}


class RunOptionsDict(TypedDict, total=False):
    """The options of a run that functions take by name alone; what each means is in `OPTIONS`."""

    runs_dir: str | Path | None
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
    concurrency: int | None
    max_retries: int
    attempt_timeout: float
    call_timeout: float
    requests_per_minute: float | None
    tokens_per_minute: int | None
    max_calls: int | None
    max_tokens_total: int | None
    max_cost: float | None
    grace: float
    progress: bool


_HELP = dict(re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", cleandoc(RunOptions.__doc__ or ""), re.MULTILINE))
OPTIONS: dict[str, OptionInfo] = {
    one.name: one.metadata["info"]._replace(help=" ".join(_HELP.get(one.name, "").split()))
    for one in fields(RunOptions)
    if one.metadata
}
"""Each option by its name, but the redactor, which no user gives."""


def options_of(*groups: Group) -> list[str]:
    """The names of the options of some groups."""
    return [name for name, info in OPTIONS.items() if info.group in groups]
