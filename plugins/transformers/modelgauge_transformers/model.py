"""A loaded model that answers requests: tokenized, cut into batches, generated or scored."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from threading import Lock
from typing import Any

import torch
import transformers

from modelgauge.errors import CallError, InputFileError, InvalidOptionError
from modelgauge_transformers.batches import Batches
from modelgauge_transformers.files import ModelFiles
from modelgauge_transformers.forward import Forward
from modelgauge_transformers.generating import Generated, Generation, Sampling, generate
from modelgauge_transformers.scoring import Branches, Scores, score
from modelgauge_transformers.tokens import Pair, Tokens, get_context_size

Request = dict[str, Any]
Response = dict[str, Any]

_MOST_ON_CPU, _MOST_ON_GPU = 4096, 16384
"""Tokens in a batch, unless `batch_tokens` says otherwise."""

_DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Values of `device` that spread a model over GPUs, by the names of transformers."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The numbers that a model computes with, and the devices that it does so on.

    Args:
        dtype: a name of torch, or auto for that of the files.
        device: a name of torch, or of a way to spread a model over GPUs; None for a GPU if there is one, else the CPU.
        batch_tokens: most tokens in a batch, padding included.
    """

    dtype: str = "auto"
    device: str | None = None
    batch_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class _ToScore:
    """The contexts and continuations of a request, and for each the number of the continuation that it is a part of."""

    branches: list[Branches]
    owners: list[list[int]]
    continuations: int
    is_cut: bool


class LocalModel:
    """A model in memory. One thread at a time uses it.

    Args:
        files: of the model.
        placement: of its weights.
        adapter: files of an adapter.
    """

    def __init__(self, files: ModelFiles, placement: Placement, adapter: ModelFiles | None = None) -> None:
        name, options = _source(files)
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=False, **options)
        model = _load(name, options, placement)
        if adapter is not None:
            _add_adapter(model, adapter)
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        self.tokens = Tokens(tokenizer, get_context_size(model.config, tokenizer))
        self.forward = Forward(model, 0 if pad is None else pad)
        if model.generation_config.eos_token_id is None:
            model.generation_config.eos_token_id = tokenizer.eos_token_id
        on_cpu = self.forward.device.type == "cpu"
        most = placement.batch_tokens or (_MOST_ON_CPU if on_cpu else _MOST_ON_GPU)
        self._batches = Batches(most, _is_out_of_memory)
        self._lock = Lock()

    def answer(self, requests: Sequence[Request]) -> list[Response]:
        """Answer requests in order. One that cannot be answered has a problem in place of an answer.

        The first that can be has the forward passes of them all.
        """
        with self._lock, torch.inference_mode():
            passes = self.forward.passes
            answers: dict[int, Response] = {}
            asked: dict[int, list[Generation]] = {}
            scored: dict[int, _ToScore] = {}
            for at, request in enumerate(requests):
                try:
                    if "continuations" in request:
                        scored[at] = self._to_score(request)
                    else:
                        asked[at] = self._generations(request)
                except CallError as error:
                    answers[at] = {"problem": error.problem, "fix": error.fix}
            answers.update(self._generate(asked))
            answers.update(self._score(scored))
            if made := [at for at in range(len(requests)) if "problem" not in answers[at]]:
                answers[made[0]]["forward_passes"] = self.forward.passes - passes
            return [answers[at] for at in range(len(requests))]

    # --- texts ---

    def _generations(self, request: Request) -> list[Generation]:
        """Return the completions to generate for a request.

        Raises:
            CallError: the prompt leaves no room for a completion, or is a chat that the model does not take.
        """
        ids = self.tokens.encode_prompt(request)
        room = self.tokens.context_size - len(ids)
        if room < 1:
            raise CallError(
                f"The prompt has {len(ids):,} tokens, and the model reads "
                f"{self.tokens.context_size:,} with its answer.",
                fix="Shorten the prompt, or choose a model that reads more.",
            )
        options = request["options"]
        return [
            Generation(
                ids,
                min(request["max_tokens"], room),
                tuple(filter(None, options.get("stop_sequences", ()))),
                _sampling(options, number),
                options.get("presence_penalty", 0.0),
                options.get("frequency_penalty", 0.0),
                options.get("top_logprobs"),
            )
            for number in range(options.get("num_completions", 1))
        ]

    def _generate(self, asked: Mapping[int, list[Generation]]) -> dict[int, Response]:
        every = [(at, row) for at, rows in asked.items() for row in rows]
        made = self._batches.run(
            [row for _, row in every], lambda batch: generate(self.forward, self.tokens, batch)
        )
        found: dict[int, Response] = {
            at: {"completions": [], "input_tokens": len(rows[0].ids)} for at, rows in asked.items()
        }
        for (at, row), completion in zip(every, made, strict=True):
            found[at]["completions"].append(self._completion(row, completion))
        return found

    def _completion(self, asked: Generation, made: Generated) -> dict[str, Any]:
        completion: dict[str, Any] = {
            "text": made.text,
            "tokens": made.tokens,
            "finish_reason": made.finish_reason,
        }
        if asked.sampling is not None:
            completion["seed"] = asked.sampling.seed
        if made.top is not None:
            completion["top_logprobs"] = [
                list(
                    zip(
                        self.tokens.names([token for token, _ in best]),
                        [_finite(x) for _, x in best],
                        strict=True,
                    )
                )
                for best in made.top
            ]
        return completion

    # --- continuations ---

    def _to_score(self, request: Request) -> _ToScore:
        """Return the tokens to score for a request.

        Raises:
            CallError: a continuation cannot be scored, or the context is a chat that the model does not take.
        """
        context, continuations = request["context"], request["continuations"]
        branches, owners, is_cut = [], [], False
        if context == "":
            for owner, text in enumerate(continuations):
                for window in self.tokens.windows(text):
                    branches.append(Branches(window.context, [window.continuation]))
                    owners.append([owner])
            return _ToScore(branches, owners, len(continuations), is_cut=False)
        text = context if isinstance(context, str) else self.tokens.chat_text(context)
        pairs = self.tokens.encode_pairs(text, continuations)
        by_context: dict[tuple[int, ...], list[tuple[int, Pair]]] = {}
        for owner, pair in enumerate(pairs):
            fitted = self.tokens.fitted(pair)
            is_cut = is_cut or fitted is not pair
            by_context.setdefault(tuple(fitted.context), []).append((owner, fitted))
        for same in by_context.values():
            branches.append(Branches(same[0][1].context, [pair.continuation for _, pair in same]))
            owners.append([owner for owner, _ in same])
        return _ToScore(branches, owners, len(continuations), is_cut)

    def _score(self, asked: Mapping[int, _ToScore]) -> dict[int, Response]:
        every = [branches for request in asked.values() for branches in request.branches]
        scores = iter(score(self.forward, self._batches, every))
        return {
            at: self._scored(request, [next(scores) for _ in request.branches])
            for at, request in asked.items()
        }

    def _scored(self, asked: _ToScore, scores: Sequence[Sequence[Scores]]) -> Response:
        rows: list[dict[str, Any]] = [
            {"tokens": [], "logprobs": [], "is_greedy": True} for _ in range(asked.continuations)
        ]
        read = 0
        for branches, owners, found in zip(asked.branches, asked.owners, scores, strict=True):
            read += len(branches.context)
            for owner, ids, its in zip(owners, branches.continuations, found, strict=True):
                read += len(ids) - 1
                rows[owner]["tokens"] += self.tokens.names(ids)
                rows[owner]["logprobs"] += map(_finite, its.logprobs)
                rows[owner]["is_greedy"] = rows[owner]["is_greedy"] and its.is_greedy
        response: Response = {"scores": rows, "input_tokens": read}
        return {**response, "is_context_cut": True} if asked.is_cut else response


