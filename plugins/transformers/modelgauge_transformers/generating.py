"""Texts by `model.generate`, in batches whose rows have their own limits, stops, seeds and penalties."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from modelgauge_transformers.batches import Size
from modelgauge_transformers.forward import Forward, left_padded
from modelgauge_transformers.tokens import Ids, Tokens

TopToken = tuple[int, float]


@dataclass(frozen=True, slots=True)
class Sampling:
    """A draw among tokens.

    Args:
        seed: of the draws.
        temperature: above 0.
        top_p: the share of the probability that is drawn from.
        top_k: the number of tokens that are drawn from; None for all.
    """

    seed: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """One completion to generate.

    Args:
        ids: the prompt's tokens.
        max_tokens: most tokens to generate.
        stops: texts to stop at.
        sampling: None takes the most likely token.
        presence_penalty: taken from the logits of tokens that were generated.
        frequency_penalty: taken from them once for each time.
        top: the number of most likely tokens to report at each position.
    """

    ids: Ids
    max_tokens: int
    stops: tuple[str, ...] = ()
    sampling: Sampling | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    top: int | None = None

    @property
    def size(self) -> Size:
        """A row of the prompt and of all that may be generated."""
        return Size(1, len(self.ids) + self.max_tokens)

    @property
    def is_steered(self) -> bool:
        """True if it needs more than greedy decoding."""
        penalized = self.presence_penalty or self.frequency_penalty
        return self.sampling is not None or bool(penalized) or self.top is not None


class Generated(NamedTuple):
    """A completion.

    Args:
        text: without the sequence that it stopped at.
        tokens: the number of generated tokens.
        finish_reason: "stop" or "length".
        top: the most likely tokens at each position, if asked for.
    """

    text: str
    tokens: int
    finish_reason: str
    top: list[list[TopToken]] | None


def generate(forward: Forward, tokens: Tokens, batch: Sequence[Generation]) -> list[Generated]:
    """Generate a batch, all rows until the last has ended."""
    ids, mask = left_padded([row.ids for row in batch], forward.pad, forward.device)
    config = _greedy_config(forward, max(row.max_tokens for row in batch))
    ending = _Ending(batch, tokens, ids.shape[1], _ends(config.eos_token_id))
    steering = _Steering(batch, ids.shape[1])
    is_steered = any(row.is_steered for row in batch)
    made = forward.model.generate(
        input_ids=ids,
        attention_mask=mask,
        generation_config=config,
        stopping_criteria=[ending],
        logits_processor=[steering] if is_steered else [],
    )
    forward.passes += made.shape[1] - ids.shape[1]
    forward.tokens += int(mask.sum()) + sum(ending.lengths) - len(batch)
    found = []
    for row, asked in enumerate(batch):
        length = ending.lengths[row]
        text = tokens.decode(made[row, ids.shape[1] : ids.shape[1] + length].tolist())
        top = steering.top[row][:length] if asked.top is not None else None
        found.append(Generated(_cut(text, asked.stops), length, ending.reasons[row], top))
    return found


def _greedy_config(forward: Forward, most: int) -> Any:
    """Return the model's own configuration, without its sampling: what is drawn is drawn by `_Steering`."""
    config = deepcopy(forward.model.generation_config)
    config.update(do_sample=False, num_beams=1, num_return_sequences=1, max_length=None, max_new_tokens=most)
    config.update(temperature=None, top_p=None, top_k=None, min_p=None, typical_p=None)
    config.update(pad_token_id=forward.pad, return_dict_in_generate=False, use_cache=True)
    return config


def _ends(eos: int | Sequence[int] | None) -> frozenset[int]:
    return frozenset() if eos is None else frozenset([eos] if isinstance(eos, int) else eos)


def _cut(text: str, stops: Sequence[str]) -> str:
    """Return a text up to the first of the stops in it."""
    return text[: min((at for stop in stops if (at := text.find(stop)) >= 0), default=len(text))]


class _Ending:
    """Ends each row by itself; called by `generate` after each token."""

    def __init__(self, batch: Sequence[Generation], tokens: Tokens, begin: int, eos: frozenset[int]) -> None:
        self._batch, self._tokens, self._begin, self._eos = batch, tokens, begin, eos
        self._tails = [max((len(stop.encode()) + 1 for stop in row.stops), default=0) for row in batch]
        self.lengths = [0] * len(batch)
        self.reasons = [""] * len(batch)

    def __call__(self, input_ids: Any, scores: Any, **more: Any) -> Any:
        """Return for each row whether it has ended."""
        del scores, more
        new = input_ids[:, self._begin :].tolist()
        for row, ids in enumerate(new):
            if not self.reasons[row]:
                self.lengths[row] = len(ids)
                self.reasons[row] = self._reason(row, ids)
        return torch.tensor([bool(reason) for reason in self.reasons], device=input_ids.device)

    def _reason(self, row: int, ids: Ids) -> str:
        asked = self._batch[row]
        if ids[-1] in self._eos:
            return "stop"
        if asked.stops:
            tail = self._tokens.decode(ids[-self._tails[row] :])  # each token has a byte or more
            if any(stop in tail for stop in asked.stops):
                return "stop"
        return "length" if len(ids) >= asked.max_tokens else ""


@dataclass(slots=True)
class _Steering:
    """Reports likely tokens, penalizes and draws; called by `generate` with the logits of each position."""

    batch: Sequence[Generation]
    begin: int
    top: list[list[list[TopToken]]] = field(init=False)
    _draws: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.top = [[] for _ in self.batch]
        self._draws = [
            None if row.sampling is None else torch.Generator().manual_seed(row.sampling.seed)
            for row in self.batch
        ]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return logits whose highest is the token to take."""
        scores = scores.float().clone()
        for row, asked in enumerate(self.batch):
            if asked.top is not None:
                best = scores[row].log_softmax(-1).topk(max(1, asked.top))
                self.top[row].append(list(zip(best.indices.tolist(), best.values.tolist(), strict=True)))
            if asked.presence_penalty or asked.frequency_penalty:
                ids, counts = input_ids[row, self.begin :].unique(return_counts=True)
                scores[row, ids] -= asked.presence_penalty + asked.frequency_penalty * counts
            if asked.sampling is not None:
                drawn = _draw(scores[row], asked.sampling, self._draws[row])
                scores[row] = -torch.inf
                scores[row, drawn] = 0.0
        return scores


def _draw(logits: Any, sampling: Sampling, generator: Any) -> int:
    """Draw a token. Draws are made on the CPU, so that a seed means the same on every device."""
    ordered, places = (logits.cpu() / sampling.temperature).sort(descending=True, stable=True)
    if sampling.top_k is not None:
        ordered = ordered[: sampling.top_k]
    shares = ordered.softmax(-1)
    before = shares.cumsum(-1) - shares
    shares[1:] *= (before < sampling.top_p)[1:]  # the most likely token stays, whatever top_p is
    return int(places[torch.multinomial(shares, 1, generator=generator)])
