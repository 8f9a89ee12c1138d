"""The parts of a run's page below its first screen, each where the run has the data: one line in words, and behind it
charts and a table. Data for the templates.
"""

import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup

from modelgauge.data.records import TestRecord
from modelgauge.data.thresholds import PASSED
from modelgauge.reports.item_texts import as_text
from modelgauge.reports.pages.charts import Axis, axis_ruler, histogram
from modelgauge.reports.pages.classes import ANSWERED, OTHER
from modelgauge.reports.pages.item_data import SECONDS, ItemTable
from modelgauge.reports.pages.plots import bins_of, over_time, reliability, steps
from modelgauge.runs.recorded_run import RecordedRun
from modelgauge.wording.figures import dollars, duration, figure
from modelgauge.wording.phrases import counted

_FEW = 5  # values: a measurement that has so few is no distribution to draw
_LONGEST = 20_000  # characters of a manifest


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Args:
        text: the content of the cell.
        address: of the items behind it; empty if there are none.
        look: its classes.
    """

    text: str
    address: str = ""
    look: str = "number"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a page.

    Args:
        title: what it is about.
        summary: what it says, in words.
        charts: each with its caption.
        head: of its table.
        rows: of its table; the first cell of each is its head.
        texts: with their titles: commands, as they are.
        folded: a long text, with its title.
        note: what a reader should know.
    """

    title: str
    summary: str
    charts: Sequence[tuple[str, Markup]] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    texts: Sequence[tuple[str, str]] = ()
    folded: tuple[str, str] | None = None
    note: str = ""


def address(items: str, **fields: str) -> str:
    """The address of items on a page.

    Args:
        items: the address of the items of a run, with braces for the fields.
        fields: how they are filtered and sorted, by the names of the controls.
    """
    return items.format(urlencode(fields))


def parts_of(items: str, run: RecordedRun, table: ItemTable, *, without_texts: bool) -> list[Part]:
    """The parts of a run's page that have something to say.

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


def _confusion(items: str, table: ItemTable) -> Part | None:
    """Which classes were taken for which."""
    if table.answered is None:
        return None
    right, answered = table.answered
    names = [*right.values], [*answered.values]
    pairs = zip(right.of, answered.of, strict=False)
    counts = Counter((names[0][at], names[1][given]) for at, given in pairs if at >= 0 <= given)
    classes = sorted(names[0])
    columns = [*classes, *([OTHER] if OTHER in answered.values else [])]
    rows = []
    for label in classes:
        size = sum(counts[label, other] for other in columns)
        cells = []
        for other in columns:
            count = counts[label, other]
            fields = {f"is-{table.label_of_right_class}": label, f"is-{ANSWERED}": other}
            look = f"number heat-{math.ceil(9 * count / (size or 1))}{' right' if label == other else ''}"
            cells.append(Cell(f"{count:,}", address(items, **fields) if count else "", look))
        rows.append([Cell(label, look=""), *cells])
    same = sum(counts[label, label] for label in classes)
    return Part(
        "Confusion",
        f"the right one of {len(classes)} classes at the end of {same:,} of {counted(counts.total(), 'answer')}",
        head=["right \\ answered", *columns],
        rows=rows,
        note="Read off the last line of each answer; the test may read answers in another way.",
    )


def _calibrations(table: ItemTable) -> Iterator[Part]:
    """How scores from 0 to 1 go with what is right or wrong."""
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
                yield Part(
                    f"Calibration of {name}",
                    f"off by {figure(off, 0.01)} on average, against {label} of {counted(number, 'item')}",
                    charts=[(f"{name} against {label}", reliability(bins, label))],
                    note="The expected calibration error over ten equally wide parts of the scores; "
                    "bars are 95 % intervals (Wilson), the diagonal is where scores are right.",
                )


def _distributions(table: ItemTable) -> Part | None:
    """How measurements are distributed that have more than a few values."""
    charts, words = [], []
    for name, values in table.measured.items():
        known = sorted(value for value in values if not math.isnan(value))
        if len(set(known)) > _FEW:
            charts.append((name, _histogram(known)))
            words.append(
                f"{name} {figure(known[0])} to {figure(known[-1])}, median {figure(_percentile(known, 50))}"
            )
    return Part("Distribution", "; ".join(words), charts=charts) if charts else None


# --- what it took ----------------------------------------------------------------------------------------


def _latency(items: str, table: ItemTable) -> Part | None:
    """How long answers took."""
    known, words = _known_values(table, SECONDS), latency_in_words(table)
    if words is None:
        return None
    charts = [("Seconds of the items", _histogram(known))]
    times = table.started
    first = min((when for when, _ in times), default=0.0)
    if len(times) > _FEW:
        charts.append(("Over time", over_time([(when - first, seconds) for when, seconds in times], SECONDS)))
    shares = [Cell(duration(_percentile(known, share))) for share in (50, 90, 95, 99)]
    longest = Cell(duration(known[-1]), address(items, sort=f"{SECONDS}>"))
    return Part(
        "Latency",
        f"{words}, of {counted(len(known), 'item')}",
        charts=charts,
        head=["Latency", "median", "90th percentile", "95th", "99th", "longest"],
        rows=[[Cell("seconds of an answer", look=""), *shares, longest]],
    )


def latency_in_words(table: ItemTable) -> str | None:
    """How long the answers took that were not in the cache; None if that is not known."""
    known = _known_values(table, SECONDS)
    if not known:
        return None
    return f"median {duration(_percentile(known, 50))}, 95th percentile {duration(_percentile(known, 95))}"


def _usage(items: str, table: ItemTable) -> Part | None:
    """Tokens and dollars."""
    rows, words = [], []
    for name in table.used:
        known = _known_values(table, name)
        if name == SECONDS or not known:
            continue
        shown: Callable[[float], str] = dollars if name == "dollars" else "{:,.0f}".format
        values = [sum(known), sum(known) / len(known), _percentile(known, 50), _percentile(known, 95)]
        most = Cell(shown(known[-1]), address(items, sort=f"{name}>"))
        rows.append(
            [Cell(name, look=""), *(Cell(shown(value)) for value in values), most, Cell(f"{len(known):,}")]
        )
        words.append(shown(values[0]) if name == "dollars" else f"{shown(values[0])} {name}")
    if not rows:
        return None
    head = ["an item took", "all", "mean", "median", "95th percentile", "most", "items"]
    note = "What the answers of the SUT took, those from the cache too; judges are not among them."
    return Part("Tokens and cost", ", ".join(words), head=head, rows=rows, note=note)


def _limits(record: TestRecord) -> Part | None:
    """What the engine made of the servers' limits."""
    changed = {uid: changes for uid, changes in record.concurrency.items() if changes}
    if not changed:
        return None
    words, charts, rows = [], [], []
    for uid, changes in changed.items():
        limits = [change.limit for change in changes]
        cuts = sum(change.why in ("rate limited", "timed out") for change in changes)
        cut = f", cut {counted(cuts, 'time')}" if cuts else ""
        words.append(f"{uid} {min(limits):,} to {max(limits):,} calls at once{cut}")
        drawn = [(change.seconds, change.limit) for change in changes]
        charts.append((uid, steps(drawn, record.seconds or 0.0, "calls at once")))
        rows += [
            [
                Cell(uid, look=""),
                Cell(duration(change.seconds)),
                Cell(f"{change.limit:,}"),
                Cell(change.why, look=""),
            ]
            for change in changes[:100]
        ]
    return Part(
        "Limits",
        "; ".join(words),
        charts=charts,
        head=["SUT or annotator", "after", "calls at once", "why"],
        rows=rows,
    )


