"""The JSON of a comparison with all its flipped items, in pieces: these may be larger than memory."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from modelgauge.comparison.gates import GateOutcome
from modelgauge.comparison.result import Comparison


def comparison_as_json(
    comparison: Comparison,
    outcomes: Sequence[GateOutcome] = (),
    redact_json: Callable[[Any], Any] = lambda value: value,
) -> Iterator[str]:
    """A comparison as one JSON object, in pieces: a flipped item a line.

    Args:
        comparison: what was found.
        outcomes: what gates say of it, where there are any.
        redact_json: takes secrets out; out of flipped items they were taken when their runs were written.
    """
    known = comparison.model_dump(mode="json")
    known |= {"gates": [outcome.model_dump(mode="json") for outcome in outcomes]} if outcomes else {}
    yield json.dumps(redact_json(known), ensure_ascii=False, indent=2)[:-2]
    yield ',\n  "flips": ['
    for place, flip in enumerate(comparison.iter_flips()):
        yield f"{',' if place else ''}\n    {flip.model_dump_json()}"
    yield "]\n}"
