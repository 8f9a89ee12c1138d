"""The files that pages are made of: templates, styles and scripts. The workbench makes its pages of them, too."""

import importlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from modelgauge.wording.visible import visible

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE = "modelgauge.reports.pages"


@cache
def environment(*packages: str) -> "Environment":
    """The templates of pages. What is rendered needs `redact`, which takes secrets out of a text.

    The filter `shown` is for all texts that ModelGauge did not write: it takes out secrets, and makes invisible
    characters visible.

    Args:
        packages: others that have templates, which are found first.
    """
    jinja2 = importlib.import_module("jinja2")  # lazily: nothing but pages needs it
    made: Environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package) for package in (*packages, _PACKAGE)]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shown"] = jinja2.pass_context(lambda context, text: visible(context["redact"](str(text))))
    return made


@cache
def asset(name: str) -> str:
    """A style sheet or a script of pages.

    Args:
        name: of the file.
    """
    return files(_PACKAGE).joinpath("static", name).read_text(encoding="utf-8")
