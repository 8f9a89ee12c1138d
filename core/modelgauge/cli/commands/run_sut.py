"""`modelgauge run-sut`: one prompt to one SUT, every step shown."""

from __future__ import annotations

from typing import Any

import click

from modelgauge.cli.app import App, pass_app
from modelgauge.cli.options import call_options, shared_options, sut_options, taken_sut_options


@click.command("run-sut")
@click.option("--sut", required=True, metavar="UID", help="The SUT to ask.")
@click.option("--prompt", metavar="TEXT", help="The prompt.")
@click.option(
    "--chat",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help='A chat instead: JSON, a list of {"role": ..., "content": ...}.',
)
@sut_options
@call_options
@shared_options
@pass_app
@click.pass_context
def run_sut(
    ctx: click.Context,
    app: App,
    /,
    *,
    sut: str,
    prompt: str | None,
    chat: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Ask a SUT one prompt, and show the native request, the native response and the response that tests get.

    The call is made anew, with retries and time-out as in a run, and is not recorded.

    \b
    Examples:
      modelgauge run-sut --sut demo_yes_no --prompt "How many words are here?"
      modelgauge run-sut --sut openai/gpt-4o --chat chat.json --temperature 0 --num-completions 2
    """
    from modelgauge.cli.exchange import prompt_of, show_exchange
    from modelgauge.cli.probe import ask

    asked = prompt_of(prompt, chat).with_options(taken_sut_options(given))
    app.configure(**given)
    app.secrets.require(app.plugins().suts.resolve(sut).entry.injections)
    exchange = ask(sut, asked, **app.runner_arguments())
    ctx.exit(show_exchange(app, exchange, "response", as_json=as_json, prompt=asked))
