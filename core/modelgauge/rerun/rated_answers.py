"""`RatedAnswers`: the test that measures the recorded answers of a run by people's ratings."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any, Self

from modelgauge.data.annotations import TestItemAnnotations
from modelgauge.data.estimates import Estimate, Score
from modelgauge.data.items import PromptWithContext, TestItem
from modelgauge.data.responses import SUTCompletion
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import InputFileError, MissingAnswerError
from modelgauge.interfaces.annotator import CompletionAnnotator
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.runs.ratings import HIGHEST, LOWEST, Rating, RatingsFile, digest_answer
from modelgauge.runs.recorded_run import recorded_run
from modelgauge.stats.aggregations import mean_of_each
from modelgauge.stats.measured import MeasuredItems

HUMAN, RATED = "human", "human_ratings"  # the annotator, and the test


class _Alike:
    """Made without a copy of its arguments: whatever was rated, it is the same test with the same annotator."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        del args, kwargs
        return object.__new__(cls)


class Human(_Alike, CompletionAnnotator[Score]):
    """Annotates an answer with the ratings that people gave it: their mean, each rating, and why.

    Args:
        uid: the name in records.
        ratings: of the answers; the `source_id` of a prompt names the item.
    """

    is_cheap: bool = True

    def __init__(self, uid: str, ratings: list[Rating]) -> None:
        super().__init__(uid)
        self._of_item: dict[str, list[Rating]] = {}
        for rating in ratings:
            if rating.score is not None:
                self._of_item.setdefault(rating.item_id, []).append(rating)

    def translate_request(self, prompt: PromptWithContext, completion: SUTCompletion) -> dict[str, Any]:
        """Name the item and the answer."""
        return {"item_id": prompt.source_id, "answer": digest_answer([completion])[0]}

    async def annotate(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the recorded ratings of an answer.

        Raises:
            MissingAnswerError: the answer has no rating.
        """
        of_item = self._of_item.get(request["item_id"], [])
        found = [rating for rating in of_item if request["answer"] in rating.answers]
        if not found:
            raise MissingAnswerError(
                "Nobody rated this answer.",
                fix="Rate it, then measure the answers of the run by --ratings again.",
            )
        return [rating.model_dump(mode="json", include={"rater", "score", "reason"}) for rating in found]

    def translate_response(self, request: dict[str, Any], response: list[dict[str, Any]]) -> Score:
        """Return the mean of the ratings."""
        del request
        reasons = [f"{rating['rater']}: {rating['reason']}" for rating in response if rating["reason"]]
        return Score(
            fmean(rating["score"] for rating in response),
            reason="\n".join(reasons) or None,
            breakdown={rating["rater"]: rating["score"] for rating in response},
        )


class RatedAnswers(_Alike, PromptResponseTest):
    """A test of the items that a run has recorded, with people as the only judges.

    Measures `human`, the mean of an answer's ratings from 1 to 5, and `human (NAME)` for each rater. An answer that
    nobody rated fails, so that results have bounds.

    Args:
        uid: the name in records.
        run: whose answers were rated.

    Raises:
        InputFileError: no answer of the run has a rating.
        RecordError: the file of ratings is damaged.
    """

    requires_sut_capabilities = ()  # nobody is asked
    judges_blocked_answers = True  # people may have rated them

    def __init__(self, uid: str, run: RunFolder) -> None:
        super().__init__(uid)
        file = RatingsFile.of(run)
        given = [rating for rating in file.in_force() if rating.score is not None]
        if not given:
            raise InputFileError(
                f"Nobody has rated an answer of run {run.run_id}: {file.path} holds no rating.",
                fix="Rate answers on the page Ratings of `modelgauge serve` first.",
            )
        self._run, self._human = run, Human(HUMAN, given)
        names = [HUMAN, *map(_of_rater, dict.fromkeys(rating.rater for rating in given))]
        self.measurement_ranges = dict.fromkeys(names, (LOWEST, HIGHEST))
        self.measurement_directions = dict.fromkeys(names, "higher")

    def make_test_items(self, dependencies: Mapping[str, Path]) -> Iterator[TestItem]:
        """Give the recorded items, whose prompts name them for the annotator."""
        del dependencies
        for record in recorded_run(self._run).items().records():
            item = record.test_item
            prompts = tuple([prompt.replaced(source_id=item.id) for prompt in item.prompts])
            yield item.replaced(prompts=prompts)

    def get_annotators(self) -> Mapping[str, CompletionAnnotator[Any] | str]:
        """Return the one annotator: the people who rated the answers."""
        return {HUMAN: self._human}

    def measure_quality(self, item: TestItemAnnotations) -> Mapping[str, float]:
        """Return the mean of the ratings, and each rater's."""
        score = item.interactions[0].response.completions[0].get_annotation(HUMAN, Score)
        return {
            HUMAN: score.value,
            **{_of_rater(name): float(value) for name, value in (score.breakdown or {}).items()},
        }

    def aggregate_measurements(self, items: MeasuredItems) -> Mapping[str, Estimate]:
        """Return the means, with bounds in which each rater gives 1, or 5, to every item that they left out."""
        return {
            name: estimate
            if items.missing is None
            else estimate.replaced(bounds=_bounds(estimate, len(items) + items.missing))
            for name, estimate in mean_of_each(items).items()
        }


def _bounds(mean: Estimate, items: int) -> tuple[float, float]:
    missing = items - mean.n
    total = mean.value * mean.n
    return (total + missing * LOWEST) / items, (total + missing * HIGHEST) / items


def _of_rater(name: str) -> str:
    return f"{HUMAN} ({name})"
