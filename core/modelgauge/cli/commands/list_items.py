"""`modelgauge list-items`: what a test will send, before anything is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import (
    data_dir_option,
    data_options,
    run_options,
    shared_options,
    taken_options,
)
from modelgauge.reports.layout import counted, indented

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from modelgauge.cli.app import App
    from modelgauge.data.items import TestItem
    from modelgauge.data.prompts import AnyPrompt


@click.command("list-items")
@click.option("--test", required=True, metavar="UID", help="The test.")
@run_options("sample")
@data_dir_option
@data_options
@shared_options
def list_items(app: App, /, *, test: str, as_json: bool, **given: Any) -> None:
    """Show every prompt that a test will send, item by item, with its ids; no SUT is asked.

    With --json, one object: `test_uid`, and `items` with the prompts and contexts of each, one item a line.

    \b
    Examples:
      modelgauge list-items --test demo_01
      modelgauge list-items --test bbh_navigate --max-test-items 3 --json
    """
    from modelgauge.api import list_items as made_items

    app.secrets.require(app.plugins.tests.resolve(test).entry.injections)
    items = made_items(test, **app.runner_arguments(), **taken_options(given))
    if as_json:
        app.show_pieces(_as_json(app, test, items))
        return
    number = 0
    for number, item in enumerate(items, start=1):
        app.show(_described(number, item))
    app.show(f"{counted(number, 'item')}.")


def _as_json(app: App, test: str, items: Iterable[TestItem]) -> Iterator[str]:
    import json

    yield f'{{"test_uid": {json.dumps(test)}, "items": ['
    for place, item in enumerate(items):
        data = json.dumps(app.redact_json(item.model_dump(mode="json")), ensure_ascii=False)
        yield f"{',' if place else ''}\n{data}"
    yield "]}"


def _described(number: int, item: TestItem) -> str:
    lines = [f"{number}. {item.id}"]
    for place, prompt in enumerate(item.prompts, start=1):
        if len(item.prompts) > 1:
            lines.append(f"  prompt {place}{f' ({prompt.source_id})' if prompt.source_id else ''}")
        lines.append(indented(prompt_text(prompt.prompt), "    "))
        asked = prompt.prompt.options.model_dump(mode="json", exclude_none=True)
        if asked:
            lines.append(f"  options: {', '.join(f'{name}={value}' for name, value in asked.items())}")
    return "\n".join([*lines, ""])


def prompt_text(prompt: AnyPrompt) -> str:
    """A prompt for a person: the text, or the messages with their roles."""
    from modelgauge.data.prompts import ChatPrompt

    if isinstance(prompt, ChatPrompt):
        return "\n".join(f"[{message.role.value}] {message.text}" for message in prompt.messages)
    return prompt.text
