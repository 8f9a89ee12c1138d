"""Log-probabilities of given tokens: contexts are read once, and their keys and values serve all continuations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from modelgauge_transformers.batches import Batches, Size
from modelgauge_transformers.forward import Forward, left_padded, right_padded
from modelgauge_transformers.tokens import Ids


class Scores(NamedTuple):
    """The log-probabilities of tokens, and whether each of them is the most likely one."""

    logprobs: list[float]
    is_greedy: bool


@dataclass(frozen=True, slots=True)
class Branches:
    """A context and the continuations to score behind it, as tokens; none of them is empty."""

    context: Ids
    continuations: list[Ids]

    @property
    def size(self) -> Size:
        """A row for each continuation, since each gets a copy of the context's keys and values."""
        longest = max(map(len, self.continuations))
        return Size(len(self.continuations), len(self.context) + longest - 1)

    def split(self, most: int) -> "Iterator[Branches]":
        """Yield parts whose rows have at most so many tokens, or a single continuation."""
        rows = max(1, most // max(1, self.size.length))
        for begin in range(0, len(self.continuations), rows):
            yield Branches(self.context, self.continuations[begin : begin + rows])


def score(forward: Forward, batches: Batches, asked: Sequence[Branches]) -> list[list[Scores]]:
    """Score the continuations of each context, in order."""
    parts, owners = [], []
    for owner, branches in enumerate(asked):
        for part in branches.split(batches.most if forward.shares_contexts else 1):
            parts.append(part)
            owners.append(owner)
    found: list[list[Scores]] = [[] for _ in asked]
    straight = [at for at, part in enumerate(parts) if len(part.continuations) == 1]
    forked = [at for at, part in enumerate(parts) if len(part.continuations) > 1]
    scores: dict[int, list[Scores]] = {}
    for places, work in ((straight, _score_straight), (forked, _score_forked)):
        results = batches.run([parts[at] for at in places], lambda batch, work=work: work(forward, batch))  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        scores.update(zip(places, results, strict=True))
    for at, owner in enumerate(owners):
        found[owner] += scores[at]
    return found


def _score_straight(forward: Forward, batch: Sequence[Branches]) -> list[list[Scores]]:
    """Score one continuation for each context, in one pass."""
    rows = [branches.context + branches.continuations[0][:-1] for branches in batch]
    wanted = [branches.continuations[0] for branches in batch]
    keep = max(map(len, wanted))
    ids, mask = left_padded(rows, forward.pad, forward.device)
    logits, _ = forward.read(ids, mask, keep=keep)
    return [[_scores(logits[row, keep - len(tokens) :], tokens)] for row, tokens in enumerate(wanted)]


def _score_forked(forward: Forward, batch: Sequence[Branches]) -> list[list[Scores]]:
    """Read contexts once, take the first tokens from their last logits, and read on with what is left."""
    ids, mask = left_padded([branches.context for branches in batch], forward.pad, forward.device)
    first, cache = forward.read(ids, mask, keep=1, keep_cache=True)
    places = [(row, at) for row, branches in enumerate(batch) for at in range(len(branches.continuations))]
    longer = [(row, at) for row, at in places if len(batch[row].continuations[at]) > 1]
    rest: dict[tuple[int, int], Any] = {}
    if longer:
        chosen = torch.tensor([row for row, _ in longer])  # on the CPU: layers may be on several devices
        cache.batch_select_indices(chosen)
        further = [batch[row].continuations[at][:-1] for row, at in longer]
        ids, further_mask = right_padded(further, forward.pad, forward.device)
        logits, _ = forward.read(
            ids, torch.cat([mask[chosen], further_mask], dim=1), keep=ids.shape[1], cache=cache
        )
        rest = dict(zip(longer, logits, strict=True))
    found: list[list[Scores]] = [[] for _ in batch]
    for row, at in places:
        tokens = batch[row].continuations[at]
        logits = first[row, -1:]
        if len(tokens) > 1:
            logits = torch.cat([logits, rest[row, at][: len(tokens) - 1]])
        found[row].append(_scores(logits, tokens))
    return found


def _scores(logits: Any, tokens: Ids) -> Scores:
    """Return the scores of tokens by the logits at their positions, computed in 32 bits."""
    wanted = torch.tensor(tokens, device=logits.device)
    logits = logits.float()
    chosen = logits.gather(-1, wanted[:, None])[:, 0]
    logprobs = chosen - logits.logsumexp(-1)
    return Scores(logprobs.tolist(), bool((logits.argmax(-1) == wanted).all()))
