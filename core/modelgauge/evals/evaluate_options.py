"""The options of `evaluate`, grouped in configs. Those of the engine are in `Runner`."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from modelgauge.api import Runner
from modelgauge.config.options import check_options, option, options_in
from modelgauge.config.run_options import OPTIONS
from modelgauge.errors import InvalidOptionError
from modelgauge.evals.session_options import Display
from modelgauge.interfaces.arguments import explains_arguments
from modelgauge.wording.did_you_mean import did_you_mean

_OF_THE_ENGINE = sorted(({*inspect.signature(Runner).parameters, *OPTIONS}) - {"options"})


@dataclass(frozen=True, slots=True)
class _Config:
    """Refuses what an option cannot be: of flags `"no"`, say, which would count as True."""

    def __post_init__(self) -> None:
        check_options(self)


@explains_arguments
@dataclass(frozen=True, slots=True)
class AsyncConfig(_Config):
    """Concurrency of `evaluate`.

    Args:
        run_async: False judges one case after the other.
        max_concurrent: most calls at once of each judge, and most uses of an app at once; None leaves judges to
            the engine, which finds out, and uses an app 20 times at once.
        throttle_value: seconds between two questions to a judge.
    """

    run_async: bool = option(True)
    max_concurrent: int | None = option(None, ge=1)
    throttle_value: float = option(0, ge=0, wanted="a number of seconds of 0 or more")

    def options(self) -> dict[str, Any]:
        """Return these settings as options of `Runner`."""
        most = self.max_concurrent if self.run_async else 1
        made: dict[str, Any] = {} if most is None else {"concurrency": most}
        if self.throttle_value:
            made["requests_per_minute"] = 60 / self.throttle_value
        return made


@explains_arguments
@dataclass(frozen=True, slots=True)
class DisplayConfig(_Config):
    """Output of `evaluate`: progress, results, and which cases to list.

    Args:
        show_indicator: a progress bar, on a terminal.
        print_results: a table of the results, on stdout.
        display: which test cases the table lists: all, failing or passing.
    """

    show_indicator: bool = option(True)
    print_results: bool = option(True)
    display: Display = option("all")


@explains_arguments
@dataclass(frozen=True, slots=True)
class CacheConfig(_Config):
    """Caching of judges' answers.

    Args:
        use_cache: False asks the judges again, and does not store their answers.
    """

    use_cache: bool = option(True)


@explains_arguments
@dataclass(frozen=True, slots=True)
class ErrorConfig(_Config):
    """Treatment of cases that cannot be judged. They never pass.

    Args:
        ignore_errors: return them as failed, with their errors, instead of raising at the end; or before anything is
            judged, where a case lacks what a metric needs.
        skip_on_missing_params: leave out metrics that need what a case does not have, instead of raising.
    """

    ignore_errors: bool = option(False)
    skip_on_missing_params: bool = option(False)


@dataclass(frozen=True, slots=True)
class Configs:
    """The four configs of `evaluate`."""

    async_config: AsyncConfig = field(default_factory=AsyncConfig)
    display_config: DisplayConfig = field(default_factory=DisplayConfig)
    cache_config: CacheConfig = field(default_factory=CacheConfig)
    error_config: ErrorConfig = field(default_factory=ErrorConfig)

    @classmethod
    def of(cls, given: Sequence[Any], options: Mapping[str, Any]) -> tuple["Configs", dict[str, Any]]:
        """Apply single options to the four configs, and return them with the options of the engine.

        Args:
            given: the configs in the order of the fields; None means the defaults of a config.
            options: by name.

        Raises:
            InvalidOptionError: a config is something else, or there is no option of that name.
        """
        made, rest, known = cls(), dict(options), list[str]()
        for group, value in zip(fields(cls), given, strict=True):
            default = getattr(made, group.name)
            kind: Any = type(default)
            if not isinstance(value, kind | None):
                raise InvalidOptionError(
                    f"{group.name} is {value!r}.", fix=f"Give {kind.__name__}(…), or its options one by one."
                )
            names = options_in(kind)
            own = {name: rest.pop(name) for name in names if name in rest}
            made = replace(made, **{group.name: replace(value or default, **own)})
            known += names
        for name in rest:
            if name not in _OF_THE_ENGINE:
                raise InvalidOptionError(
                    f"There is no option '{name}'.",
                    fix=f"{did_you_mean(name, [*known, *_OF_THE_ENGINE])}The options are: {', '.join(known)}; "
                    f"and those of Runner: {', '.join(_OF_THE_ENGINE)}.",
                )
        return made, rest

    def runner_options(self) -> dict[str, Any]:
        """Return those settings that are options of `Runner`."""
        return {
            "progress": self.display_config.show_indicator,
            "caching": self.cache_config.use_cache,
            **self.async_config.options(),
        }
