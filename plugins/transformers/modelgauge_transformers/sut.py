"""The SUT: prompts become requests of JSON, a loaded model (`model.py`) answers them in batches."""

import logging
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from modelgauge import (
    ChatMessage,
    ChatPrompt,
    ContinuationPrompt,
    ProducesPerTokenLogProbabilities,
    PromptResponseSUT,
    SUTCompletion,
    SUTOptions,
    SUTResponse,
    TextPrompt,
    TokenProbability,
    TopTokens,
    Usage,
)
from modelgauge.errors import CallError, InvalidOptionError, PluginError
from modelgauge_transformers.files import ModelFiles

if TYPE_CHECKING:
    from modelgauge_transformers.model import LocalModel

log = logging.getLogger(__name__)

Request = dict[str, Any]
Response = dict[str, Any]

MOST_TOKENS = 512
"""Most tokens of a completion whose prompt sets no limit."""

_MEANT = frozenset(SUTOptions.model_fields) - {"max_tokens", "response_schema"}


class TransformersModel(PromptResponseSUT[Request, Response]):
    """A local model of transformers. It is loaded before the first prompt that the cache does not answer.

    Args:
        uid: the name in records.
        model: a folder, or an id of the Hugging Face hub.
        dtype: float32, float16, bfloat16, or auto for that of the files.
        device: cpu, cuda, cuda:1, mps; by default a GPU if there is one. auto, balanced, balanced_low_0 and sequential
            spread the model over all GPUs, as `device_map` of transformers does.
        revision: branch, tag or commit of an id. The commit is recorded.
        gguf_file: a GGUF file in the folder, which weights and tokenizer are read from.
        adapter: the folder or id of an adapter (LoRA and the like, by peft), which changes the model's weights.
        batch_tokens: most tokens in a batch, padding included.

    Raises:
        InputFileError: a folder or file does not exist.
        InvalidOptionError: an option does not fit the others.
    """

    capabilities = (ProducesPerTokenLogProbabilities,)
    batch_size = 64
    has_deadline = False
    cache_identity = "transformers"
    meant_by: ClassVar[Mapping[str, str]] = {
        "peft": "adapter",
        "device_map": "device",
        "torch_dtype": "dtype",
    }
    # What counts is what the files hold, and devices differ by rounding only.
    identity_excludes: ClassVar[frozenset[str]] = frozenset(
        {"model", "revision", "gguf_file", "adapter", "device", "batch_tokens"}
    )

    def __init__(
        self,
        uid: str,
        model: str,
        *,
        dtype: str = "auto",
        device: str | None = None,
        revision: str | None = None,
        gguf_file: str | None = None,
        adapter: str | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        super().__init__(uid)
        if batch_tokens is not None and batch_tokens < 1:
            raise InvalidOptionError(f"batch_tokens is {batch_tokens}.", fix="Give 1 or more.")
        self._files = ModelFiles(model, revision, gguf_file)
        self._adapter = None if adapter is None else ModelFiles.of_adapter(adapter)
        self._options = {"dtype": dtype, "device": device, "batch_tokens": batch_tokens}
        self._model: LocalModel | None = None
        # The files are read now, on the caller's thread: a run asks for their digest on its event loop.
        _ = self.cache_version

    @property
    def cache_version(self) -> str:  # type: ignore[override]  # computed, as the files' content is
        """A digest of the files' content, or the commit of an id; with an adapter, of both."""
        return "+".join(files.version() for files in (self._files, self._adapter) if files is not None)

    def identity(self, asked: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return an identity without the model's path: equal files give equal answers."""
        identity = super().identity(asked)
        _, *others = identity["made"]
        return {**identity, "made": ["transformers", *others]}

    def open(self) -> None:
        """Load the model.

        Raises:
            PluginError: torch or transformers is not installed.
        """
        begun = monotonic()
        log.warning("Loading %s …", self._files.name)
        self._model = self._load()
        model = self._model.forward.model
        log.warning(
            "Loaded %s: %s million parameters as %s on %s, in %.0f s.",
            self._files.name,
            f"{model.num_parameters() / 1e6:,.0f}",
            str(model.dtype).removeprefix("torch."),
            self._model.forward.device,
            monotonic() - begun,
        )

    def _load(self) -> "LocalModel":
        try:
            from modelgauge_transformers.model import LocalModel, Placement  # noqa: PLC0415  imports torch
        except ModuleNotFoundError as error:
            raise PluginError(
                f"A local model needs {error.name}, which is not installed.",
                fix="pip install 'modelgauge-plugin-transformers[torch]', or the build of torch for your GPU (see "
                "pytorch.org) and transformers.",
            ) from error
        return LocalModel(self._files, Placement(**self._options), self._adapter)  # type: ignore[arg-type]  # of mixed types

    async def close(self) -> None:
        """Forget the model."""
        self._model = None

    def translate_text_prompt(self, prompt: TextPrompt) -> Request:
        """Return the text unchanged, for the model to continue."""
        return {"text": prompt.text, **_asked(prompt.options)}

    def translate_chat_prompt(self, prompt: ChatPrompt) -> Request:
        """Return the messages, for the model's own template."""
        return {"messages": _messages(prompt.messages), **_asked(prompt.options)}

    def translate_continuation_prompt(self, prompt: ContinuationPrompt) -> Request:
        """Return the context, as a text or a chat, and the continuations."""
        context = prompt.context if isinstance(prompt.context, str) else _messages(prompt.context)
        return {"context": context, "continuations": list(prompt.continuations)}

    def evaluate_batch(self, requests: Sequence[Request]) -> list[Response]:
        """Answer requests, in batches of like length."""
        if self._model is None:
            raise PluginError(f"'{self.uid}' is not open.", fix="Call sut.open() first.")
        return self._model.answer(requests)

    def translate_response(self, request: Request, response: Response) -> SUTResponse:
        """Return the completions, or the scores of the continuations, with the numbers of tokens read and generated.

        Raises:
            CallError: the model cannot answer the request.
        """
        if "problem" in response:
            raise CallError(response["problem"], fix=response["fix"])
        if "scores" in response:
            scored = zip(request["continuations"], response["scores"], strict=True)
            metadata = {"is_context_cut": True} if response.get("is_context_cut") else {}
            completions = [_scored(text, score, metadata) for text, score in scored]
        else:
            completions = [_completion(made) for made in response["completions"]]
        usage = Usage(
            input_tokens=response["input_tokens"],
            output_tokens=sum(made["tokens"] for made in response.get("completions", ())),
            forward_passes=response.get("forward_passes"),
        )
        return SUTResponse(completions, usage)


def _messages(messages: Sequence[ChatMessage]) -> list[dict[str, str]]:
    return [{"role": message.role.value, "content": message.text} for message in messages]


def _asked(options: SUTOptions) -> dict[str, Any]:
    """Return the options that have a meaning here, and the limit of tokens."""
    return {
        "max_tokens": options.max_tokens or MOST_TOKENS,
        "options": options.model_dump(mode="json", exclude_none=True, include=set(_MEANT)),
    }


def _completion(made: Mapping[str, Any]) -> SUTCompletion:
    top = made.get("top_logprobs")
    return SUTCompletion(
        made["text"],
        finish_reason=made["finish_reason"],
        metadata={"seed": made["seed"]} if "seed" in made else {},
        top_logprobs=None
        if top is None
        else [TopTokens(top_tokens=tuple(map(_token, best))) for best in top],
    )


def _scored(text: str, score: Mapping[str, Any], metadata: dict[str, Any]) -> SUTCompletion:
    return SUTCompletion(
        text,
        logprob=sum(score["logprobs"]),
        is_greedy=score["is_greedy"],
        num_tokens=len(score["logprobs"]),
        token_logprobs=list(map(_token, zip(score["tokens"], score["logprobs"], strict=True))),
        metadata=metadata,
    )


def _token(token: Sequence[Any]) -> TokenProbability:
    return TokenProbability(token=token[0], logprob=token[1])
