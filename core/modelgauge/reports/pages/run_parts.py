"""The parts of a run's page below its first screen, each where the run has the data: one line in words, and behind it
charts and a table.
"""

import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from urllib.parse import urlencode

from modelgauge.data.records import TestRecord
from modelgauge.data.results import GIVEN
from modelgauge.data.thresholds import PASSED
from modelgauge.documents.document import (
    Bin,
    Block,
    Chart,
    Charts,
    Histogram,
    OverTime,
    Quotes,
    Reliability,
    Section,
    Sentences,
    StepChart,
    TableBlock,
    TableColumn,
    Text,
)
from modelgauge.reports.item_texts import setting_text
from modelgauge.reports.pages.classes import ANSWERED, OTHER
from modelgauge.reports.pages.item_data import ItemTable
from modelgauge.reports.pages.item_rows import SECONDS
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.stats.intervals import wilson_interval
from modelgauge.wording.figures import dollars, duration, figure
from modelgauge.wording.phrases import counted

_FEW = 5  # values: a measurement that has so few is no distribution to draw
_BINS = 10  # of scores
_MOST_CHANGES = 100  # of a limit
_LONGEST = 20_000  # characters of a manifest


def address(items: str, **fields: str) -> str:
    """Return the address of items on a page.

    Args:
        items: the address of the items of a run, with braces for the fields.
        fields: how they are filtered and sorted, by the names of the controls.
    """
    return items.format(urlencode(fields))


def parts_of(items: str, run: RecordedRun, table: ItemTable, *, without_texts: bool) -> list[Section]:
    """Return the parts of a run's page that have something to say.

    Args:
        items: the address of its items, see `address`.
        run: its record and where it is.
        table: its items.
        without_texts: leave out what may quote prompts.
    """
    made = [
        _confusion(items, table),
        *_calibrations(table),
        _distributions(table),
        _latency(items, table),
        _usage(items, table),
        _limits(run.record),
        _how_it_was_run(run, without_texts=without_texts),
    ]
    return [part for part in made if part is not None]


# --- what came out ---------------------------------------------------------------------------------------


def _confusion(items: str, table: ItemTable) -> Section | None:
    """Count which classes were taken for which."""
    if table.answered is None:
        return None
    right, answered = table.answered
    names = [*right.values], [*answered.values]
    pairs = zip(right.of, answered.of, strict=False)
    counts = Counter((names[0][at], names[1][given]) for at, given in pairs if at >= 0 <= given)
    classes = sorted(names[0])
    others = [*classes, *([OTHER] if OTHER in answered.values else [])]
    sizes = {label: sum(counts[label, other] for other in others) for label in classes}

    def cell(label: str, other: str) -> Text:
        count = counts[label, other]
        fields = {f"is-{table.label_of_right_class}": label, f"is-{ANSWERED}": other}
        look = f"heat-{math.ceil(9 * count / (sizes[label] or 1))}{' right' if label == other else ''}"
        return Text(f"{count:,}", address(items, **fields) if count else "", look)

    columns = [
        TableColumn(other, [cell(label, other) for label in classes], kind="number") for other in others
    ]
    same = sum(counts[label, label] for label in classes)
    return _part(
        "Confusion",
        f"the right one of {len(classes)} classes at the end of {same:,} of {counted(counts.total(), 'answer')}",
        columns=[TableColumn("right \\ answered", classes), *columns],
        note="Read off the last line of each answer; the test may read answers in another way.",
    )


def _calibrations(table: ItemTable) -> Iterator[Section]:
    """Hold scores from 0 to 1 against what is right or wrong."""
    labels = [name for name in table.binary if not name.endswith(PASSED)]
    for name, scores in table.measured.items():
        known = [score for score in scores if not math.isnan(score)]
        if (
            name in table.binary
            or not known
            or not 0 <= min(known) <= max(known) <= 1
            or len(set(known)) <= _FEW
        ):
            continue
        for label in labels:
            pairs = zip(scores, table.measured[label], strict=True)
            bins = bins_of([(score, right) for score, right in pairs if not math.isnan(score + right)])
            if len(bins) > 1:
                number = sum(count for *_, count in bins)
                off = sum(abs(mean - share) * count for mean, share, _, count in bins) / number
                yield _part(
                    f"Calibration of {name}",
                    f"off by {figure(off, 0.01)} on average, against {label} of {counted(number, 'item')}",
                    charts=[(f"{name} against {label}", Reliability(bins, label))],
                    note="The expected calibration error over ten equally wide parts of the scores; "
                    "bars are 95 % intervals (Wilson), the diagonal is where scores are right.",
                )


