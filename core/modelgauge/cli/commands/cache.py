"""`modelgauge cache`: size and integrity of the cache, explanations of hits, copying and forgetting."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from modelgauge.cli.command_options import (
    cache_option,
    confirm,
    context_option,
    data_dir_option,
    prompt_options,
    shared_options,
    together,
)
from modelgauge.cli.program import FAILED, GroupedCommand, LazyGroup
from modelgauge.cli.sut_options import pop_sut_options, sut_options
from modelgauge.documents.document import TableColumn
from modelgauge.wording.figures import size
from modelgauge.wording.phrases import counted, in_common, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modelgauge.cache.explaining import Explanation, KeyDifference
    from modelgauge.cache.responses import ResponseCache
    from modelgauge.cli.app import App

_MOST_OF_A_VALUE = 60
_BEFORE_A_DIFFERENCE = 15


@click.group("cache", cls=LazyGroup)
def cache() -> None:
    """Look at the cache of responses, check it, or clear it.

    Each paid response is stored in DATA_DIR/cache, so that the same request is paid once. A request or response that
    contains a secret is not stored.
    """


@cache.command("stats")
@data_dir_option
@cache_option
@shared_options
def stats(app: App, /) -> None:
    """Show how many responses are stored, how much space they take, and how many were damaged.

    \b
    Example:
      modelgauge cache stats
    """
    from modelgauge.cache.backend import CacheStats
    from modelgauge.cache.opening import existing_cache

    with existing_cache(app.settings.cache, app.settings.data_dir) as opened:
        found = CacheStats(0, 0, 0, shared=False) if opened is None else opened.stats()
        place = _place(app, opened)
        quarantine = "" if opened is None else opened.quarantine
    text = f"{counted(found.entries, 'response')}, {size(found.bytes)}, in {place}"
    if found.quarantined:
        text += f"\n{counted(found.quarantined, 'damaged entry', 'damaged entries')} in {quarantine}"
    if found.shared:
        text += "\nAnother process is using it."
    app.show_answer({"path": place, **asdict(found)}, _no_cache_yet(place) if opened is None else text)


@cache.command("verify")
@data_dir_option
@cache_option
@shared_options
def verify(app: App, /) -> None:
    """Read every response and check it against its key and checksum; the exit code is 1 if a response is damaged.

    Damaged entries move to the quarantine, a folder in the cache, and the next run that needs them pays for them
    again. Nothing changes in a read-only folder.

    \b
    Example:
      modelgauge cache verify
    """
    from modelgauge.cache.opening import existing_cache
    from modelgauge.cache.responses import CacheCheck

    with existing_cache(app.settings.cache, app.settings.data_dir) as opened:
        found = CacheCheck(sound=0, damaged=0) if opened is None else opened.verify()
        broken = opened is not None and bool(opened.damaged)
        place = _place(app, opened)
        quarantine = "" if opened is None else opened.quarantine
    broken = broken or bool(found.damaged) or found.structure != "ok"
    if app.as_json:
        kept = quarantine if broken and not found.read_only else None
        app.show_json({"path": place, **found.model_dump(), "quarantine": kept})
    elif opened is None:
        app.show(_no_cache_yet(place))
    elif not broken:
        app.show(f"{counted(found.sound, 'response')}, all sound, in {place}")
    else:
        app.show(f"{counted(found.sound, 'sound response')}, {found.damaged:,} damaged, in {place}")
        if not found.read_only and (found.structure != "ok" or not found.damaged):
            app.show("The file itself was damaged: its sound entries were copied into a new file.")
        app.show(
            "Damaged entries stay: that folder cannot be written."
            if found.read_only
            else f"Damaged entries are in {quarantine}; the next run that needs them pays again."
        )
    app.exit_code = FAILED if broken else 0


@cache.command("clear")
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_dir_option
@cache_option
@shared_options
def clear(app: App, /, *, yes: bool) -> None:
    """Remove every response from the cache; later runs pay again. Records of runs stay.

    \b
    Example:
      modelgauge cache clear --yes
    """
    from modelgauge.cache.opening import existing_cache

    removed = 0
    with existing_cache(app.settings.cache, app.settings.data_dir) as opened:
        place = _place(app, opened)
        if opened is not None:
            if (entries := len(opened)) and not yes:
                confirm(f"Remove {counted(entries, 'response')} from {place}?")
            removed = opened.clear()
    removal = f"Removed {counted(removed, 'response')} from {place}."
    app.show_answer({"path": place, "removed": removed}, removal)


@cache.command("forget")
@click.argument("run")
@click.option(
    "--item",
    "items",
    multiple=True,
    metavar="ID",
    help="Only the answers of this item; repeat it for several.",
)
@click.option("--dry-run", is_flag=True, help="Say how many responses would be removed, and remove none.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_dir_option
@cache_option
@shared_options
def forget(app: App, /, *, run: str, items: Sequence[str], dry_run: bool, yes: bool) -> None:
    """Remove the responses of a run from its cache, those of the SUT and of judges; later runs ask again.

    RUN is the id of a run or of an invocation, `latest`, or a folder. Responses that other runs share are removed for
    them too. The records of runs stay. The cache is that of the run, unless you give another. To ask again what failed,
    use `modelgauge resume RUN --retry-failed`, which also replaces answers that no record names.

    \b
    Examples:
      modelgauge cache forget latest --dry-run
      modelgauge cache forget 20260131-120000-a1b2c3 --item france
    """
    from modelgauge.cli.forgetting import stored_answers
    from modelgauge.cli.run_cache import cache_of_runs
    from modelgauge.runs.naming import find_runs

    folders = find_runs(app.settings.data_dir, run)
    given = cache_of_runs(app, folders)
    found = [each for each in stored_answers(folders, items, app.settings, given) if each.keys]
    number, places = sum(len(each.keys) for each in found), ", ".join(each.place for each in found)
    what = f"{counted(number, 'response')}{f' from {places}' if places else ''}"
    if number and not (dry_run or yes):
        confirm(f"Remove {what}?")
    removed = 0 if dry_run else sum(each.forget() for each in found)
    text = f"Would remove {what}." if dry_run else f"Removed {what}."
    app.show_answer({"found": number, "removed": removed, "paths": [each.place for each in found]}, text)


@cache.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@shared_options
def copy(app: App, /, *, source: str, target: str) -> None:
    """Copy every response of a cache into another cache; existing entries are not written again.

    FROM and TO are folders of caches (DATA_DIR/cache), or URLs. Each entry is checked before it is written and read
    again afterwards. Repeating the command continues an interrupted copy. The exit code is 1 if an entry of FROM is
    damaged.

    \b
    Example:
      modelgauge cache copy run_data/cache postgresql://cache.example.org/modelgauge
    """
    from modelgauge.cache.opening import copy_cache

    found = copy_cache(source, target)
    text = f"Copied {counted(found.copied, 'response')}; {found.known:,} were there already."
    if found.damaged:
        text += f"\n{counted(found.damaged, 'damaged entry', 'damaged entries')} of {source} stayed behind."
    app.show_answer(found._asdict(), text)
    app.exit_code = FAILED if found.damaged else 0


def _no_cache_yet(place: str) -> str:
    return f"There is no cache yet in {place}: the first run that uses it creates it."


def _place(app: App, opened: ResponseCache | None) -> str:
    """Return the location of a cache for messages: as the user named it, without a password."""
    named = app.settings.cache
    return (
        str(app.settings.data_dir / "cache") if named is None else named if opened is None else opened.place
    )


# --- explain ---


@cache.command("explain", cls=GroupedCommand)
@together(
    click.option("--sut", metavar="UID", help="The SUT that would be asked."),
    click.option(
        "--annotator", metavar="UID", help="The annotator that would judge --completion, instead of a SUT."
    ),
    prompt_options,
    click.option("--completion", metavar="TEXT", help="The completion to judge."),
    context_option,
    heading="What would be asked",
)
@data_dir_option
@cache_option
@sut_options
@shared_options
def explain(app: App, /, *, sut: str | None, annotator: str | None, **given: Any) -> None:
    """Show whether the answer to a prompt is in the cache, and if not, how the nearest entry differs.

    Nothing is sent. The difference is in the request (a prompt, an option), or in who is asked: the class and its
    arguments, its `cache_version`, the SUTs that a judge asks.

    \b
    Examples:
      modelgauge cache explain --sut demo_yes_no --prompt "How many words are here?"
      modelgauge cache explain --sut openai/gpt-4o --chat chat.json --temperature 0
      modelgauge cache explain --annotator demo_starts_with_y --prompt "Ready?" --completion "Yes"
    """
    if (sut is None) == (annotator is None):
        raise click.UsageError("Give either --sut UID or --annotator UID.")
    explanation = _explain(app, sut, annotator, given)
    if app.as_json:
        app.show_json({"uid": sut or annotator, **explanation.model_dump(mode="json")})
    else:
        _show(app, explanation)


def _explain(app: App, sut: str | None, annotator: str | None, given: dict[str, Any]) -> Explanation:
    from modelgauge.cli.commands.run_one import annotator_prompt, sut_prompt
    from modelgauge.cli.single_call import explain_annotate, explain_ask
    from modelgauge.data.responses import SUTCompletion

    options = app.runner_arguments()
    if sut is not None:
        for name in ("completion", "context"):
            if given[name] is not None:
                raise click.UsageError(f"--{name} is for annotators; a SUT takes only a prompt.")
        return explain_ask(sut, sut_prompt(given), **options)
    if given["completion"] is None:
        raise click.UsageError("Give --completion TEXT: what the annotator would judge.")
    asked = annotator_prompt(given)
    asked = asked.replaced(prompt=asked.prompt.with_options(pop_sut_options(given)))
    return explain_annotate(str(annotator), asked, SUTCompletion(given["completion"]), **options)


def _show(app: App, explanation: Explanation) -> None:
    if explanation.hit:
        app.show(f"The answer is in the cache: {explanation.key}")
        return
    app.show(f"The answer is not in the cache: {explanation.key}")
    if explanation.nearest is None:
        app.show("The cache is empty.")
        return
    parts = counted(len(explanation.differences), "part")
    app.show(f"The nearest entry differs in {parts}: {explanation.nearest}\n")
    values = [_differing_values(difference) for difference in explanation.differences]
    app.show_list(
        TableColumn("PART", [difference.part for difference in explanation.differences], fold=12),
        TableColumn("ASKED", [asked for asked, _ in values], fold=12),
        TableColumn("IN THE CACHE", [cached for _, cached in values], fold=12),
    )


def _differing_values(difference: KeyDifference) -> tuple[str, str]:
    """Both values as JSON; of long texts the place where they begin to differ."""
    shown = [json.dumps(value, ensure_ascii=False) for value in (difference.asked, difference.cached)]
    start = in_common(*shown) - _BEFORE_A_DIFFERENCE
    if start > _BEFORE_A_DIFFERENCE and max(map(len, shown)) > _MOST_OF_A_VALUE:
        shown = [f"...{text[start:]}" for text in shown]
    asked, cached = (one_line(text, _MOST_OF_A_VALUE) for text in shown)
    return (
        "absent" if difference.absent == "asked" else asked,
        "absent" if difference.absent == "cached" else cached,
    )
