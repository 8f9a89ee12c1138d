"""The files that pages are made of: templates, styles and scripts. The workbench makes its pages of them, too."""

from functools import cache
from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, pass_context
from markupsafe import escape

from modelgauge.documents.html import as_html, breakable
from modelgauge.wording.visible import visible

_PACKAGE = "modelgauge.reports.pages"


@cache
def environment(*packages: str) -> Environment:
    """Return the environment with the templates of pages. Rendering needs `redact`, which removes secrets from a
    text.

    The filter `shown` is for all texts that ModelGauge did not write: it takes out secrets, and makes invisible
    characters visible. The filter `html` renders a document, and does the same to its texts. `breakable` lets a
    long name be broken into lines.

    Args:
        packages: others that have templates, which are found first.
    """
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, _PACKAGE)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["html"] = pass_context(lambda context, document: as_html(document, context["redact"]))
    made.filters["breakable"] = lambda name: breakable(escape(name))
    made.filters["shown"] = pass_context(lambda context, text: visible(context["redact"](str(text))))
    return made


@cache
def asset(name: str) -> str:
    """Return a style sheet or script for pages.

    Args:
        name: of the file.
    """
    return files(_PACKAGE).joinpath("static", name).read_text(encoding="utf-8")