def _distributions(table: ItemTable) -> Section | None:
    """Show the distribution of measurements that have more than a few values."""
    charts: list[tuple[str, Chart]] = []
    words = []
    for name, values in table.measured.items():
        known = sorted(value for value in values if not math.isnan(value))
        if len(set(known)) > _FEW:
            charts.append((name, Histogram(known)))
            words.append(
                f"{name} {figure(known[0])} to {figure(known[-1])}, median {figure(_percentile(known, 50))}"
            )
    return _part("Distribution", "; ".join(words), charts=charts) if charts else None


# --- what it took ----------------------------------------------------------------------------------------


def _latency(items: str, table: ItemTable) -> Section | None:
    """Show how long answers took."""
    known, words = _known_values(table, SECONDS), latency_in_words(table)
    if words is None:
        return None
    charts: list[tuple[str, Chart]] = [("Seconds of the items", Histogram(known))]
    times = table.started
    first = min((when for when, _ in times), default=0.0)
    if len(times) > _FEW:
        points = [(when - first, seconds) for when, seconds in times]
        charts.append(("Over time", OverTime(points, SECONDS)))
    shares = {"median": 50, "90th percentile": 90, "95th": 95, "99th": 99}
    longest = Text(duration(known[-1]), address(items, sort=f"{SECONDS}>"))
    return _part(
        "Latency",
        f"{words}, of {counted(len(known), 'item')}",
        charts=charts,
        columns=[
            TableColumn("Latency", ["seconds of an answer"]),
            *(
                TableColumn(head, [duration(_percentile(known, share))], kind="number")
                for head, share in shares.items()
            ),
            TableColumn("longest", [longest], kind="number"),
        ],
    )


def latency_in_words(table: ItemTable) -> str | None:
    """Say how long the answers took that were not in the cache; None if that is not known."""
    known = _known_values(table, SECONDS)
    if not known:
        return None
    return f"median {duration(_percentile(known, 50))}, 95th percentile {duration(_percentile(known, 95))}"


def _usage(items: str, table: ItemTable) -> Section | None:
    """Show tokens and dollars."""
    known = {name: _known_values(table, name) for name in table.used if name != SECONDS}
    known = {name: values for name, values in known.items() if values}
    if not known:
        return None
    means: dict[str, Callable[[list[float]], float]] = {
        "all": sum,
        "mean": lambda values: sum(values) / len(values),
        "median": partial(_percentile, share=50),
        "95th percentile": partial(_percentile, share=95),
    }
    sums = [_amount(name, sum(values)) for name, values in known.items()]
    words = [
        shown if name == "dollars" else f"{shown} {name}" for name, shown in zip(known, sums, strict=True)
    ]
    most = [
        Text(_amount(name, values[-1]), address(items, sort=f"{name}>")) for name, values in known.items()
    ]
    columns = [
        TableColumn("an item took", [*known]),
        *(
            TableColumn(head, [_amount(name, mean(values)) for name, values in known.items()], kind="number")
            for head, mean in means.items()
        ),
        TableColumn("most", most, kind="number"),
        TableColumn("items", [f"{len(values):,}" for values in known.values()], kind="number"),
    ]
    note = "What the answers of the SUT took, those from the cache too; judges are not among them."
    return _part("Tokens and cost", ", ".join(words), columns=columns, note=note)


def _amount(name: str, value: float) -> str:
    return dollars(value) if name == "dollars" else f"{value:,.0f}"


