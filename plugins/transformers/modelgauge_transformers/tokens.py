"""Texts to tokens and back. Contexts and continuations are tokenized as lm-evaluation-harness does it, so that
log-likelihoods agree. Nothing here needs torch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelgauge.errors import CallError

Ids = list[int]


@dataclass(frozen=True, slots=True)
class Pair:
    """The tokens to score, and those before them."""

    context: Ids
    continuation: Ids


class Tokens:
    """A tokenizer.

    Args:
        tokenizer: of transformers.
        context_size: most tokens that the model reads at once.
    """

    def __init__(self, tokenizer: Any, context_size: int) -> None:
        self.tokenizer, self.context_size = tokenizer, context_size

    def encode(self, text: str, *, special: bool = True) -> Ids:
        """Return the tokens of a text, with the tokenizer's own ones at the beginning unless the text has them.

        Args:
            text: to encode.
            special: False leaves the tokenizer's own ones out.
        """
        begin = self.tokenizer.bos_token
        has_begin = bool(begin) and text.startswith(begin)
        encoded: Ids = self.tokenizer.encode(text, add_special_tokens=special and not has_begin)
        return encoded

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of generated tokens, without special ones."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def names(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each token, special ones included."""
        return [str(self.tokenizer.decode([token])) for token in ids]

    def chat_text(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return a chat in the model's template, up to where the model's message begins or is to be continued.

        Raises:
            CallError: the model has no template, or the template refuses the chat.
        """
        if not self.tokenizer.chat_template:
            raise CallError(
                "The model has no chat template, so it takes no chats.",
                fix="Choose a model that is tuned for chats, or a test that asks with texts.",
            )
        is_begun = messages[-1]["role"] == "assistant"
        try:
            return str(
                self.tokenizer.apply_chat_template(
                    [dict(message) for message in messages],
                    tokenize=False,
                    add_generation_prompt=not is_begun,
                    continue_final_message=is_begun,
                )
            )
        except Exception as error:  # the template is code that raises what it likes
            raise CallError(
                f"The model's chat template refuses the chat: {error}.",
                fix="Look at the order and the roles of the chat's messages: many templates take no system message, "
                "or want user and assistant by turns.",
            ) from error

    def encode_prompt(self, request: Mapping[str, Any]) -> Ids:
        """Return the tokens of a request's text or chat."""
        if "messages" in request:
            return self.encode(self.chat_text(request["messages"]), special=False)
        return self.encode(request["text"]) or [self.prefix]

    def encode_pairs(self, context: str, continuations: Sequence[str]) -> list[Pair]:
        """Return the tokens of a context and of each continuation. Spaces at the context's end go to the continuations.

        Raises:
            CallError: a continuation has no token of its own.
        """
        stripped = context.rstrip()
        spaces = context[len(stripped) :]
        if not stripped:  # nothing but spaces: only the token that texts begin with comes before
            return [Pair([self.prefix], self.encode(spaces + text, special=False)) for text in continuations]
        before = self.encode(stripped)
        pairs = [Pair(before, self.encode(context + text)[len(before) :]) for text in continuations]
        for pair, text in zip(pairs, continuations, strict=True):
            if not pair.continuation:
                raise CallError(
                    f"The continuation {text!r} has no token of its own behind this context.",
                    fix="Let the continuation begin with a space or a whole word.",
                )
        return pairs

    @property
    def prefix(self) -> int:
        """The token that comes before a text without a context."""
        bos, eos = self.tokenizer.bos_token_id, self.tokenizer.eos_token_id
        return int(eos if bos is None else bos)

    def windows(self, text: str) -> Iterator[Pair]:
        """Yield the parts of a text that the model reads at once. Each token is scored in one of them.

        The first begins with the token that texts begin with. The last reaches back as far as the model reads.
        """
        ids, size = [self.prefix, *self.encode(text, special=False)], self.context_size
        for begin in range(1, len(ids), size):
            end = min(begin + size, len(ids))
            yield Pair(ids[max(0, end - size - 1) : begin], ids[begin:end])

    def fitted(self, pair: Pair) -> Pair:
        """Return a pair whose context lacks the tokens at its beginning that the model cannot read at once."""
        kept = self.context_size + 1 - len(pair.continuation)
        if len(pair.context) <= kept:
            return pair
        if kept < 1:
            raise CallError(
                f"A continuation of {len(pair.continuation):,} tokens is longer than the {self.context_size:,} that "
                "the model reads at once.",
                fix="Score it with an empty context, which reads it in parts, or shorten it.",
            )
        return Pair(pair.context[-kept:], pair.continuation)


def get_context_size(config: Any, tokenizer: Any) -> int:
    """Return the number of tokens that a model reads at once, 2,048 if neither says it."""
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    for name in ("max_position_embeddings", "n_positions", "n_ctx", "seq_length"):
        size = getattr(config, name, None)
        if isinstance(size, int) and size > 0:
            return size
    size = getattr(tokenizer, "model_max_length", None)
    return size if isinstance(size, int) and 0 < size < 10**9 else 2048
