"""`Metric`: what all metrics are, those that come with ModelGauge and those of authors.

A metric is an annotator whose annotation is a `Score`. Its judgement is one method, `score`; whether a score
is good enough (threshold, direction, strictness) is decided here. The metrics themselves are in the modules
beside this one, the engine of judge metrics in `judge_base.py`.
"""

import inspect
import math
import re
from abc import ABCMeta
from collections.abc import Awaitable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from modelgauge.data.base import of_valid
from modelgauge.data.estimates import Score, reaches
from modelgauge.data.items import PromptWithContext
from modelgauge.data.prompts import AnyPrompt
from modelgauge.data.responses import SUTCompletion, SUTResponse
from modelgauge.data.test_cases import LLMTestCase
from modelgauge.engine.loop.deadlines import never_waits, run_without_waiting
from modelgauge.engine.loop.together import all_done
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.interfaces.identity import interface_method
from modelgauge.metrics.definition import (
    ScoreMethod,
    Unchanging,
    check_names,
    check_settings,
    finite,
    make_name,
    needs_a_score,
    not_in_a_metric,
    refused_call,
    without_judge,
)
from modelgauge.metrics.judged_cases import (
    TestCase,
    case_of,
    check_case,
    get_origin,
    missing_parameters,
    own_case,
)
from modelgauge.metrics.judges import (
    JUDGE,
    Combine,
    JudgeLike,
    JudgeSUT,
    combined,
    default_judge,
    judge_names,
    judged,
    origin_of_default,
    resolve_judges,
    scores_of_all,
)

T = TypeVar("T")

_SETTINGS = ("threshold", "strict_mode", "include_reason", "model", "combine")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(slots=True)
class _CurrentJudge:
    """The judge that `score` asks at the moment, and what its answers have cost."""

    name: str
    costs: list[float] = field(default_factory=list)


_asked: ContextVar[_CurrentJudge | None] = ContextVar("modelgauge_metric_asked", default=None)


@lru_cache(maxsize=1024)
def _in_small_letters(name: str) -> str:
    return _WORDS.sub("_", name.removesuffix("Metric") or name).lower()


class _Sealed(ABCMeta):  # so that authors can mix in ABC
    """Metaclass that seals metrics after construction."""

    @property
    def __signature__(cls) -> inspect.Signature:
        """The constructor's signature, which `help` and editors would not find behind `__call__`."""
        made = inspect.signature(cls.__init__)  # type: ignore[misc]  # of the class itself
        return made.replace(parameters=[*made.parameters.values()][1:], return_annotation=made.empty)

    def __call__(cls: type[T], *args: Any, **kwargs: Any) -> T:
        try:
            made: T = super().__call__(*args, **kwargs)  # type: ignore[misc]  # mypy sees no type in cls here
        except TypeError as error:
            __tracebackhide__ = True
            refused = refused_call(cls, error, args, kwargs)
            if refused is None:
                raise
            raise refused.with_traceback(None) from None
        if isinstance(made, Metric):
            made._seal()  # noqa: SLF001  its own metaclass
        return made


