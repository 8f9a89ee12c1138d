"""Every kind of task gives the figures that lm-eval itself gives, to the last digit."""

import pytest

from modelgauge import Estimate, run_test

QUESTIONS = [
    {
        "question": f"What comes after {n}?",
        "choices": [str(n + 1), f"the number {n}", "nothing"],
        "gold": n % 3,
    }
    for n in range(40)
]
SENTENCES = [{"text": f"The number {n} is followed by {n + 1}, and then by {n + 2}."} for n in range(20)]
CHOICE = {
    "output_type": "multiple_choice",
    "doc_to_text": "{{question}}",
    "doc_to_choice": "choices",
    "doc_to_target": "gold",
}


def metrics(*names, **options):
    return [{"metric": name, "higher_is_better": True, **options} for name in names]


@pytest.fixture
def both(evaluate, sut, tmp_path):
    """Measure a task here and by lm-eval. Return both results, by lm-eval's names."""

    def both(uid, **options):
        name = uid.partition("/")[2].partition("?")[0]
        record = run_test(uid, sut, data_dir=tmp_path / "data")
        assert (record.counts.failed, record.failure) == (0, None)
        found = evaluate(name, **options)["results"][name]
        theirs = {key.removesuffix(",none"): value for key, value in found.items() if _is_figure(key)}
        ours = {key: found.value for key, found in record.result.items() if isinstance(found, Estimate)}
        ours.pop("loglikelihood", None)
        return record, ours, theirs

    return both


def _is_figure(key):
    return "," in key and "_stderr" not in key


def test_choices_by_log_likelihood(write_task, both):
    uid = write_task(
        "choices",
        QUESTIONS,
        **CHOICE,
        metric_list=metrics("acc", "acc_norm", "acc_bytes", aggregation="mean"),
    )
    record, ours, theirs = both(uid)
    assert ours == theirs
    assert set(ours) == {"acc", "acc_norm", "acc_bytes"}
    assert record.result["acc"].interval_kind == "wilson"
    assert record.counts.sut_calls.paid == len(QUESTIONS)


def test_few_shots_are_those_of_lm_eval(write_task, both):
    uid = write_task("shots", QUESTIONS, **CHOICE, fewshot_split="test")
    _, ours, theirs = both(f"{uid}&shots=3&limit=10", num_fewshot=3, limit=10)
    assert ours == theirs


def test_mutual_information_asks_choices_without_context(write_task, both):
    uid = write_task(
        "mutual", QUESTIONS, **CHOICE, metric_list=metrics("acc", "acc_mutual_info", aggregation="mean")
    )
    record, ours, theirs = both(uid)
    assert ours == theirs
    assert [prompt.prompt.context for prompt in record.test_item_records[0].test_item.prompts][1] == ""


def test_corpus_metrics_of_choices_have_bootstrap_intervals(write_task, both):
    uid = write_task("corpus", QUESTIONS, **CHOICE, metric_list=metrics("mcc", "brier_score"))
    record, ours, theirs = both(uid)
    assert ours == theirs
    assert record.result["mcc"].interval_kind == "bootstrap"


def test_generation_with_filters_and_repeats(write_task, both):
    uid = write_task(
        "generation",
        QUESTIONS,
        doc_to_text="{{question}} ",
        doc_to_target="{{gold}}",
        repeats=3,
        generation_kwargs={"until": ["\n\n"], "max_gen_toks": 7},
        metric_list=metrics("exact_match", aggregation="mean"),
        filter_list=[
            {
                "name": "first",
                "filter": [{"function": "regex", "regex_pattern": "(\\d)"}, {"function": "take_first"}],
            },
            {
                "name": "last",
                "filter": [
                    {"function": "regex", "regex_pattern": "(\\d)", "group_select": -1},
                    {"function": "majority_vote"},
                    {"function": "take_first"},
                ],
            },
        ],
    )
    record, ours, theirs = both(uid)
    assert ours == theirs
    assert set(ours) == {"exact_match,first", "exact_match,last"}
    asked = record.test_item_records[0].test_item.prompts[0].prompt.options
    assert (asked.num_completions, asked.max_tokens, asked.stop_sequences) == (3, 7, ("\n\n",))
    assert asked.temperature == 0


