"""The tables that a person reads after a run: what came out, how sure that is, what failed, where it is.

`render` makes a text and prints nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from modelgauge.data.estimates import Estimate
from modelgauge.data.records import Spent, TestRecord
from modelgauge.data.results import PASSED
from modelgauge.report.failures import group_failures
from modelgauge.report.figures import duration, figure
from modelgauge.report.items import ShownRun
from modelgauge.report.page import Page, Style
from modelgauge.report.plain import counted, ends_of
from modelgauge.report.thresholds import have_all_passed, label_of, passed_of

_MATRIX_RESULTS = 3
_MATRIX_NAME, _MATRIX_CELL = 26, 15  # characters that a column of the matrix needs
_DETAILED_PAIRS = 6
_RECORD = "record"
_STAGES = {"sut": "SUT", "annotator": "annotator", "measure": "measure_quality of"}
_PARTS = {"items": "make_test_items", "aggregate": "aggregate_measurements", "run": "the run"}


def render(runs: Sequence[ShownRun], style: Style, redact: Callable[[str], str] = str) -> str:
    """The report of one or more runs: for several a matrix first, then each.

    Args:
        runs: records with their folders.
        style: of the terminal.
        redact: takes secrets out of a text; each cell goes through it before lines are broken.

    Returns:
        Lines without white space at their ends; with ANSI codes only where the style has colour.
    """
    page = Page(style, redact)
    if len(runs) > 1:
        page.add(_matrix(runs, page))
    detailed = [run for run in runs if len(runs) <= _DETAILED_PAIRS or _deserves_details(run.record)]
    for run in detailed:
        page.add(page.text(f"{run.record.test_uid} on {run.record.sut_uid}", "bold"), gap=False)
        if run.record.result:
            page.add(_results(run.record, page))
        _add_facts(run, page)
    if len(detailed) < len(runs):
        record = runs[0].record
        show = runs[0].command("show").replace(record.run_id, record.invocation_id)
        page.add(page.text(f"{len(runs) - len(detailed)} more without errors: {show}"))
    return page.rendered()


def _deserves_details(record: TestRecord) -> bool:
    return bool(record.failure or record.cancelled or record.counts.failed)


# --- results of one run ---------------------------------------------------------------------------


def _results(record: TestRecord, page: Page) -> Table:
    rows = list(_rows(_shown_results(record), page.style.most_rows))
    estimates = [value for _, value in rows if isinstance(value, Estimate)]
    bounded = _shows_bounds(record, estimates)
    table = page.table()
    table.add_column("Result", overflow="fold", ratio=None, min_width=12)
    table.add_column(f"value {page.style.plus_minus} std err" if estimates else "value", no_wrap=True)
    if estimates:
        table.add_column("95 % interval", no_wrap=True)
    if bounded:
        table.add_column("worst to best", no_wrap=True)
    if estimates:
        table.add_column("n", justify="right", no_wrap=True)
    if record.thresholds:
        table.add_column("passed", no_wrap=True)
    for name, value in rows:
        cells = [_value(value, page.style)]
        if estimates:
            cells.append(_between(value.interval, _uncertainty(value)) if isinstance(value, Estimate) else "")
        if bounded:
            cells.append(_bounds(value) if isinstance(value, Estimate) else "")
        if estimates:
            cells.append(f"{value.n:,}" if isinstance(value, Estimate) else "")
        if record.thresholds:
            cells.append(passed_of(record, None if name == PASSED else name) or "")
        table.add_row(page.text(label_of(record, name, page.style)), *map(page.text, cells))
    return table


def _shows_bounds(record: TestRecord, estimates: Sequence[Estimate]) -> bool:
    """Whether items are missing that could change a result; of a run that stopped, also that nobody knows how far."""
    counts = record.counts
    if record.cancelled or record.failure is not None:
        unfinished = counts.items - counts.scored - counts.failed
        return bool(estimates) and (counts.not_begun != 0 or unfinished > 0 or counts.failed > 0)
    return any(one.bounds and (counts.failed or one.bounds[0] < one.bounds[1]) for one in estimates)


def _bounds(value: Estimate) -> str:
    return "not known" if value.bounds is None else _between(value.bounds, _width(value.bounds))


def _shown_results(record: TestRecord) -> Mapping[str, Any]:
    """The results, without those that stand beside another: how many items passed its threshold."""
    beside = {f"{name}.{PASSED}" for name in record.thresholds if name in record.result}
    return {name: value for name, value in record.result.items() if name not in beside}


def _rows(result: Mapping[str, Any], most: int | None) -> Iterator[tuple[str, Any]]:
    """Names with their values, those of a group indented below its name, which has the value None."""
    for name, value in result.items():
        if not isinstance(value, Mapping):
            yield name, value
            continue
        yield name, None
        for place, (key, inner) in enumerate(value.items()):
            if most is not None and place >= most:
                yield f"  ... {len(value) - place} more", None
                break
            yield f"  {key}", inner


def _value(value: Any, style: Style) -> str:
    if isinstance(value, Estimate):
        if value.stderr is None:
            return figure(value.value, _uncertainty(value))
        return f"{figure(value.value, value.stderr)} {style.plus_minus} {figure(value.stderr, value.stderr)}"
    return "" if value is None else figure(value)


def _between(ends: tuple[float, float] | None, uncertainty: float) -> str:
    return "" if ends is None else " to ".join(figure(end, uncertainty) for end in ends)


def _uncertainty(value: Estimate) -> float:
    """What the number of digits goes by: the standard error, else the width of the interval."""
    return value.stderr or _width(value.interval)


def _width(ends: tuple[float, float] | None) -> float:
    return 0.0 if ends is None else ends[1] - ends[0]


# --- facts of one run -----------------------------------------------------------------------------


def _add_facts(run: ShownRun, page: Page) -> None:
    rows = list(_facts(run, page))
    wide = max(len(_RECORD), *(len(label) for label, _ in rows))
    table = page.table(head=False)
    table.add_column(no_wrap=True, style="dim", min_width=wide)
    table.add_column(overflow="fold")
    for label, content in rows:
        table.add_row(label, content)
    page.add(table, gap=run.folder is None)
    if run.folder is not None:
        _add_where(run, run.folder.path, page, wide)


def _facts(run: ShownRun, page: Page) -> Iterator[tuple[str, Text]]:
    record = run.record
    if record.dataset is not None:
        yield "data set", page.text(str(record.dataset))
    yield "items", page.text(_items(run), "red" if record.counts.failed else "")
    if run.ended or record.seconds is not None:
        yield "calls", page.text(_calls(record))
    if record.spent is not None and (record.spent.tokens or record.spent.cost_usd):
        yield "used", page.text(_used(record.spent))
    if record.seconds is not None:
        yield "time", page.text(duration(record.seconds))
    for label, content in _troubles(run, page.style):
        yield label, page.text(content, "red" if label in ("errors", "stopped") else "")
    for note in [*record.notes, *_cuts(record)]:
        yield "note", page.text(note)


def _add_where(run: ShownRun, path: Path, page: Page, wide: int) -> None:
    """Where the run lies, and the commands that say more of it and go on with it."""
    record = run.record
    page.add_line(_RECORD, str(path), indent=wide)
    options = " --failures" if record.counts.failed or not have_all_passed(record) else ""
    page.add_line("next", f"{run.command('show')}{options}", indent=wide)
    is_stopped = (record.cancelled or record.failure is not None) and not run.going_on
    if is_stopped and (command := run.to_go_on()) is not None:
        page.add_line("", command, indent=wide)
    page.add_gap()


def _cuts(record: TestRecord) -> Iterator[str]:
    """Where a server bore fewer calls at once than it was sent."""
    for uid, changes in record.concurrency.items():
        cuts = [
            change.limit
            for change, then in zip_longest(changes, changes[1:])
            if change.why == "rate limited" and (then is None or then.why != "cut in vain")
        ]
        if cuts:
            yield f"concurrency cut to {min(cuts)} by the server's rate limit ({uid})"


def _items(run: ShownRun) -> str:
    counts = run.record.counts
    kinds = [
        (counts.sut_errors, "SUT error"),
        (counts.annotator_errors, "annotator error"),
        (counts.unscored, "unscored"),
    ]
    parts = [counted(number, kind, kind if kind == "unscored" else "") for number, kind in kinds if number]
    started = counts.scored + counts.failed
    failed = f"{counts.failed:,} failed" + (f" ({', '.join(parts)})" if parts else "")
    missing = f", {counts.items - started:,} not finished" if counts.items > started else ""
    return f"{counts.scored:,} scored, {failed}{missing}{_not_begun(run)}{'' if run.ended else ' so far'}"


def _not_begun(run: ShownRun) -> str:
    """How many items were never taken up, where the run was stopped."""
    number, record = run.record.counts.not_begun, run.record
    if number is None and run.ended and (record.cancelled or record.failure is not None):
        return "; the test's items were not read to their end"
    return f", {number:,} not begun" if number else ""


def _calls(record: TestRecord) -> str:
    counts = record.counts
    kinds = {"SUT": counts.sut_calls, "annotators": counts.annotator_calls, "judges": counts.judge_calls}
    parts = [
        f"{kind} {calls.paid:,} paid, {calls.cached:,} cached"
        for kind, calls in kinds.items()
        if kind == "SUT" or calls.paid or calls.cached
    ]
    return "; ".join(parts)


def _used(spent: Spent) -> str:
    """Tokens and dollars, of which a SUT may tell only one."""
    tokens = [counted(spent.tokens, "token")] if spent.tokens else []
    cost = [f"${spent.cost_usd:,.{4 if spent.cost_usd < 1 else 2}f}"] if spent.cost_usd else []
    return ", ".join(tokens + cost)


def _troubles(run: ShownRun, style: Style) -> Iterator[tuple[str, str]]:
    """Why a run ended early, and what its items failed of."""
    record = run.record
    if record.cancelled:
        yield "stopped", "interrupted; what was finished is kept"
    failure = record.failure
    if failure is not None and not run.ended:
        yield "state", failure.message
    elif failure is not None:
        told = f"{failure.error_type}: {ends_of(failure.message, 900)}"
        yield "stopped", f"{_PARTS[failure.stage]}: {told}"
    if not record.counts.failed:
        return
    groups = group_failures(run.failures())
    shown = groups if style.most_rows is None else groups[: min(style.most_rows, 5)]
    for group in shown:
        same = failure is not None and group.message.rstrip(". ") in failure.message
        message = "see above" if same else ends_of(group.message, 600)
        told = f"{_STAGES[group.stage]} {group.source_uid}: {group.error_type}: {message}"
        yield "errors", f"{group.count:,} x {told}"
    rest = sum(group.count for group in groups[len(shown) :])
    if rest:
        yield "errors", f"{rest:,} x others"


# --- many runs ------------------------------------------------------------------------------------


def _matrix(runs: Sequence[ShownRun], page: Page) -> Table:
    """A row for each test and result, a column for each SUT; where these do not fit, a row for each pair."""
    suts = list(dict.fromkeys(run.record.sut_uid for run in runs))
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for run in runs:
        for name, shown in _headlines(run.record, page.style):
            cells.setdefault((run.record.test_uid, name), {})[run.record.sut_uid] = shown
    table = page.table()
    table.add_column("Test", overflow="fold", min_width=8)
    table.add_column("Result", overflow="fold", min_width=8)
    if _MATRIX_NAME + _MATRIX_CELL * len(suts) <= page.style.width:
        for sut in suts:
            table.add_column(page.text(sut), overflow="fold", min_width=_MATRIX_CELL - 2)
        for (test, name), by_sut in cells.items():
            table.add_row(page.text(test), page.text(name), *(page.text(by_sut.get(sut, "")) for sut in suts))
        return table
    table.add_column("SUT", overflow="fold", min_width=8)
    table.add_column("value", no_wrap=True)
    for (test, name), by_sut in cells.items():
        for sut, shown in by_sut.items():
            table.add_row(*map(page.text, (test, name, sut, shown)))
    return table


def _headlines(record: TestRecord, style: Style) -> Iterator[tuple[str, str]]:
    """The first results of a run in one cell each; failed items are counted behind the value."""
    mark = f" ({record.counts.failed:,} failed)" if record.counts.failed else ""
    if record.failure is not None or record.cancelled:
        mark += " stopped"
    passed = passed_of(record)
    if passed is not None:
        yield PASSED, f"{passed}{mark}"
    shown = _shown_results(record)
    found = [one for one in _flat(shown) if passed is None or one[0] != PASSED][:_MATRIX_RESULTS]
    for name, value in found:
        yield name, f"{_value(value, style)}{mark}"
    if not found:
        yield "", mark.strip() or "no result"


def _flat(result: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    single = {name: value for name, value in result.items() if not isinstance(value, Mapping)}
    if single:
        yield from single.items()
        return
    for name, group in result.items():
        yield from ((f"{name} {key}", value) for key, value in group.items())
