"""The judges of metrics: the values of `model=`, the default judge, combined scores, and a judgement outside a run.

How a metric asks its judges is in `base.py`.
"""

import copy
import math
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

from modelgauge.config.entry_points import warn_of_foreign_distributions
from modelgauge.config.run_options import RunOptions
from modelgauge.config.secrets import SecretStore
from modelgauge.config.settings import Settings, load_settings
from modelgauge.data.estimates import Score
from modelgauge.data.responses import SUTCompletion
from modelgauge.dependencies.store import DependencyStore
from modelgauge.engine.loop.blocking import blocking
from modelgauge.engine.target_pool import call_once
from modelgauge.errors import CallError, InvalidOptionError, UsageError
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.interfaces.sut import PromptResponseSUT
from modelgauge.plugins.discovery import discover
from modelgauge.plugins.resolution import Resolver
from modelgauge.stats.exact import exact_mean
from modelgauge.suts.function import FunctionSUT

JudgeSUT: TypeAlias = PromptResponseSUT[Any, Any] | str
"""A SUT, or its uid."""

JudgeLike: TypeAlias = JudgeSUT | Callable[[str], str | SUTCompletion | Awaitable[str | SUTCompletion]]
"""A SUT, its uid, or a function from a question to an answer."""

Combine = Literal["mean", "majority"]

JUDGE = "judge"
"""The name under which a metric asks its judge."""

_default: ContextVar[JudgeLike | None] = ContextVar("modelgauge_default_judge", default=None)


@contextmanager
def judging_by_default(judge: JudgeLike | None) -> Iterator[None]:
    """Make a judge the default of all metrics without a judge; it overrides the settings.

    Args:
        judge: a uid, a SUT or a function; None changes nothing.
    """
    token = _default.set(judge if judge is not None else _default.get())
    try:
        yield
    finally:
        _default.reset(token)


def default_judge(metric: str) -> JudgeSUT:
    """Return the judge for metrics without one of their own.

    Args:
        metric: who asks, for the message.

    Raises:
        UsageError: there is none.
    """
    chosen = _default.get()
    found = chosen if chosen is not None else load_settings().judge
    if found is None:
        raise UsageError(
            f"{metric} needs a judge, and there is none.",
            fix='Name one: model="openai/gpt-4o-mini" for this metric; or for all metrics: --judge SUT, '
            'MODELGAUGE_JUDGE=SUT, or in modelgauge.toml [judge] model = "SUT".',
        )
    return as_sut(found, metric)


def origin_of_default() -> str:
    """Describe where the default judge is set, for messages."""
    if _default.get() is not None:
        return ", named by --judge or judging_by_default"
    return f", named by {'MODELGAUGE_JUDGE' if os.environ.get('MODELGAUGE_JUDGE') else '[judge] in modelgauge.toml'}"


def default_judge_name(settings: Settings) -> str | None:
    """Return the uid of the default judge, for `resume`; None if there is no default judge, or it is an object.

    Args:
        settings: of the run.
    """
    chosen = _default.get()
    if chosen is None:
        return settings.judge
    return chosen if isinstance(chosen, str) else None


def resolve_judges(model: "JudgeLike | Sequence[JudgeLike] | None", metric: str) -> tuple[JudgeSUT, ...]:
    """Return the judges given by `model=`.

    Args:
        model: one judge, several in a list or tuple, or None.
        metric: whose they are, for messages.

    Raises:
        InvalidOptionError: something among them is not a judge.
    """
    if model is None:
        return ()
    several = list(model) if isinstance(model, list | tuple) else [model]
    if not several:
        raise InvalidOptionError(f"{metric} got an empty list of judges.", fix="Name at least one judge.")
    return tuple(as_sut(sut, metric) for sut in several)


def judge_names(count: int) -> list[str]:
    """Return the names of several judges: `judge`, `judge_2`, `judge_3`, …"""
    return [JUDGE if place == 0 else f"{JUDGE}_{place + 1}" for place in range(count)]


def as_sut(judge: Any, metric: str) -> JudgeSUT:
    """Return a judge as a SUT or a uid; functions are wrapped.

    Raises:
        InvalidOptionError: it is neither a uid, nor a SUT, nor a function.
    """
    if isinstance(judge, PromptResponseSUT) or (isinstance(judge, str) and judge):
        return judge
    if callable(judge) and not isinstance(judge, type):
        name = getattr(judge, "__name__", type(judge).__name__)
        return FunctionSUT("function" if name == "<lambda>" else name, judge)
    raise InvalidOptionError(
        f"{metric} cannot be judged by {judge!r}.",
        fix="Give model= a uid like 'openai/gpt-4o-mini', a SUT, or a function from a text to a text.",
    )


# --- several judges of one case -----------------------------------------------------------------------------


def scores_of_all(
    answers: Mapping[str, Score | BaseException], uids: Sequence[str], combine: Combine
) -> dict[str, Score]:
    """Return the scores of all judges, or raise if a judge gave none: the mean of the others would be another score.

    Args:
        answers: what each judge gave or raised, by the names under which they are asked.
        uids: of the judges, in this order.
        combine: how the scores are combined.

    Raises:
        BaseException: the first error; one of a call names the judges that failed.
    """
    failed = {
        f"{name} ('{uid}')": answer
        for (name, answer), uid in zip(answers.items(), uids, strict=True)
        if isinstance(answer, BaseException)
    }
    for error in failed.values():
        if not isinstance(error, CallError):
            raise error
        raised = copy.copy(error)  # other cases may share the original
        raised.problem = (
            f"{len(failed)} of {len(answers)} judges gave no score: {', '.join(failed)}; the {combine} of the "
            f"others would not be that of all. {error.problem}"
        )
        raise raised from error
    return {name: answer for name, answer in answers.items() if isinstance(answer, Score)}


def combined(scores: Mapping[str, Score], combine: Combine, *, higher_is_better: bool) -> Score:
    """Combine the scores of several judges into one.

    Args:
        scores: by the names of the judges.
        combine: see `Metric`.
        higher_is_better: of two values in the middle, the worse is taken.
    """
    values = sorted((score.value for score in scores.values()), reverse=not higher_is_better)
    middle = values[(len(values) - 1) // 2]
    value = middle if combine == "majority" else exact_mean(values)
    reasons = [f"{name} ({score.value:g}): {score.reason}" for name, score in scores.items() if score.reason]
    costs = [score.cost for score in scores.values() if score.cost is not None]
    return Score(
        value,
        reason="\n".join(reasons) or None,
        breakdown={
            name: {"score": score.value, "breakdown": score.breakdown} for name, score in scores.items()
        },
        cost=math.fsum(costs) if costs else None,
    )


# --- outside a run ------------------------------------------------------------------------------------------


def judged(annotator: CompletionAnnotator[Any], request: Any) -> Any:
    """Return an annotator's native response to one request. Blocks, even inside a running event loop.

    Raises:
        UsageError: one of the SUTs that it asks is unknown, or lacks a secret.
        Exception: whatever `annotate` raised at last.
    """
    warn_of_foreign_distributions()
    settings = load_settings()
    secrets = SecretStore(file=settings.secrets_file)
    store = DependencyStore(settings.data_dir / "dependencies")
    suts = Resolver(lambda: discover(settings.plugins, settings=settings), secrets, store).judges(annotator)
    options = RunOptions(data_dir=settings.data_dir, redactor=secrets.redactor, **settings.of_runs())
    return blocking(lambda: call_once(options, annotator, suts, request))
