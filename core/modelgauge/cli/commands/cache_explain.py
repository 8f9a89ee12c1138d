"""`modelgauge cache explain`: why there is, or is not, an answer to a request in the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.app import App, pass_app
from modelgauge.cli.options import data_dir_option, shared_options, sut_options, taken_sut_options
from modelgauge.reports.plain import counted, one_line

if TYPE_CHECKING:
    from modelgauge.cache import Difference, Explanation

_MOST_OF_A_VALUE = 60
_BEFORE_A_DIFFERENCE = 15


@click.command("explain")
@click.option("--sut", metavar="UID", help="The SUT that would be asked.")
@click.option("--annotator", metavar="UID", help="An annotator instead, that would judge --completion.")
@click.option("--prompt", metavar="TEXT", help="The prompt.")
@click.option(
    "--chat",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help='A chat instead: JSON, a list of {"role": ..., "content": ...}.',
)
@click.option("--completion", metavar="TEXT", help="What the annotator would judge.")
@click.option("--context", metavar="JSON", help="The prompt's context, for annotators that read it.")
@data_dir_option
@sut_options
@shared_options
@pass_app
def explain(app: App, /, *, sut: str | None, annotator: str | None, as_json: bool, **given: Any) -> None:
    """Say whether the answer to a prompt is in the cache, and if not, how the nearest entry differs from it.

    Nothing is sent. What differs may be the request (a prompt, an option), or who was asked: the class and
    its arguments, its `cache_version`, the SUTs that a judge asks.

    \b
    Examples:
      modelgauge cache explain --sut demo_yes_no --prompt "How many words are here?"
      modelgauge cache explain --sut openai/gpt-4o --chat chat.json --temperature 0
      modelgauge cache explain --annotator demo_starts_with_y --prompt "Ready?" --completion "Yes"
    """
    if (sut is None) == (annotator is None):
        raise click.UsageError("Give either --sut UID or --annotator UID.")
    app.configure(data_dir=given["data_dir"])
    explanation = _of_sut(app, sut, given) if sut is not None else _of_annotator(app, str(annotator), given)
    if as_json:
        app.show_json({"uid": sut or annotator, **explanation.model_dump(mode="json")})
    else:
        _tell(app, explanation)


def _of_sut(app: App, sut: str, given: dict[str, Any]) -> Explanation:
    from modelgauge.cli.exchange import prompt_of
    from modelgauge.cli.probe import explain_ask

    for name in ("completion", "context"):
        if given[name] is not None:
            raise click.UsageError(f"--{name} is for annotators; a SUT is asked a prompt alone.")
    asked = prompt_of(given["prompt"], given["chat"]).with_options(taken_sut_options(given))
    app.secrets.require(app.plugins().suts.resolve(sut).entry.injections)
    return explain_ask(sut, asked, **app.runner_arguments())


def _of_annotator(app: App, annotator: str, given: dict[str, Any]) -> Explanation:
    from modelgauge.cli.exchange import json_value, prompt_of
    from modelgauge.cli.probe import explain_annotate
    from modelgauge.data.items import PromptWithContext
    from modelgauge.data.responses import SUTCompletion

    if given["completion"] is None:
        raise click.UsageError("Give --completion TEXT: what the annotator would judge.")
    context = None if given["context"] is None else json_value(given["context"], "--context")
    asked = prompt_of(given["prompt"], given["chat"]).with_options(taken_sut_options(given))
    app.secrets.require(app.plugins().of_annotator(annotator).resolve(annotator).entry.injections)
    return explain_annotate(
        annotator,
        PromptWithContext(asked, context=context),
        SUTCompletion(given["completion"]),
        **app.runner_arguments(),
    )


def _tell(app: App, explanation: Explanation) -> None:
    if explanation.hit:
        app.show(f"The answer is in the cache: {explanation.key}")
        return
    app.show(f"The answer is not in the cache: {explanation.key}")
    if explanation.nearest is None:
        app.show("The cache is empty.")
        return
    parts = counted(len(explanation.differences), "part")
    app.show(f"The nearest entry differs in {parts}: {explanation.nearest}\n")
    rows = [(one.part, *_values(one)) for one in explanation.differences]
    app.show_table(
        rows, ("PART", "ASKED", "IN THE CACHE"), folds={"PART": 12, "ASKED": 12, "IN THE CACHE": 12}
    )


def _values(difference: Difference) -> tuple[str, str]:
    """Both values as JSON; of long texts the place where they begin to differ."""
    import json
    from itertools import takewhile

    shown = [json.dumps(value, ensure_ascii=False) for value in (difference.asked, difference.cached)]
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*shown, strict=False)))
    start = alike - _BEFORE_A_DIFFERENCE
    if start > _BEFORE_A_DIFFERENCE and max(map(len, shown)) > _MOST_OF_A_VALUE:
        shown = [f"...{text[start:]}" for text in shown]
    asked, cached = (one_line(text, _MOST_OF_A_VALUE) for text in shown)
    return (
        "absent" if difference.absent == "asked" else asked,
        "absent" if difference.absent == "cached" else cached,
    )
