"""Passes through a model, for rows of different lengths."""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache

from modelgauge_transformers.tokens import Ids

_KEPT = {"DynamicLayer", "DynamicSlidingWindowLayer"}
"""Layers of a cache that hold keys and values by row, so that rows can be copied. States of recurrent layers are not
among them."""


class Forward:
    """A model that is asked for logits.

    Args:
        model: of transformers.
        pad: the token that fills rows.
    """

    def __init__(self, model: Any, pad: int) -> None:
        self.model, self.pad = model, pad
        self.passes = self.tokens = 0
        self._takes = set(inspect.signature(model.forward).parameters)
        # As newer and older models of transformers call their keys and values; None for those that take none.
        self._cache_name = next((name for name in ("cache", "past_key_values") if name in self._takes), None)
        self.shares_contexts = self._cache_name is not None and _has_copyable_cache(model)

    @property
    def device(self) -> Any:
        """The device that the tokens go to."""
        return self.model.get_input_embeddings().weight.device

    def read(
        self, ids: Any, mask: Any, *, keep: int, cache: Any = None, keep_cache: bool = False
    ) -> tuple[Any, Any]:
        """Read rows of tokens. Return the logits at the last `keep` positions, and the keys and values if asked for.

        Args:
            ids: the tokens, a row for each text.
            mask: 1 for tokens and 0 for padding, over what the cache holds and the rows.
            keep: the number of positions.
            cache: keys and values of what was read before.
            keep_cache: whether to return keys and values.
        """
        new = ids.shape[1]
        self.passes, self.tokens = self.passes + 1, self.tokens + int(mask[:, -new:].sum())
        more: dict[str, Any] = {}
        if "position_ids" in self._takes:
            more["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)[:, -new:]
        if "logits_to_keep" in self._takes:
            more["logits_to_keep"] = keep
        if keep_cache:
            cache = DynamicCache(config=self.model.config)
        if cache is not None and self._cache_name is not None:
            more[self._cache_name] = cache
        read = self.model(input_ids=ids, attention_mask=mask, use_cache=cache is not None, **more)
        return read.logits[:, -keep:], cache


def _has_copyable_cache(model: Any) -> bool:
    layers = DynamicCache(config=model.config).layers
    return {type(layer).__name__ for layer in layers} <= _KEPT


def left_padded(rows: Sequence[Ids], pad: int, device: Any) -> tuple[Any, Any]:
    """Return rows that end together, and their mask."""
    longest = max(map(len, rows))
    ids = torch.tensor([[pad] * (longest - len(row)) + row for row in rows], device=device)
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=device)
    return ids, mask


def right_padded(rows: Sequence[Ids], pad: int, device: Any) -> tuple[Any, Any]:
    """Return rows that begin together, and their mask."""
    longest = max(map(len, rows))
    ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=device)
    return ids, mask