def _limits(record: TestRecord) -> Section | None:
    """Show what the engine made of the servers' limits."""
    changed = {uid: changes for uid, changes in record.concurrency.items() if changes}
    if not changed:
        return None
    words = []
    charts: list[tuple[str, Chart]] = []
    for uid, changes in changed.items():
        limits = [change.limit for change in changes]
        cuts = sum(change.why in ("rate limited", "timed out") for change in changes)
        cut = f", cut {counted(cuts, 'time')}" if cuts else ""
        least, most = min(limits), max(limits)
        between = f"{least:,} to {most:,}" if least < most else f"{most:,}"
        words.append(f"{uid} {between} calls at once{cut}")
        drawn = [(change.seconds, change.limit) for change in changes]
        charts.append((uid, StepChart(drawn, record.seconds or 0.0, "calls at once")))
    rows = [(uid, change) for uid, changes in changed.items() for change in changes[:_MOST_CHANGES]]
    return _part(
        "Limits",
        "; ".join(words),
        charts=charts,
        columns=[
            TableColumn("SUT or annotator", [uid for uid, _ in rows]),
            TableColumn("after", [duration(change.seconds) for _, change in rows], kind="number"),
            TableColumn("calls at once", [f"{change.limit:,}" for _, change in rows], kind="number"),
            TableColumn("why", [change.why for _, change in rows]),
        ],
    )


# --- how it was made -------------------------------------------------------------------------------------


def _how_it_was_run(run: RecordedRun, *, without_texts: bool) -> Section:
    """Show what the run was set to, and how to do it again."""
    record = run.record
    manifest = {} if run.folder is None else run.folder.read_manifest()
    command = None if run.folder is None else run.folder.command_line()
    plugins = {f"version of {name}": version for name, version in record.plugins.items()}
    data = {f"data {name}": version for name, version in record.dependency_versions.items()}
    options = {"repeats": record.repeats if record.repeats > 1 else None, "clusters by": record.cluster}
    set_to = {} if without_texts else record.hyperparameters  # a prompt's template may be among them
    facts = {
        "test": record.test_uid,
        "SUT": None if record.sut_uid == GIVEN else record.sut_uid,
        **set_to,
        **record.sut_options,
        **options,
        **data,
        **plugins,
    }
    facts |= {name: manifest[name] for name in ("python", "platform", "git_commit") if name in manifest}
    known = {name: setting_text(value) for name, value in facts.items() if value is not None}
    texts = [("Command", shlex.join(command))] if command else []
    texts.append(("In a terminal", run.command("show")))
    blocks: list[Block] = [Quotes(texts)]
    if manifest and not without_texts:
        text = json.dumps(manifest, indent=2, ensure_ascii=False)
        more = counted(len(text) - _LONGEST, "more character")
        cut = f"\n… {more} in run.json" if len(text) > _LONGEST else ""
        whole = Quotes([("", f"{text[:_LONGEST]}{cut}")])
        blocks.append(Section("", "The whole manifest, run.json", [whole]))
    summary = ", ".join(f"{name} {setting_text(value)}" for name, value in [*set_to.items()][:4])
    return _part(
        "How it was run",
        summary or f"test {record.test_uid}: settings, versions and commands",
        columns=[TableColumn("", [*known]), TableColumn("", [*known.values()])],
        more=blocks,
    )


def _part(
    title: str,
    summary: str,
    *,
    charts: Sequence[tuple[str, Chart]] = (),
    columns: Sequence[TableColumn] = (),
    more: Sequence[Block] = (),
    note: str = "",
) -> Section:
    """Return a part of the page with what it has: charts, a table, further blocks, a note."""
    blocks: list[Block] = [Charts(charts)] if charts else []
    blocks += [TableBlock(columns, label=title)] if columns else []
    blocks += [*more, *([Sentences([note], look="dim")] if note else [])]
    return Section(title, summary, blocks)


def _known_values(table: ItemTable, name: str) -> list[float]:
    """Return the known values of what items took, sorted."""
    return sorted(value for value in table.used.get(name, ()) if not math.isnan(value))


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that so many percent of the values do not exceed."""
    return ordered[max(0, math.ceil(share / 100 * len(ordered)) - 1)]


def bins_of(pairs: Iterable[tuple[float, float]]) -> list[Bin]:
    """Return for each part of the scores: their mean, the share that is right with its interval, their number.

    Args:
        pairs: of a score from 0 to 1, and of 1 for right or 0 for wrong.
    """
    found: dict[int, list[tuple[float, float]]] = {}
    for score, right in pairs:
        found.setdefault(min(int(score * _BINS), _BINS - 1), []).append((score, right))
    made = []
    for _, several in sorted(found.items()):
        number, right = len(several), sum(value for _, value in several)
        interval = wilson_interval(right, number)
        made.append((sum(score for score, _ in several) / number, right / number, interval, number))
    return made
