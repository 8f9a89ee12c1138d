"""Judge metrics of a conversation, each a declaration; see `procedure.py`."""

import json
from collections.abc import Sequence
from typing import Any, Unpack

from modelgauge.data.test_cases import ConversationalTestCase, Turn
from modelgauge.errors import InvalidOptionError
from modelgauge.metrics.definition import MetricSettings
from modelgauge.metrics.procedure import Judge, JudgeMetric, Procedure
from modelgauge.metrics.questions import TEMPLATES


def windows(metric: Any, case: ConversationalTestCase) -> Sequence[str]:
    """For each turn of the assistant, the conversation up to it: at most `metric.window_size` turns."""
    size: int = metric.window_size
    return [
        "\n".join(_line(turn) for turn in case.turns[max(0, last + 1 - size) : last + 1])
        for last, turn in enumerate(case.turns)
        if turn.role == "assistant"
    ]


class _TurnMetric(JudgeMetric):
    """Judges each turn of the assistant in the light of the turns before it.

    Args:
        uid: see `Metric`, as for the settings.
        window_size: how many turns the judge sees, the judged one included.

    Raises:
        InvalidOptionError: the window is smaller than one turn.
    """

    test_case_type = ConversationalTestCase

    def __init__(
        self, uid: str | None = None, *, window_size: int = 10, **settings: Unpack[MetricSettings]
    ) -> None:
        super().__init__(uid, **settings)
        if type(window_size) is not int or window_size < 1:
            raise InvalidOptionError(
                f"{self.name} got window_size={window_size!r}.", fix="Give the number of turns, 1 or more."
            )
        self.window_size = window_size


class TurnRelevancyMetric(_TurnMetric):
    """The share of the assistant's turns that are relevant to the conversation before them.

    A conversation in which the assistant says nothing scores 1. Takes `window_size`: how many turns the judge
    sees, the judged one included. (deepeval.com/docs/metrics-turn-relevancy)
    """

    required_params = ("turns",)
    score_range = (0.0, 1.0)
    procedure = Procedure(extract=windows, judge=Judge(TEMPLATES / "turn_relevancy.md", one_by_one=True))


ConversationRelevancyMetric = TurnRelevancyMetric
ConversationRelevancy = TurnRelevancyMetric


class RoleAdherenceMetric(_TurnMetric):
    """The share of the assistant's turns that keep to the case's `chatbot_role`.

    A conversation in which the assistant says nothing scores 1. Takes `window_size`, as
    `TurnRelevancyMetric` does. (deepeval.com/docs/metrics-role-adherence)
    """

    required_params = ("turns", "chatbot_role")
    score_range = (0.0, 1.0)
    procedure = Procedure(
        extract=windows,
        judge=Judge(TEMPLATES / "role_adherence.md", shows=("chatbot_role",), one_by_one=True),
    )


def _line(turn: Turn) -> str:
    return json.dumps({"role": turn.role, "content": turn.content}, ensure_ascii=False)
