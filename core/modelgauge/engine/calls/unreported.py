"""Limits on tokens and cost that a SUT cannot be held to, since its responses do not tell them."""

import logging
from collections.abc import Iterator

from modelgauge.config.options import RunOptions
from modelgauge.data.responses import Usage
from modelgauge.engine.calls.budget import tokens_of

_UNKNOWN = "%s does not hold for '%s': its responses tell no %s."

log = logging.getLogger(__name__)


class Unreported:
    """Looks at each usage, and says once of each limit that it cannot hold.

    Args:
        uid: of the SUT.
        options: of the run, with its limits.
    """

    def __init__(self, uid: str, options: RunOptions) -> None:
        self._uid, self._options = uid, options
        self._found: dict[str, str] = {}

    def look(self, usage: Usage | None) -> None:
        """Find out which limits do not hold.

        Args:
            usage: of a call; None where its response told none, or could not be read.
        """
        options = self._options
        limits: list[tuple[str, str, float | None]] = []
        if usage is None or usage.cost_usd is None:
            limits += [("--max-cost", "cost (some SUTs take prices as options)", options.max_cost)]
        if usage is None or not tokens_of(usage):
            limits += [("--max-tokens-total", "tokens", options.max_tokens_total)]
            limits += [("--tokens-per-minute", "tokens", options.tokens_per_minute)]
        for option, what, limit in limits:
            if limit is not None and option not in self._found:
                self._found[option] = what
                log.warning(_UNKNOWN, option, self._uid, what)

    def notes(self) -> Iterator[str]:
        """What the record shall say."""
        for option, what in sorted(self._found.items()):
            yield _UNKNOWN % (option, self._uid, what)
