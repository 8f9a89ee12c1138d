"""Questions to judges: instructions, the material to judge, and the shape of the reply.

The material is what users and apps wrote, so it may try to instruct the judge. It is between marks that it cannot
imitate, because they hold a digest of it; and the question says that nothing between them is addressed to the judge.
The wording is in `templates/`: a file each, in which lines that begin with `%` are notes and are not sent.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Any, TypeAlias

from pydantic import BaseModel

from modelgauge.errors import DefinitionError

Instructions: TypeAlias = str | Path
"""A text, or the file that holds it."""

TEMPLATES = Path(__file__).with_name("templates")
_QUESTION, _REPAIR = TEMPLATES / "question.md", TEMPLATES / "repair.md"  # the frames of all instructions


def question(
    instructions: Instructions,
    material: Mapping[str, str],
    shown_shape: str,
    values: Mapping[str, str] | None = None,
) -> str:
    """Build a question to a judge: instructions, material and the shape of the reply.

    Args:
        instructions: what to do with the material.
        material: the texts to judge, by the names that the instructions call them.
        shown_shape: what the reply must look like.
        values: what stands for each `$name` in the instructions: the metric's own texts, never the material.
            Without values, a `$` is a `$`.
    """
    key = hashlib.sha256(json.dumps(material, sort_keys=True).encode("ascii")).hexdigest()[:16]
    blocks = [f"<material {key} {name}>\n{text}\n</material {key} {name}>" for name, text in material.items()]
    text = wording(instructions)
    if values is not None:
        text = Template(text).substitute(values)
    return Template(wording(_QUESTION)).substitute(
        instructions=text, key=key, material="\n\n".join(blocks), shape=shown_shape
    )


def repair(asked: str, replied: str, problem: str, shown_shape: str) -> str:
    """Ask a question again, after a reply that could not be used."""
    key = hashlib.sha256(replied.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return Template(wording(_REPAIR)).substitute(
        question=asked, reply=replied, key=key, problem=problem, shape=shown_shape
    )


def format_material(case: BaseModel, names: Iterable[str]) -> dict[str, str]:
    """Return fields of a test case as texts, with a separate block for each element of a list. None is left out."""
    material: dict[str, str] = {}
    for name in names:
        value = getattr(case, name)
        if value == []:
            material[name] = "[] (the list is empty)"
        elif isinstance(value, list):
            material |= {f"{name}[{place}]": as_text(part) for place, part in enumerate(value, start=1)}
        elif value is not None:
            material[name] = as_text(value)
    return material


def as_text(value: Any) -> str:
    """Return a text unchanged; a number, a model, a list or a mapping as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_none=True)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def wording(instructions: Instructions) -> str:
    """Return the wording of instructions: a text, or a file without its notes.

    Raises:
        DefinitionError: the file cannot be read.
    """
    return instructions if isinstance(instructions, str) else _read(instructions)


@lru_cache(maxsize=256)
def _read(file: Path) -> str:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(
            f"Instructions of a metric cannot be read from {file}: {error}.",
            fix="Name a text file in UTF-8; one beside the code is Path(__file__).with_name('judge.md').",
        ) from None
    return "\n".join(line for line in lines if not line.startswith("%")).strip()
