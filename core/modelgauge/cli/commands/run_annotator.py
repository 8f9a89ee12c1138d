"""`modelgauge run-annotator`: one completion to one annotator, every step shown."""

from __future__ import annotations

from typing import Any

import click

from modelgauge.cli.app import App, pass_app
from modelgauge.cli.options import call_options, shared_options


@click.command("run-annotator")
@click.option("--annotator", required=True, metavar="UID", help="The annotator to ask.")
@click.option("--prompt", metavar="TEXT", help="What the SUT was asked.")
@click.option(
    "--chat",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The same, as a chat in JSON.",
)
@click.option("--completion", required=True, metavar="TEXT", help="What the SUT answered.")
@click.option("--context", metavar="JSON", help="The prompt's context, for annotators that read it.")
@call_options
@shared_options
@pass_app
@click.pass_context
def run_annotator(
    ctx: click.Context,
    app: App,
    /,
    *,
    annotator: str,
    prompt: str | None,
    chat: str | None,
    completion: str,
    context: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Have an annotator judge one completion; show the native request and response, and the annotation.

    SUTs that the annotator asks (a judge's) are asked. Nothing is cached or recorded.

    \b
    Example:
      modelgauge run-annotator --annotator demo_starts_with_y --prompt "Ready?" --completion "Yes"
    """
    from modelgauge.cli.exchange import json_value, prompt_of, show_exchange
    from modelgauge.cli.probe import annotate
    from modelgauge.data.items import PromptWithContext
    from modelgauge.data.responses import SUTCompletion

    asked = PromptWithContext(
        prompt_of(prompt, chat), context=None if context is None else json_value(context, "--context")
    )
    app.configure(**given)
    app.secrets.require(app.plugins().of_annotator(annotator).resolve(annotator).entry.injections)
    exchange = annotate(annotator, asked, SUTCompletion(completion), **app.runner_arguments())
    ctx.exit(
        show_exchange(
            app, exchange, "annotation", as_json=as_json, prompt=asked.prompt, completion=completion
        )
    )
