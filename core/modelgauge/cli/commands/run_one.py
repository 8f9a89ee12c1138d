"""`modelgauge run-sut` and `run-annotator`: one call, every step shown, as text or as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import (
    context_option,
    pop_run_options,
    prompt_options,
    run_options,
    shared_options,
    together,
)
from modelgauge.cli.program import TOO_MANY_ERRORS, GroupedCommand
from modelgauge.cli.sut_options import pop_sut_options, sut_options
from modelgauge.documents.document import TableColumn
from modelgauge.errors import InputFileError
from modelgauge.wording.phrases import counted, indented, keep_ends

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modelgauge.cli.app import App
    from modelgauge.cli.single_call import SingleCall
    from modelgauge.data.items import PromptWithContext
    from modelgauge.data.prompts import AnyPrompt


@click.command("run-sut", cls=GroupedCommand)
@together(
    click.option("--sut", required=True, metavar="UID", help="The SUT to ask."),
    prompt_options,
    click.option(
        "--check",
        is_flag=True,
        help="Ask some six questions, in place of --prompt, to find out what the SUT supports.",
    ),
    heading="What to ask",
)
@sut_options
@run_options("calls")
@shared_options
def run_sut(app: App, /, *, sut: str, check: bool, **given: Any) -> None:
    """Ask a SUT one prompt, and show the native request, the native response and the response that tests get.

    The call uses no cache, has the retries and the time-out of a run, and is not recorded. The command waits 3 s for a
    server that cannot be reached.

    With --check it shows whether the SUT supports usage, several completions, log-probabilities, structured output, a
    seed and a list of models, and what the questions took.

    \b
    Examples:
      modelgauge run-sut --sut demo_yes_no --prompt "How many words are here?"
      modelgauge run-sut --sut demo_yes_no --check
      modelgauge run-sut --sut demo_bigrams --prompt "the cat" --continuation " sat" --continuation " flew"
      modelgauge run-sut --sut openai/gpt-4o --chat chat.json --temperature 0 --num-completions 2
    """
    from modelgauge.cli.single_call import ask

    if check:
        _show_check(app, sut, given)
        return
    asked = sut_prompt(given)
    call = ask(sut, asked, **app.runner_arguments(), **pop_run_options(given))
    _show(app, call, "response", prompt=asked)


@click.command("run-annotator")
@click.option("--annotator", required=True, metavar="UID", help="The annotator to ask.")
@prompt_options
@click.option("--completion", required=True, metavar="TEXT", help="The answer of the SUT.")
@context_option
@run_options("calls")
@shared_options
def run_annotator(app: App, /, *, annotator: str, completion: str, **given: Any) -> None:
    """Let an annotator judge one completion, and show the native request and response and the annotation.

    A judge asks its SUTs for real. Nothing is cached or recorded.

    \b
    Example:
      modelgauge run-annotator --annotator demo_starts_with_y --prompt "Ready?" --completion "Yes"
    """
    from modelgauge.cli.single_call import annotate
    from modelgauge.data.responses import SUTCompletion

    asked = annotator_prompt(given)
    call = annotate(
        annotator, asked, SUTCompletion(completion), **app.runner_arguments(), **pop_run_options(given)
    )
    _show(app, call, "annotation", prompt=asked.prompt, completion=completion)


def _show_check(app: App, sut: str, given: dict[str, Any]) -> None:
    """Show what a SUT can do; the exit code is 3 where it does not answer.

    Raises:
        UsageError: there is a prompt; or the SUT's name or a secret is wrong.
    """
    from modelgauge.cli.checking import check

    if given["prompt"] is not None or given["chat"] is not None or given["continuations"]:
        raise click.UsageError(
            "--check asks questions of its own: leave out --prompt and --chat, and --continuation."
        )
    options = pop_sut_options(given)
    done = check(sut, options, **app.runner_arguments(), **pop_run_options(given))
    if app.as_json:
        app.show_json(plain(done))
    else:
        marks = {True: "yes", False: "no", None: "-"}
        app.show(f"{done.uid}\n")
        app.show_list(
            TableColumn("", [finding.ability for finding in done.findings]),
            TableColumn("", [marks[finding.is_there] for finding in done.findings]),
            TableColumn("What came", [keep_ends(finding.detail, 300) for finding in done.findings], fold=30),
        )
        spent = done.spent
        cost = f"${spent.cost_usd:,.6f}" if spent.cost_usd else "no cost reported"
        app.show(f"\nsent    {counted(spent.attempts, 'request')}, {counted(spent.tokens, 'token')}, {cost}")
    if not done.findings[0].is_there:
        app.exit_code = TOO_MANY_ERRORS


def sut_prompt(given: dict[str, Any]) -> AnyPrompt:
    """Return the prompt given by `prompt_options` and `sut_options`.

    Raises:
        UsageError: there is no prompt, or there are two.
        InputFileError: the file is not a chat.
    """
    return _make_prompt(given).with_options(pop_sut_options(given))


def _make_prompt(given: Mapping[str, Any]) -> AnyPrompt:
    from modelgauge.data.prompts import ContinuationPrompt, SUTOptions, TextPrompt
    from modelgauge.text import load_chat

    text, chat = given["prompt"], given["chat"]
    if (text is None) == (chat is None):
        raise click.UsageError("Give either --prompt TEXT or --chat FILE.")
    loaded = None if chat is None else load_chat(chat)
    if given["continuations"]:
        context, options = (text, SUTOptions()) if loaded is None else (loaded.messages, loaded.options)
        return ContinuationPrompt(context, given["continuations"], options)
    return TextPrompt(text) if loaded is None else loaded


def annotator_prompt(given: Mapping[str, Any]) -> PromptWithContext:
    """Return the prompt, with the context from `--context`.

    Raises:
        UsageError, InputFileError: see `sut_prompt`; or the context is not JSON.
    """
    from modelgauge.data.items import PromptWithContext

    try:
        context = None if given["context"] is None else json.loads(given["context"])
    except (ValueError, RecursionError) as error:
        raise InputFileError(f"--context is not JSON: {error}.", fix="Quote texts: '\"Paris\"'.") from None
    return PromptWithContext(_make_prompt(given), context=context)


def _show(app: App, call: SingleCall, answer_name: str, **given: Any) -> None:
    """Show a call; the exit code is 3 where it failed.

    Args:
        app: of this invocation.
        call: the call.
        answer_name: what the answer is called.
        given: what the command was given, for the JSON.
    """
    failure = call.failure
    parts = {
        "native_request": call.request,
        "native_response": call.response,
        answer_name: call.answer,
    }
    if app.as_json:
        error = failure and {"type": failure.error_type, "stage": failure.stage, "message": failure.message}
        steps = {name: plain(argument) for name, argument in {**given, **parts}.items()}
        app.show_json({"uid": call.uid, **steps, "error": error})
    else:
        for name, value in parts.items():
            if value is not None or failure is None:
                app.show(f"{name.replace('_', ' ').capitalize()}\n{shown(value)}\n")
    if failure is not None:
        app.note(f"Error: {call.uid} failed: {failure.reason}")
        app.note(failure.traceback if app.debug else "`modelgauge --debug ...` shows the traceback.")
        app.exit_code = TOO_MANY_ERRORS


def plain(value: Any) -> Any:
    """Convert a value or model to JSON data."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=repr)


def shown(value: Any) -> str:
    """Format a value or model for people, as indented text; for a response, only the fields that are set."""
    from modelgauge.data.responses import SUTResponse

    if isinstance(value, str):
        return indented(value)
    sparse = isinstance(value, SUTResponse)
    data = value.model_dump(mode="json", exclude_defaults=True) if sparse else plain(value)
    return indented(json.dumps(data, indent=2, ensure_ascii=False))