# --- how it was made -------------------------------------------------------------------------------------


def _how_it_was_run(run: RecordedRun, *, without_texts: bool) -> Part:
    """What it was set to, and how to do it again."""
    record = run.record
    manifest = {} if run.folder is None else run.folder.read_manifest()
    command = None if run.folder is None else run.folder.command_line()
    plugins = {f"version of {name}": version for name, version in record.plugins.items()}
    data = {f"data {name}": version for name, version in record.dependency_versions.items()}
    options = {"repeats": record.repeats if record.repeats > 1 else None, "clusters by": record.cluster}
    set_to = {} if without_texts else record.hyperparameters  # a prompt's template may be among them
    facts = {
        "test": record.test_uid,
        "SUT": record.sut_uid,
        **set_to,
        **record.sut_options,
        **options,
        **data,
        **plugins,
    }
    facts |= {name: manifest[name] for name in ("python", "platform", "git_commit") if name in manifest}
    rows = [
        [Cell(name, look=""), Cell(as_text(value), look="")]
        for name, value in facts.items()
        if value is not None
    ]
    texts = [("Command", shlex.join(command))] if command else []
    texts.append(("In a terminal", run.command("show")))
    folded = None
    if manifest and not without_texts:
        text = json.dumps(manifest, indent=2, ensure_ascii=False)
        cut = (
            f"\n… {counted(len(text) - _LONGEST, 'more character')} in run.json"
            if len(text) > _LONGEST
            else ""
        )
        folded = ("The whole manifest, run.json", f"{text[:_LONGEST]}{cut}")
    summary = ", ".join(f"{name} {as_text(value)}" for name, value in [*set_to.items()][:4])
    return Part(
        "How it was run",
        summary or f"test {record.test_uid}: settings, versions and commands",
        rows=rows,
        texts=texts,
        folded=folded,
    )


def _known_values(table: ItemTable, name: str) -> list[float]:
    """The known values of what items took, sorted."""
    return sorted(value for value in table.used.get(name, ()) if not math.isnan(value))


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that so many percent of the values do not exceed."""
    return ordered[max(0, math.ceil(share / 100 * len(ordered)) - 1)]


def _histogram(values: Sequence[float]) -> Markup:
    return histogram(values) + axis_ruler(Axis.over(values))