def _finite(logprob: float) -> float:
    """Return a finite log-probability: -9999 for a probability of 0, as OpenAI does."""
    if logprob != logprob:  # noqa: PLR0124  not a number
        raise CallError("The model computes no numbers (NaN).", fix="Choose another dtype: ?dtype=float32")
    return max(logprob, -9999.0)


def _sampling(options: Mapping[str, Any], number: int) -> Sampling | None:
    """Return how to draw; None for the most likely token, as long as nothing else is asked for."""
    asked = {name for name in ("temperature", "top_p", "top_k_per_token") if name in options}
    temperature = options.get("temperature", 1.0)
    if not asked or temperature == 0:
        return None
    seed = options.get("random")
    if seed is None:
        seed = secrets.randbits(32)
    elif not isinstance(seed, int):
        seed = int.from_bytes(sha256(str(seed).encode()).digest()[:4])
    return Sampling(
        (seed + number) % 2**63, temperature, options.get("top_p", 1.0), options.get("top_k_per_token")
    )


# --- loading ---


def _source(files: ModelFiles) -> tuple[str, dict[str, Any]]:
    """Return the name to load, and the options of loading: one commit of an id, and no network for a folder."""
    options: dict[str, Any] = {}
    if files.gguf_file is not None:
        options["gguf_file"] = files.gguf_file
    if files.folder is not None:
        return str(files.folder), {**options, "local_files_only": True}
    return files.name, {**options, "revision": files.commit()}


def _load(name: str, options: Mapping[str, Any], placement: Placement) -> Any:
    """Load a model onto its devices.

    Raises:
        InvalidOptionError: torch has no such dtype.
    """
    dtype = placement.dtype if placement.dtype == "auto" else getattr(torch, placement.dtype, None)
    if dtype != "auto" and not isinstance(dtype, torch.dtype):
        raise InvalidOptionError(
            f"dtype is {placement.dtype!r}, which torch does not have.",
            fix="Give auto, float32, float16 or bfloat16.",
        )
    spread = {"device_map": placement.device} if placement.device in _DEVICE_MAPS else {}
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(
        name, dtype=dtype, trust_remote_code=False, **spread, **options
    )
    return (model if spread else model.to(placement.device or _best_device())).eval()


def _add_adapter(model: Any, adapter: ModelFiles) -> None:
    """Load an adapter into a model.

    Raises:
        InputFileError: it is for another model.
    """
    import_module("peft")  # where it is missing, transformers names it less plainly
    name, options = _source(adapter)
    try:
        loaded = model.load_adapter(name, adapter_kwargs=options)
    except (RuntimeError, ValueError) as error:  # of shapes, of layers
        why = str(error).strip().splitlines()[0].rstrip(".")
    else:
        lacking = sorted(map(str, loaded.missing_keys))
        if not lacking:
            model.eval()
            return
        why = f"it has no weights for {lacking[0]}"
    raise InputFileError(
        f"The adapter {adapter.name} does not fit the model: {why}.",
        fix="Name the model that it was trained for, or another adapter.",
    )


def _best_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "allocate memory" in str(error)
    )
