"""Several judges of one case: the one score that theirs become, or why there is none. Asking them is in `base.py`."""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Literal

from modelgauge.data.estimates import Score
from modelgauge.errors import CallError
from modelgauge.stats.exact import exact_mean

Combine = Literal["mean", "majority"]


def combined(scores: Mapping[str, Score], combine: Combine, *, higher_is_better: bool) -> Score:
    """One score of those of several judges.

    Args:
        scores: by the names of the judges.
        combine: see `Metric`.
        higher_is_better: of two values in the middle, the worse is taken.
    """
    values = sorted((one.value for one in scores.values()), reverse=not higher_is_better)
    middle = values[(len(values) - 1) // 2]
    value = middle if combine == "majority" else exact_mean(values)
    reasons = [f"{name} ({one.value:g}): {one.reason}" for name, one in scores.items() if one.reason]
    costs = [one.cost for one in scores.values() if one.cost is not None]
    return Score(
        value,
        reason="\n".join(reasons) or None,
        breakdown={name: {"score": one.value, "breakdown": one.breakdown} for name, one in scores.items()},
        cost=math.fsum(costs) if costs else None,
    )


def scores_of_all(
    answers: Mapping[str, Score | BaseException], uids: Sequence[str], combine: Combine
) -> dict[str, Score]:
    """The scores, where every judge gave one: a mean or a majority of some is not what was asked for.

    Args:
        answers: what each judge gave or raised, by the names under which they are asked.
        uids: of the judges, in this order.
        combine: what is to be made of them.

    Raises:
        BaseException: the first error; one of a call is told with the names of the judges that failed.
    """
    failed = [
        (f"{name} ('{uid}')", one)
        for (name, one), uid in zip(answers.items(), uids, strict=True)
        if isinstance(one, BaseException)
    ]
    for _, error in failed:
        if not isinstance(error, CallError):
            raise error
        told = copy.copy(error)  # the original may be another question's answer, too
        told.problem = (
            f"{len(failed)} of {len(answers)} judges gave no score: {', '.join(name for name, _ in failed)}; the "
            f"{combine} of the others would not be that of all. {error.problem}"
        )
        raise told from error
    return {name: one for name, one in answers.items() if isinstance(one, Score)}
