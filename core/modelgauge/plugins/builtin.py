"""The plugin that ModelGauge itself is: what is built in, registered by the hooks that everybody uses."""

from modelgauge.plugins.hookspecs import hookimpl
from modelgauge.plugins.registry import Register


@hookimpl
def modelgauge_register_suts(register: Register) -> None:
    """`replay/FILE` answers from a JSONL or CSV file."""
    register.provider("replay", "modelgauge.suts.replay:ReplaySUT")


@hookimpl
def modelgauge_register_metrics(register: Register) -> None:
    """Register the metrics of `modelgauge.metrics`. Settings are options: `answer_relevancy?threshold=0.7`."""
    register("answer_relevancy", "modelgauge.metrics.judge_metrics:AnswerRelevancyMetric")
    register("bleu", "modelgauge.metrics.ngrams:BLEUMetric")
    register("chrf", "modelgauge.metrics.ngrams:ChrFMetric")
    register("contains", "modelgauge.metrics.text_metrics:ContainsMetric")
    register("contextual_precision", "modelgauge.metrics.judge_metrics:ContextualPrecisionMetric")
    register("contextual_recall", "modelgauge.metrics.judge_metrics:ContextualRecallMetric")
    register("contextual_relevancy", "modelgauge.metrics.judge_metrics:ContextualRelevancyMetric")
    register("cost", "modelgauge.metrics.app_metrics:CostMetric")
    register("exact_match", "modelgauge.metrics.text_metrics:ExactMatchMetric")
    register("faithfulness", "modelgauge.metrics.judge_metrics:FaithfulnessMetric")
    register("g_eval", "modelgauge.metrics.g_eval:GEval")
    register("hallucination", "modelgauge.metrics.judge_metrics:HallucinationMetric")
    register("json_correctness", "modelgauge.metrics.app_metrics:JsonCorrectnessMetric")
    register("latency", "modelgauge.metrics.app_metrics:LatencyMetric")
    register("levenshtein", "modelgauge.metrics.text_metrics:LevenshteinMetric")
    register("pattern_match", "modelgauge.metrics.text_metrics:PatternMatchMetric")
    register("role_adherence", "modelgauge.metrics.judge_metrics:RoleAdherenceMetric")
    register("rouge", "modelgauge.metrics.ngrams:ROUGEMetric")
    register("token_f1", "modelgauge.metrics.text_metrics:TokenF1Metric")
    register("tool_correctness", "modelgauge.metrics.app_metrics:ToolCorrectnessMetric")
    register("turn_relevancy", "modelgauge.metrics.judge_metrics:TurnRelevancyMetric")
