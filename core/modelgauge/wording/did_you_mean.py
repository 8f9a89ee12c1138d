"""Suggestions for misspelt names, and for those of DeepEval that are not here. Nothing here raises or prints."""

from collections.abc import Iterable
from importlib import import_module


def closest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> list[str]:
    """Return up to three known names closest to `name`, best first, ignoring case.

    Args:
        name: what the user wrote.
        known: the names that exist.
        cutoff: the least similarity, 0 (anything) to 1 (equal), as `difflib` measures it.
    """
    by_folded: dict[str, str] = {}
    for candidate in known:
        by_folded.setdefault(candidate.casefold(), candidate)
    # Imported when a name is wrong: what the happy path does not need, it does not pay for.
    get_close_matches = import_module("difflib").get_close_matches
    return [by_folded[match] for match in get_close_matches(name.casefold(), by_folded, n=3, cutoff=cutoff)]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`"Did you mean 'x' or 'y'? "`, or nothing; it ends with a space, to stand before the rest of a fix."""
    matches = closest(name, known)
    if not matches:
        return ""
    return f"Did you mean {' or '.join(repr(match) for match in matches)}? "


def known_names(name: str, known: Iterable[str], head: str = "Known") -> str:
    """`"Did you mean 'x'? Known: x, y."`: the fix for an unknown name.

    Args:
        name: what the user wrote.
        known: the names that exist.
        head: what stands before them: "The tables are".
    """
    names = list(known)
    return f"{did_you_mean(name, names)}{head}: {', '.join(names) or 'none'}."


# --- names that are not here ------------------------------------------------------------------------------

_HOMES = ("modelgauge.evals", "modelgauge.metrics")  # what DeepEval has at its top, we have here


def missing_name(module: str, name: str) -> Exception:
    """Return the error for a name that a public module does not have.

    It is an ImportError where DeepEval has the name, or another of our modules: `from … import …` keeps the
    words of no other error.

    Args:
        module: that is looked in.
        name: that is looked for.
    """
    if name in _INSTEAD:
        return ImportError(f"{module} has no {name}: {_INSTEAD[name]}.", name=name)
    for home in _HOMES:
        if name in import_module(home).__all__:
            return ImportError(f"{module} has no {name}: import it from {home}.", name=name)
    return AttributeError(f"module {module!r} has no attribute {name!r}")


_BY_CRITERION = "judge by GEval(NAME, criteria=…), or by a JudgeMetric with a Procedure of your own"
_OF_TURNS = "write a JudgeMetric with test_case_type = ConversationalTestCase and a Procedure"
_TEXT_ONLY = "ModelGauge judges text only, no images, no voice and no MCP"
_ONE_BY_ONE = (
    "evaluate the versions one by one, each with hyperparameters of its own, and compare their records"
)
_NO_SERVER = "there is no server here: data sets and runs are files, see modelgauge runs and modelgauge show"

_INSTEAD = {
    "BaseMetric": "subclass Metric of modelgauge.metrics, and write score(self, test_case)",
    "BaseConversationalMetric": "subclass Metric of modelgauge.metrics with test_case_type = ConversationalTestCase",
    "DeepEvalBaseLLM": "give metrics model=FUNCTION, from a text to a text, or a SUT",
    "GPTModel": 'name a judge by its uid, as in model="openai/gpt-4o", with its plugin',
    "Prompt": "keep prompts in your code, and name them by evaluate(…, hyperparameters={…})",
    "Synthesizer": "write the goldens, or make them by code of your own",
    "ConversationSimulator": "write the turns, or make them by code of your own",
    "get_current_golden": "what the golden knows is in the test case already",
    "on_test_run_end": "write the hook modelgauge_run_finished",
    "trace_manager": "use collect_traces()",
    "BaseSpan": "use Span",
    "trace": "decorate the outermost function of the app with @observe(), and add to its trace by "
    "update_current_trace(…)",
    "flush_traces": "leave it out: traces are sent nowhere, and those of a run are in its record",
    "Persona": 'describe the user in ConversationalGolden(user_description="…")',
    **dict.fromkeys(
        ("next_span", "next_agent_span", "next_llm_span", "next_retriever_span", "next_tool_span"),
        'use @observe(type="llm", …) on the function that is called, and update_current_span(…) inside it',
    ),
    "RetrievedContextData": "give retrieval_context=[…] as texts",
    **dict.fromkeys(
        ("update_llm_span", "update_retriever_span", "update_tool_span", "update_agent_span"),
        'use @observe(type="llm", model=…) and update_current_span(metadata={…}, token_cost=…, retrieval_context=[…])',
    ),
    **dict.fromkeys(("login", "view", "evaluate_thread", "evaluate_trace", "evaluate_span"), _NO_SERVER),
    **dict.fromkeys(("compare", "ArenaGEval", "ArenaTestCase", "Contestant", "BaseArenaMetric"), _ONE_BY_ONE),
    **dict.fromkeys(
        ("DAGMetric", "DeepAcyclicGraph"), "write a JudgeMetric with a Procedure or a Combination"
    ),
    **dict.fromkeys(
        (
            *("ConversationalGEval", "ConversationalDAGMetric", "ConversationCompletenessMetric"),
            *("KnowledgeRetentionMetric", "TopicAdherenceMetric", "GoalAccuracyMetric", "ToolUseMetric"),
            *("TurnFaithfulnessMetric", "TurnContextualPrecisionMetric", "TurnContextualRecallMetric"),
            "TurnContextualRelevancyMetric",
        ),
        _OF_TURNS,
    ),
    **dict.fromkeys(
        (
            *("BiasMetric", "ToxicityMetric", "SummarizationMetric", "PromptAlignmentMetric", "MisuseMetric"),
            *("PIILeakageMetric", "NonAdviceMetric", "RoleViolationMetric", "AdversarialRobustnessMetric"),
            *("TaskCompletionMetric", "StepEfficiencyMetric", "PlanAdherenceMetric", "PlanQualityMetric"),
            *("ArgumentCorrectnessMetric", "AgentLoopDetectionMetric", "ToolPermissionMetric"),
        ),
        _BY_CRITERION,
    ),
    **dict.fromkeys(
        (
            *("MLLMImage", "MLLMTestCase", "TextToImageMetric", "ImageEditingMetric", "ImageCoherenceMetric"),
            *("ImageHelpfulnessMetric", "ImageReferenceMetric", "MCPUseMetric", "MultiTurnMCPUseMetric"),
            *("MCPTaskCompletionMetric", "MCPServer", "MCPToolCall", "MCPPromptCall", "MCPResourceCall"),
        ),
        _TEXT_ONLY,
    ),
}

IN_DATA_SETS = {
    "evaluate": "Judge its test cases: evaluate(dataset, metrics)",
    "evals_iterator": "Run an observed app on its goldens: evaluate(goldens=dataset, observed_callback=app)",
    "queue": "Add them and save a version: dataset.goldens += goldens; dataset.push(alias)",
    "update_golden": "Goldens can be edited: dataset.goldens[0].expected_output = …; then dataset.push(alias)",
    "delete_golden": "Remove it from the list: dataset.goldens.remove(golden); then dataset.push(alias)",
    "create_version": "Save one: dataset.push(alias, message=…)",
    "get_versions": "On the command line: modelgauge datasets versions ALIAS",
    "delete": "Versions are files: remove the folder datasets/ALIAS of the folder of data",
    "generate_goldens_from_docs": "Write goldens, or make them with code of your own: dataset.add_golden(…)",
}
"""Methods of other libraries' data sets, and how to do the same here."""
