"""A Sphinx extension: adds to autodoc and sphinx-click what only ModelGauge's docstrings, metrics and help have."""

from __future__ import annotations

import inspect
import math
import re
from typing import TYPE_CHECKING, Any

import click
from docutils import nodes
from pygments.lexers.data import JsonLexer
from pygments.lexers.special import TextLexer
from sphinx import addnodes

from modelgauge.cli.main import cli
from modelgauge.cli.program import HEADING, GroupedCommand, LazyGroup
from modelgauge.errors import ModelGaugeError
from modelgauge.metrics import JudgeMetric, Metric

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_SECTION = re.compile(r"(Args|Attributes|Class attributes|Raises|Returns):")
_NEEDED: dict[str, dict[str, Any]] = {
    "ContainsMetric": {"texts": ["any"]},
    "GEval": {"criteria": "any"},
    "PatternMatchMetric": {"pattern": "any"},
}
"""Arguments that the constructors of metrics require."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    load_commands(cli)
    app.add_lexer("jsonl", JsonLexer)
    app.add_lexer("csv", TextLexer)
    app.connect("autodoc-process-docstring", add_facts, priority=90)
    app.connect("autodoc-process-docstring", mark_code, priority=100)  # before napoleon
    app.connect("autodoc-skip-member", skip_aliases)
    app.connect("sphinx-click-process-description", mark_examples)
    app.connect("sphinx-click-process-options", group_options)
    app.connect("doctree-read", register_anchors)
    app.connect("doctree-resolved", set_dashes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# --- docstrings ---------------------------------------------------------------------------------------------


def mark_code(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Turn `Example` sections and indented paragraphs into code blocks."""
    marked: list[str] = []
    is_indented_elsewhere = False  # in a section, or in a code block that has begun
    for before, line in zip(["", *lines], lines, strict=False):
        if line == "Example:":
            marked += [".. rubric:: Example", "", ".. code-block:: python", ""]
            is_indented_elsewhere = True
            continue
        if line and not line.startswith(" "):
            is_indented_elsewhere = _SECTION.fullmatch(line) is not None
        elif line.startswith("    ") and not before and not is_indented_elsewhere:
            marked += [".. code-block:: text", ""]
            is_indented_elsewhere = True
        marked.append(line)
    lines[:] = marked


def add_facts(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Append the exit code of an error, or what a metric needs and when a case passes it."""
    if inspect.isclass(value) and issubclass(value, ModelGaugeError):
        lines += ["", f"Exit code {value.exit_code}.", ""]
    elif inspect.isclass(value) and issubclass(value, Metric):
        lines += ["", _describe_metric(value), ""]


def _describe_metric(cls: type[Metric]) -> str:
    needs = cls.required_params if isinstance(cls.required_params, list | tuple) else ()
    facts = [f"Judges `{cls.test_case_type.__name__}`" + (" by asking a judge" if cls.needs_judge else "")]
    if needs:
        facts.append(f"needs {', '.join(f'`{one}`' for one in needs)}")
    facts.append(f"passes at a score of at {'least' if cls.higher_is_better else 'most'} {_threshold(cls)}")
    if cls.score_range is not None:
        facts.append(f"scores {cls.score_range[0]:g} to {cls.score_range[1]:g}")
    return f"{'; '.join(facts)}."


def _threshold(cls: type[Metric]) -> str:
    if cls.threshold is not None and math.isnan(cls.threshold):
        return "`threshold`, which must be given"
    if cls in (Metric, JudgeMetric):  # for subclasses only
        return f"`threshold`, by default {cls.threshold:g}"
    made = cls("any", **_NEEDED.get(cls.__name__, {}))  # its constructor may have a default of its own
    return f"`threshold`, by default {made.threshold:g}"


def skip_aliases(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Skip the fields of named tuples, which the class documents as arguments, and functions of Python itself."""
    is_field = (inspect.getdoc(value) or "").startswith("Alias for field number")
    return True if is_field or inspect.isbuiltin(value) else None


# --- the command line ---------------------------------------------------------------------------------------


def load_commands(group: LazyGroup) -> None:
    """Import all commands of ModelGauge itself: sphinx-click sees lazy commands only in groups without others."""
    for name in group.lazy:
        command = group.get_command(click.Context(group), name)
        if command is not None:
            group.add_command(command, name)
        if isinstance(command, LazyGroup):
            load_commands(command)


def mark_examples(app: Sphinx, ctx: click.Context, lines: list[str]) -> None:
    """Turn preformatted paragraphs of help into code blocks; their first line introduces them."""
    marked: list[str] = []
    for before, line in zip(["", *lines], lines, strict=False):
        if not line.startswith("| "):
            marked.append(line)
        elif not before.startswith("| "):
            marked += [line.removeprefix("| "), "", ".. code-block:: console", ""]
        else:
            marked.append(f"    {line.removeprefix('| ').strip()}")
    lines[:] = marked


def group_options(app: Sphinx, ctx: click.Context, lines: list[str]) -> None:
    """List options under the headings of `--help`."""
    if not isinstance(ctx.command, GroupedCommand):
        return
    entries = re.split(r"\n(?=\.\. option::)", "\n".join(lines))
    shown = [one for one in ctx.command.params if _is_shown(one)]
    groups: dict[str, list[str]] = {}
    for option, entry in zip(shown, entries, strict=True):
        groups.setdefault(vars(option).get(HEADING) or "Other options", []).append(entry)
    groups["Other options"] = groups.pop("Other options", [])
    lines[:] = [
        line
        for heading, entries in groups.items()
        if entries
        for line in [f".. rubric:: {heading}", "", *"\n".join(entries).splitlines(), ""]
    ]


def _is_shown(parameter: click.Parameter) -> bool:
    return parameter.param_type_name == "option" and not vars(parameter).get("hidden")


def register_anchors(app: Sphinx, doctree: nodes.document) -> None:
    """Let links of Markdown pages lead to commands and to names: MyST finds the headings of Markdown only."""
    slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for section in doctree.findall(nodes.section):
        for anchor in section["ids"]:
            slugs.setdefault(anchor, (section.line or 0, anchor, section[0].astext()))
    for signature in doctree.findall(addnodes.desc_signature):
        for anchor in signature["ids"]:
            slugs.setdefault(anchor.rpartition(".")[2], (signature.line or 0, anchor, anchor))


def set_dashes(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Write the dash after a parameter as a dash; smart quotes would change options in the text too."""
    for text in [*doctree.findall(lambda node: isinstance(node, nodes.Text) and node == " -- ")]:
        text.parent.replace(text, nodes.Text(" \N{EN DASH} "))
