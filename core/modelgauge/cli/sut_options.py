"""The options of commands that say how SUTs are asked: the fields of `SUTOptions`, which needs pydantic."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import declared_options, together
from modelgauge.config.options import NUMBER, TEXT, Option, instance_of, number, whole_number
from modelgauge.errors import InputFileError
from modelgauge.files.regular import bytes_of_file

if TYPE_CHECKING:
    from modelgauge.data.prompts import SUTOptions

_FROM_1 = whole_number(ge=1)
_SEED = instance_of((int, str), "a seed or a text")._replace(
    read=lambda text: int(text) if re.fullmatch("-?[0-9]+", text) else text  # 1_000 is a text
)
OPTIONS = {
    "num_completions": Option(None, "How many completions to ask for.", _FROM_1, metavar="N"),
    "max_tokens": Option(None, "Most tokens in a completion.", _FROM_1, metavar="N"),
    "temperature": Option(
        None, "Temperature of sampling; 0 for the most likely token.", number(ge=0), metavar="NUMBER"
    ),
    "top_p": Option(None, "Nucleus sampling, 0 to 1.", number(ge=0, le=1), metavar="NUMBER"),
    "top_k_per_token": Option(
        None, "Choose among the K most likely tokens.", _FROM_1, metavar="K", flags=("--top-k",)
    ),
    "stop_sequences": Option((), "Where to stop; repeatable.", TEXT, metavar="TEXT", flags=("--stop",)),
    "presence_penalty": Option(None, "Penalty for tokens that occurred.", NUMBER, metavar="NUMBER"),
    "frequency_penalty": Option(
        None, "Penalty for tokens by how often they occurred.", NUMBER, metavar="NUMBER"
    ),
    "random": Option(
        None, "A seed, or any text; another value makes another request.", _SEED, metavar="SEED"
    ),
    "top_logprobs": Option(
        None, "Log-probabilities of the N likeliest tokens.", whole_number(ge=0), metavar="N"
    ),
}


def _schema(_: click.Context, __: click.Parameter, file: Path | None) -> dict[str, Any] | None:
    """Read a JSON Schema.

    Raises:
        InputFileError: there is no such file, or no schema in it.
    """
    if file is None:
        return None
    fix = 'Give a file with a JSON Schema, such as {"type": "object", "properties": {…}}.'
    written = bytes_of_file(file)
    try:
        schema = json.loads(written.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputFileError(f"--response-schema {file} is not JSON: {error}.", fix=fix) from None
    if not isinstance(schema, dict):
        raise InputFileError(f"--response-schema {file} holds no JSON object.", fix=fix)
    return schema


sut_options = together(
    declared_options(OPTIONS),
    click.option(
        "--response-schema",
        type=click.Path(path_type=Path),
        metavar="FILE",
        callback=_schema,
        help="A file with a JSON Schema for the completions.",
    ),
    heading="What SUTs are asked for",
)
"""The options of `SUTOptions`, each under its field's name; `pop_sut_options` makes the object."""


def pop_sut_options(given: dict[str, Any]) -> SUTOptions:
    """Take what `sut_options` added out of a command's arguments.

    Raises:
        InvalidDataError: a value is out of its range (not finite, say).
    """
    from modelgauge.data.prompts import SUTOptions

    asked = {name: given.pop(name) for name in SUTOptions.model_fields}
    return SUTOptions(**{**asked, "stop_sequences": asked["stop_sequences"] or None})