def test_bleu_of_the_corpus(write_task, both):
    uid = write_task(
        "bleu",
        QUESTIONS,
        doc_to_text="{{question}}",
        doc_to_target="{{question}}",
        metric_list=metrics("bleu", "chrf"),
    )
    record, ours, theirs = both(uid)
    assert ours == theirs
    low, high = record.result["bleu"].interval
    assert low < ours["bleu"] < high
    assert record.test_item_records[0].measurements == {}


def test_log_likelihood_of_a_target(write_task, both):
    uid = write_task(
        "target",
        QUESTIONS,
        output_type="loglikelihood",
        doc_to_text="{{question}}",
        doc_to_target=" {{choices[0]}}",
        metric_list=[*metrics("acc"), {"metric": "perplexity", "higher_is_better": False}],
    )
    record, ours, theirs = both(uid)
    assert ours == theirs
    assert set(record.test_item_records[0].measurements) == {"acc", "loglikelihood"}
    assert record.directions == {"loglikelihood": "higher", "acc": "higher", "perplexity": "lower"}


def test_rolling_log_likelihood(write_task, both):
    uid = write_task(
        "rolling", SENTENCES, output_type="loglikelihood_rolling", doc_to_text="", doc_to_target="{{text}}"
    )
    record, ours, theirs = both(uid)
    assert ours == theirs
    assert set(ours) == {"word_perplexity", "byte_perplexity", "bits_per_byte"}
    assert record.result["bits_per_byte"].interval_kind == "bootstrap"


@pytest.mark.parametrize("by_size", [True, False])
def test_group_has_the_weights_of_lm_eval(by_size, write_task, both, folder):
    write_task("long", QUESTIONS, **CHOICE)
    write_task("short", QUESTIONS[:7], **CHOICE)
    (folder / "both.yaml").write_text(
        "group: both\ntask: [long, {group: inner, task: [short]}]\n"
        f"aggregate_metric_list:\n  - {{metric: acc, weight_by_size: {str(by_size).lower()}}}\n"
        "metadata: {version: 2.0}\n"
    )
    record, ours, theirs = both(f"lm_eval/both?include={folder}")
    assert ours == theirs
    assert record.result["acc"].n == 47
    assert record.result["short"]["acc"].n == 7
    assert record.test_initialization["cache_version"].startswith("2.0, configuration ")


CLASS = """
from functools import partial

from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask


def agreement(key, items):
    return sum(item[key] for item in items) / len(items)


class Both(ConfigurableTask):
    VERSION = 3

    def __init__(self, config=None):
        super().__init__(config={key: value for key, value in config.items() if key != "class"})

    def construct_requests(self, doc, ctx, **kwargs):
        for name in ("apply_chat_template", "chat_template"):
            kwargs.pop(name, None)
        asked = Instance("generate_until", doc, (ctx, {"until": ["\\n"]}), 0, **kwargs)
        return [asked, Instance("loglikelihood", doc, (ctx, " nothing"), 1, **kwargs)]

    def process_results(self, doc, results):
        text, (logprob, is_greedy) = results
        return {"length": len(text), "both": {"logprob": logprob}}

    def aggregation(self):
        return {"length": lambda items: max(items), "both": partial(agreement, "logprob")}

    def higher_is_better(self):
        return {"length": True, "both": True}
"""


def test_task_that_is_a_class_and_asks_in_two_ways(write_task, both, folder):
    (folder / "both.py").write_text(CLASS)
    uid = write_task(
        "mixed", QUESTIONS, **{**CHOICE, "output_type": "generate_until", "class": "!function both.Both"}
    )
    record, ours, theirs = both(uid)
    assert ours == theirs
    assert set(ours) == {"length", "both"}
    assert [type(prompt.prompt).__name__ for prompt in record.test_item_records[0].test_item.prompts] == [
        "TextPrompt",
        "ContinuationPrompt",
    ]