class Metric(Unchanging, CompletionAnnotator[Score], metaclass=_Sealed):
    """Metric that judges one test case with a number.

    An author writes `score`, plain or async:

        class Brevity(Metric):
            required_params = ("actual_output",)

            def score(self, test_case):
                return 1 / (1 + len(test_case.actual_output.split()) / 50)

    A metric is made once and used for any number of cases: it keeps nothing of them, and its settings cannot
    be changed. It is an annotator too, so any test can name it in `get_annotators`.

    Args:
        uid: the name in records; by default the class's own, `answer_relevancy` for `AnswerRelevancyMetric`.
        threshold: a case passes at a score of at least this, or at most this where lower is better; within 1e-9 of it
            in either case. With None a score is recorded and passes no verdict: it has no part in whether a case
            passes. The default of this, and of the four below where they are None, is what the class says:
            `threshold = 0.9` among the attributes of a subclass is the default of its objects.
        strict_mode: only a perfect score passes: the score becomes the best or the worst possible score.
        include_reason: keep the reason of a score; False saves judges the work.
        model: who judges: a SUT's uid, a SUT, a function from a text to a text, or a list of several; without
            it, the default judge. It is looked up when it is first needed.
        combine: how the scores of several judges are combined: their mean, or their majority, which is the median (of
            two in the middle, the worse), so that it passes a threshold if most judges do. Where one of them gives no
            score, the case has none.
        async_mode: accepted and ignored: the engine always makes calls side by side.
        verbose_mode: accepted and ignored: a score always says in its breakdown how it came about.

    Class attributes:
        required_params: the fields of a test case that `score` reads; a case without them is an error.
        test_case_type: `LLMTestCase` or `ConversationalTestCase`.
        higher_is_better: the direction.
        best_score: the perfect score, for `strict_mode`; None if there is no perfect score.
        worst_score: what other scores become in `strict_mode`.
        score_range: the lowest and the highest score, where they are known, `math.inf` where there is no end: no
            interval leaves it, and with two ends results have bounds where cases fail. A class that
            replaces an inherited `score` does not inherit it.
        needs_judge: `score` asks its judge: `await self.ask("judge", "…")`.
        asks_nobody: `score` never asks a judge: a `model` has no effect. A class that replaces an inherited
            `score` does not inherit it either.
        is_cheap: a score is computed each time, from what the judges answered: their answers are kept, so a change
            in `score` shows at once and pays for no call again. Say False if `score` itself costs
            something (a local model): then scores are kept, too.
        cache_version: with `is_cheap = False`, raise it where kept scores are out of date.

    Raises:
        InvalidOptionError: an argument has a wrong type, no score can reach the threshold, or the name is reserved for
            other results.
        ArgumentError: there is no argument of that name.
    """

    required_params: Sequence[str] = ()
    test_case_type: ClassVar[type[TestCase]] = LLMTestCase
    higher_is_better: ClassVar[bool] = True
    best_score: ClassVar[float | None] = 1.0
    worst_score: ClassVar[float] = 0.0
    score_range: ClassVar[tuple[float, float] | None] = None
    needs_judge: ClassVar[bool] = False
    asks_nobody: ClassVar[bool] = False
    is_cheap: bool = True
    required_methods: ClassVar[tuple[str, ...]] = ("score",)
    options_in_uid: ClassVar[tuple[str, ...]] = ("name",)
    identity_excludes: ClassVar[frozenset[str]] = frozenset({"async_mode", "verbose_mode"})

    threshold: float | None = 0.5
    strict_mode: bool = False
    include_reason: bool = True
    model: JudgeLike | Sequence[JudgeLike] | None = None
    combine: Combine = "mean"
    _name: str = ""
    _judges: tuple[JudgeSUT, ...] = ()

    def __init__(
        self,
        uid: str | None = None,
        *,
        threshold: float | None = ...,  # type: ignore[assignment]  # not given: None is a threshold of its own
        strict_mode: bool | None = None,
        include_reason: bool | None = None,
        model: JudgeLike | Sequence[JudgeLike] | None = None,
        combine: Combine | None = None,
        async_mode: bool = True,
        verbose_mode: bool = False,
    ) -> None:
        del async_mode, verbose_mode
        super().__init__(self.default_uid() if uid is None else uid)
        given: tuple[Any, ...] = (threshold, strict_mode, include_reason, model, combine)
        cls, passed = type(self), self._arguments
        for name, value in zip(_SETTINGS, given, strict=True):
            is_default = value is (... if name == "threshold" else None)
            if not is_default and passed is not None and name not in passed:
                # It is the default of a subclass's constructor: `def __init__(self, uid, threshold=0.7)`. What a class
                # below that one declares goes before it: `threshold = 0.9`.
                first = next(base for base in cls.__mro__ if not {name, "__init__"}.isdisjoint(vars(base)))
                is_default = "__init__" not in vars(first)
            # Of the class, since a judge that is a function would be a method of the object.
            setattr(self, name, getattr(cls, name) if is_default else value)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Check the class, and choose where its `score` runs: `def` in a thread, `async def` in the loop."""
        super().__init_subclass__(**kwargs)
        if not {"required_params", "test_case_type"}.isdisjoint(cls.__dict__):
            fields = cls.test_case_type.model_fields
            check_names(cls.__qualname__, "required_params", cls.required_params, fields)
        own = vars(cls)
        inherited = {name for base in cls.__mro__[1 : cls.__mro__.index(Metric)] for name in vars(base)}
        if any(name in own and name in inherited for name in ("score", "procedure")):
            # What a base says of its scores may be wrong of those of another method.
            for name, value in (("score_range", None), ("asks_nobody", False)):
                if name not in own:
                    setattr(cls, name, value)
        score = own.get("score")
        if score is not None and "annotate" not in own:
            is_async = inspect.iscoroutinefunction(score)
            cls.annotate = cls._annotate_async if is_async else cls._annotate_plain  # type: ignore[assignment, method-assign]  # the table above `_annotate_plain`
        if inspect.isfunction(score):
            cls.score = ScoreMethod(score)  # type: ignore[assignment, method-assign]  # it is one still

    @classmethod
    def default_uid(cls) -> str:
        """Return the class's name in lower case, without `Metric`."""
        return _in_small_letters(cls.__name__)

    # --- what authors write ---------------------------------------------------------------------------------

    @interface_method
    def score(self, test_case: Any) -> Score | float | Awaitable[Score | float]:
        """Judge a case: a number, or a `Score` with reason and breakdown. May be `async def`.

        Args:
            test_case: an `LLMTestCase` or a `ConversationalTestCase` that has all `required_params`.
        """
        raise NotImplementedError

    # --- what users read ------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<{type(self).__qualname__} {self.uid!r}, threshold {self.threshold!r}>"

    @property
    def name(self) -> str:
        """The name in reports: the class, or the given name."""
        return self._name or make_name(type(self), self.uid, self.default_uid())

    def measure(self, test_case: TestCase) -> Score:
        """Judge one case now, through the engine: cached, retried, limited. Blocks.

        Raises:
            MissingParameterError: the case lacks what the metric needs.
            UsageError: there is no judge, or none of that name.
            CallError: the judge failed, or answered in a way that cannot be understood.
        """
        self.check(test_case)
        test_case.check()
        return self.translate_response(test_case, judged(self, test_case))

    if not TYPE_CHECKING:  # for which there is nothing but what is written in classes

        def __getattr__(self, name: str) -> Any:
            """Explain where to find what other libraries keep in a metric."""
            raise AttributeError(not_in_a_metric(type(self), name))

    @needs_a_score
    def is_successful(self, score: Score | float) -> bool | None:
        """Return whether a score passes the threshold; None without a threshold."""
        if self.threshold is None:
            return None
        return reaches(float(score), self.threshold, higher_is_better=self.higher_is_better)

    def missing_params(self, test_case: TestCase) -> list[str]:
        """Return the required parameters that the case lacks."""
        return missing_parameters(test_case, self.required_params)

    def check(self, test_case: TestCase) -> None:
        """Refuse a case that cannot be judged.

        Raises:
            MissingParameterError: the case is of another kind, or lacks what the metric needs.
        """
        check_case(test_case, self.test_case_type, self.required_params, self.name)

    @property
    def answering_judge(self) -> str:
        """The name of the judge that `score` asks at the moment; there may be several."""
        asked = _asked.get()
        return JUDGE if asked is None else asked.name

    # --- as an annotator ------------------------------------------------------------------------------------

    def translate_request(self, prompt: PromptWithContext, completion: SUTCompletion) -> TestCase:
        """Return the test case for a prompt, its context and a completion; see `judged_cases.case_of`."""
        case = case_of(prompt, completion)
        origin = get_origin(prompt, completion)
        check_case(case, self.test_case_type, self.required_params, self.name, origin)
        return case

    def translate_response(self, request: TestCase, response: Score) -> Score:
        """Return the score under this metric's settings."""
        del request
        value = response.value
        best = self.best_score if self.strict_mode else None
        if best is not None and not reaches(value, best, higher_is_better=self.higher_is_better):
            value = self.worst_score
        reason = response.reason if self.include_reason else None
        if value == response.value and reason == response.reason:
            return response
        return response.replaced(value=value, reason=reason)

    def get_suts(self) -> Mapping[str, JudgeSUT]:
        """Return the judges: `judge`, and if there are several `judge_2`, `judge_3`, …"""
        judges = self._judges
        if not judges and self.needs_judge:
            judges = (default_judge(self.name),)
        return dict(zip(judge_names(len(judges)), judges, strict=True))

    def _sut_in_messages(self, _name: str) -> str:
        return f"The judge of {self.name}{'' if self._judges else origin_of_default()}"

    async def ask(self, name: str, prompt: AnyPrompt | str) -> SUTResponse:
        """Ask a judge; see `CompletionAnnotator.ask`. Of several judges, each scores the case for itself."""
        response = await super().ask(name, prompt)
        asked = _asked.get()
        if asked is not None and response.usage is not None and response.usage.cost_usd is not None:
            asked.costs.append(response.usage.cost_usd)
        return response

    def _asked_name(self, name: str) -> str:
        if name != JUDGE:
            return name
        if not self._judges and not self.needs_judge and type(self).get_suts is Metric.get_suts:
            raise without_judge(type(self))
        return self.answering_judge

    # `annotate` is one of the next three, by what `score` is:
    #
    # `score`                                       `annotate`            how the engine calls it      chosen for
    # `def`                                         `_annotate_plain`     in a thread                  the class
    # `async def`                                   `_annotate_async`     in a task of the loop        the class
    # `async def` that never waits, and no judges   `_annotate_at_once`   in the loop, without a task  the object

    def _annotate_plain(self, request: TestCase) -> Score | Awaitable[Score]:
        made = self.score(own_case(request))
        return self._await_score(made) if inspect.isawaitable(made) else self._as_score(made)

    async def _annotate_async(self, request: TestCase) -> Score:
        if len(self._judges) < 2:
            return await self._scored_by(JUDGE, request)
        names = judge_names(len(self._judges))
        scores = await all_done([self._scored_by(name, request) for name in names])
        uids = [judge if isinstance(judge, str) else judge.uid for judge in self._judges]
        by_judge = scores_of_all(dict(zip(names, scores, strict=True)), uids, self.combine)
        return combined(by_judge, self.combine, higher_is_better=self.higher_is_better)

    async def _annotate_at_once(self, request: TestCase) -> Score:
        coroutine: Any = self.score(own_case(request))
        return self._as_score(run_without_waiting(coroutine))

    async def _scored_by(self, name: str, request: TestCase) -> Score:
        asked = _CurrentJudge(name)
        token = _asked.set(asked)
        try:
            coroutine: Any = self.score(own_case(request))
            score = self._as_score(await coroutine)
        finally:
            _asked.reset(token)
        return score.replaced(cost=math.fsum(asked.costs)) if asked.costs and score.cost is None else score

    async def _await_score(self, made: Awaitable[Score | float]) -> Score:
        return self._as_score(await made)

    def _as_score(self, made: object) -> Score:
        if isinstance(made, Score):
            return made
        return of_valid(Score, value=finite(made, self.name), reason=None, breakdown=None, cost=None)

    # --- unchanging -----------------------------------------------------------------------------------------

    def _seal(self) -> None:
        """Check the settings, and make them unchangeable."""
        check_settings(self)
        self._name = self.name
        if self.strict_mode and self.best_score is not None:
            self.threshold = self.best_score
        self._judges = () if self.asks_nobody else resolve_judges(self.model, self.name)
        is_async = type(self).annotate is Metric._annotate_async
        if is_async and not self._judges and never_waits(type(self).score):
            setattr(self, "annotate", self._annotate_at_once)  # noqa: B010  the table above `_annotate_plain`
        self._is_sealed = True
        self._note_settings()
