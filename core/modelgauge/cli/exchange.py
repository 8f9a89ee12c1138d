"""What `run-sut` and `run-annotator` show: the steps of one call, as text or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.program import TOO_MANY_ERRORS
from modelgauge.errors import InputFileError

if TYPE_CHECKING:
    from modelgauge.cli.app import App
    from modelgauge.cli.probe import Exchange
    from modelgauge.data.prompts import AnyPrompt


def prompt_of(text: str | None, chat_file: str | None) -> AnyPrompt:
    """The prompt that `--prompt` or `--chat` gave.

    Raises:
        UsageError: neither, or both.
        InputFileError: the file is not a chat.
    """
    from modelgauge.data.prompts import TextPrompt
    from modelgauge.text import load_chat

    if text is not None and chat_file is None:
        return TextPrompt(text)
    if text is None and chat_file is not None:
        return load_chat(chat_file)
    raise click.UsageError("Give either --prompt TEXT or --chat FILE.")


def json_value(text: str, option: str) -> Any:
    """The value of an option that takes JSON.

    Raises:
        InputFileError: it is not JSON.
    """
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputFileError(f"{option} is not JSON: {error}.", fix="Quote texts: '\"Paris\"'.") from None


def show_exchange(app: App, exchange: Exchange, answer_name: str, *, as_json: bool, **given: Any) -> int:
    """Show what was said.

    Args:
        app: of this invocation.
        exchange: what was said.
        answer_name: what the answer is called.
        as_json: whether to print one JSON object.
        given: what the command was given, for the JSON.

    Returns:
        The exit code: 3 where the call failed.
    """
    failure = exchange.failure
    parts = {
        "native_request": exchange.request,
        "native_response": exchange.response,
        answer_name: exchange.answer,
    }
    if as_json:
        told = failure and {"type": failure.error_type, "stage": failure.stage, "message": failure.message}
        said = {name: plain(one) for name, one in {**given, **parts}.items()}
        app.show_json({"uid": exchange.uid, **said, "error": told})
    else:
        for name, value in parts.items():
            if value is not None or failure is None:
                app.show(f"{name.replace('_', ' ').capitalize()}\n{shown(value)}\n")
    if failure is None:
        return 0
    app.note(f"Error: {exchange.uid} failed: {failure.error_type}: {failure.message}")
    app.note(failure.traceback if app.debug else "`modelgauge --debug ...` shows the traceback.")
    return TOO_MANY_ERRORS


def plain(value: Any) -> Any:
    """A JSON value or model as JSON data."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=repr)


def shown(value: Any) -> str:
    """A JSON value or model for a person, indented: texts as they are; of a response what it says only."""
    import json

    from modelgauge.data.responses import SUTResponse
    from modelgauge.reports.plain import indented

    if isinstance(value, str):
        return indented(value)
    sparse = isinstance(value, SUTResponse)
    data = value.model_dump(mode="json", exclude_defaults=True) if sparse else plain(value)
    return indented(json.dumps(data, indent=2, ensure_ascii=False))
