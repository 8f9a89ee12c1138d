"""The page of runs as one file that needs no network: what is seen first of each run, and its items behind it."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

from modelgauge.comparison.result import Comparison
from modelgauge.documents.document import Block, Sentences
from modelgauge.engine.loop.stalls import rarer_collections
from modelgauge.engine.run_files.folder import REPORT
from modelgauge.files.whole import replacing
from modelgauge.reports.comparisons.report import question
from modelgauge.reports.pages.assets import asset, environment
from modelgauge.reports.pages.comparison_view import compared_items, comparison_page, runs_beside
from modelgauge.reports.pages.item_data import ItemTable
from modelgauge.reports.pages.run_view import first_screen, overview_table, run_details, sut_titles, title_of
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.wording.phrases import counted

ITEM_SCRIPTS = (
    "elements.js",
    "differences.js",
    "markdown.js",
    "metrics_view.js",
    "case_view.js",
    "item_view.js",
)
"""Scripts that show one item, in loading order."""
SCRIPTS = (
    *ITEM_SCRIPTS,
    "columns.js",
    "items.js",
    "run_items.js",
    "app_items.js",
    "compared_items.js",
    "start.js",
)
"""Scripts that show the items of a page, in loading order."""
_MOST_AT_END = 10_000  # items of a run that gets its page without being asked
_HELD = 4 << 20  # characters of items that are held in memory until the first screen is written
_CHUNK = 1 << 20
_BLOCK = '<script type="text/plain" id="{}">{}</script>\n'
_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; style-src '{style}'; script-src '{script}'"
)


def write_reports(runs: Iterable[RecordedRun], *, redact: Callable[[str], str] = str) -> Iterator[str]:
    """Write the page of each run into its folder, as commands do when runs end; runs of many items get none.

    Args:
        runs: with their folders.
        redact: takes secrets out of a text.

    Yields:
        A sentence for each page that could not be written: the run is kept all the same.
    """
    for run in runs:
        if run.folder is None or run.record.counts.finished > _MOST_AT_END:
            continue
        path = run.folder.path / REPORT
        try:
            with writing(path) as write:
                write_runs([run], write, redact=redact, just_ended=True)
        except Exception as error:  # noqa: BLE001  no run is lost for the sake of its page
            yield f"{path} was not written: {type(error).__name__}: {error}. Write it by: {run.command('report')}"


@contextmanager
def writing(path: Path) -> Iterator[Callable[[str], object]]:
    """Yield what writes a file piece by piece; the file is replaced when it is whole.

    Args:
        path: of the file.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    with replacing(path) as written, written.open("w", encoding="utf-8", newline="\n") as file:
        yield file.write


def write_runs(
    runs: Sequence[RecordedRun],
    write: Callable[[str], object],
    *,
    comparison: Comparison | None = None,
    pairs: Iterable[tuple[str, str]] = (),
    not_compared: str = "",
    redact: Callable[[str], str] = str,
    just_ended: bool = False,
    without_texts: bool = False,
) -> None:
    """Write the page of runs.

    Args:
        runs: in the order in which they are shown.
        write: takes the page piece by piece, since it may be larger than memory.
        comparison: what the page shows first; None if runs are not compared.
        pairs: blocks of data with their names: which items are compared.
        not_compared: why there is no comparison, where a reader will ask.
        redact: takes secrets out of a text.
        just_ended: whether the journals were written with the secrets of this moment, and have none of them.
        without_texts: leave out prompts, answers and contexts.

    Raises:
        RecordError: an item cannot be read.
    """
    style, script = asset("page.css"), "\n".join(map(asset, SCRIPTS))
    policy = _POLICY.format(style=_hash(style), script=_hash(script))
    with rarer_collections(), SpooledTemporaryFile(_HELD, "w+", encoding="ascii", newline="\n") as blocks:
        page = main_part(
            runs,
            lambda name, content: blocks.write(_BLOCK.format(name, content)),
            comparison=comparison,
            redact=str if just_ended else redact,
            without_texts=without_texts,
        )
        for name, content in pairs:
            blocks.write(_BLOCK.format(name, content))
        page |= {"policy": policy, "style": style, "not_compared": not_compared}
        for piece in environment().get_template("runs.html.j2").stream(page, redact=redact):
            write(piece)
        blocks.seek(0)
        while chunk := blocks.read(_CHUNK):
            write(chunk)
    write(f"<script>{script}</script>\n</body>\n</html>\n")


def main_part(
    runs: Sequence[RecordedRun],
    keep: Callable[[str, str], object],
    *,
    comparison: Comparison | None = None,
    redact: Callable[[str], str] = str,
    without_texts: bool = False,
) -> dict[str, Any]:
    """Return what `main.html.j2` shows of runs, but for `not_compared`.

    Args:
        runs: in the order in which they are shown.
        keep: takes the items of the runs, as blocks of text with their names.
        comparison: what is shown first; None if runs are not compared.
        redact: takes secrets out of a text.
        without_texts: leave out prompts, answers and contexts.

    Raises:
        RecordError: an item cannot be read.
    """
    pages, suts = [], sut_titles(runs)
    for number, run in enumerate(runs):
        table = ItemTable(redact=redact, without_texts=without_texts)
        for place, part in enumerate(table.parts(run)):
            keep(f"run-{number}-part-{place}", part)
        for name, content in table.blocks():
            keep(f"run-{number}-{name}", content)
        items = f"#run={number}&{{}}"
        first = first_screen(run, table, sut=suts[number], items=items, without_texts=without_texts)
        pages.append(
            {
                "number": number,
                "title": title_of(run.record, suts[number]),
                "first": [*first, *_left_out(run, table)],
                "details": [*run_details(run, table, items=items, without_texts=without_texts)],
                "command": f"{run.command('show')} --items",
            }
        )
    compared = {} if comparison is None else _compared(comparison, runs)
    alone = pages[0]["title"] if len(pages) == 1 else counted(len(pages), "run")
    return {
        "title": alone,
        "runs": pages,
        "overview": overview_table(runs, suts) if len(runs) > 1 else None,
        "without_texts": without_texts,
        "comparison": None,
        "compared": [],
        "others": 0,
        **compared,
    }


def _compared(comparison: Comparison, runs: Sequence[RecordedRun]) -> dict[str, Any]:
    """Return what `main.html.j2` shows of a comparison."""
    others = len(runs_beside(comparison, runs))
    more = f" And {counted(others, 'more run')}" if others else ""
    return {
        "title": f"{question(comparison)}{more}",
        "comparison": comparison_page(comparison, runs),
        "compared": [*compared_items(comparison, runs)],
        "others": others,
    }


def _left_out(run: RecordedRun, table: ItemTable) -> Iterator[Block]:
    """Say that the page has only the first items of a run."""
    counts = run.record.counts
    if left_out := counts.finished - table.number:
        note = (
            f"Results are of all items. The page has the first {counts.scored + counts.failed - left_out:,} of them, "
            "in the order of the test, and its parts on failures, latency, tokens and single items are about these "
            f"only. The run has {left_out:,} more: {run.command('show')} --items"
        )
        yield Sentences([note], look="dim")


def _hash(text: str) -> str:
    """Return the source of a content-security policy that allows this very text."""
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"sha256-{digest}"
