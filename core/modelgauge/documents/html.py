"""Documents as parts of a page. Colours and distances are in `page.css`, by the classes of the elements."""

import re
from collections.abc import Callable, Iterable

from markupsafe import Markup, escape

from modelgauge.documents.axis import Axis
from modelgauge.documents.charts import axis_ruler, dot_sample, histogram, interval_bar, portions_bar
from modelgauge.documents.document import (
    Block,
    Cell,
    Chart,
    Charts,
    Conclusion,
    FactList,
    Heading,
    Histogram,
    Inline,
    Interval,
    Look,
    OverTime,
    Portions,
    Quotes,
    Reliability,
    RoomyTable,
    RowChoice,
    Section,
    Sentences,
    StepChart,
    TableBlock,
    TableColumn,
    Text,
    Troubles,
    plain_text,
)
from modelgauge.documents.plots import over_time, reliability, steps
from modelgauge.wording.visible import visible

_BREAKS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[_.])(?=.)")
_LOOKS: dict[Look, str] = {"dim": "note", "alarm": "missed"}
"""The classes of sentences."""


def as_html(document: Iterable[Block], redact: Callable[[str], str] = str) -> Markup:
    """Return a document as elements of a page.

    Args:
        document: its blocks.
        redact: takes secrets out of a text.
    """
    return _Html(redact).blocks(document)


def breakable(name: Markup) -> Markup:
    """Return an escaped name that may be broken into lines: behind `_` and `.`, and before a capital letter."""
    return Markup(_BREAKS.sub("<wbr>", name))  # noqa: S704  the name is escaped


class _Html:
    """Renders blocks. Every text goes through `shown`."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact

    def blocks(self, document: Iterable[Block]) -> Markup:
        return Markup("").join(self._block(block) for block in document)

    def plain(self, text: str) -> str:
        """Return a text without secrets, with invisible characters made visible; `format` of `Markup` escapes it."""
        return visible(self._redact(text))

    def shown(self, text: str) -> Markup:
        """Return a text for the page: redacted and escaped."""
        return escape(self.plain(text))

    def _block(self, block: Block) -> Markup:  # noqa: PLR0911  a line for each kind of block
        match block:
            case Heading():
                return self._heading(block)
            case Conclusion():
                return Markup('<p class="{}">{}</p>\n').format(
                    f"verdict {block.kind}".strip(), self.shown(block.text)
                )
            case Sentences():
                return self._sentences(block)
            case FactList():
                return self._facts(block)
            case Troubles():
                return self._troubles(block)
            case Quotes():
                return self._quotes(block)
            case TableBlock():
                return _HtmlTable(block, self).html()
            case RoomyTable():
                return self.blocks((block.table, *block.then))
            case Charts():
                return self._charts(block)
            case Section():
                return self._section(block)

    # --- texts ----------------------------------------------------------------------------------

    def inline(self, text: Inline, breaks_names: bool = False) -> Markup:
        """Return a text with its links; on request, names may be broken into lines."""
        parts = text if isinstance(text, tuple) else (text,)
        return Markup("").join(
            self._part(Text(part) if isinstance(part, str) else part, breaks_names) for part in parts
        )

    def _part(self, part: Text | RowChoice, breaks_names: bool) -> Markup:
        if isinstance(part, RowChoice):
            box = Markup('<input type="checkbox" name="{}" value="{}" aria-label="{}"> ')
            return box.format(part.name, part.value, self.plain(part.label))
        words = self.shown(part.text)
        if breaks_names:
            words = breakable(words)
        if part.look == "small":
            words = Markup("<small>{}</small>").format(words)
        elif part.look and not part.address:
            words = Markup('<span class="{}">{}</span>').format(part.look, words)
        if not part.address:
            return words
        look = Markup(' class="{}"').format(part.look) if part.look else ""
        return Markup('<a href="{}"{}>{}</a>').format(part.address, look, words)

    def _heading(self, block: Heading) -> Markup:
        text = self.shown(block.text)
        if block.level == 2:
            return Markup("<h2>{}</h2>\n").format(text)
        beside = Markup('<p class="when">{}</p>\n').format(self.shown(block.beside)) if block.beside else ""
        return Markup("<header>\n<h1>{}</h1>\n{}</header>\n").format(text, beside)

    def _sentences(self, block: Sentences) -> Markup:
        look = _LOOKS.get(block.look)
        start = Markup('<p class="{}">').format(look) if look else Markup("<p>")
        title = Markup("<h2>{}</h2>\n").format(self.shown(block.title)) if block.title else Markup()
        return title + Markup("").join(start + self.inline(text) + Markup("</p>\n") for text in block.texts)

    def _facts(self, block: FactList) -> Markup:
        """Render facts; those without a label are further lines of the fact before them."""
        lines: list[tuple[Markup, list[Markup]]] = []
        for fact in block.facts:
            if fact.label or not lines:
                lines.append((self.inline(fact.label), []))
            lines[-1][1].append(self.shown(fact.text))
        line = Markup("<div><dt>{}</dt><dd>{}</dd></div>\n")
        shown = Markup("").join(line.format(label, Markup("<br>").join(texts)) for label, texts in lines)
        return Markup('<dl class="facts">\n{}</dl>\n').format(shown)

    def _troubles(self, block: Troubles) -> Markup:
        lines = Markup("").join(
            Markup("<li><b>{}</b> {}</li>\n").format(self.inline(fact.label), self.shown(fact.text))
            for fact in block.facts
        )
        start = Markup('<ul class="troubles" aria-label="{}">\n').format(block.title)
        return start + lines + Markup("</ul>\n")

    def _quotes(self, block: Quotes) -> Markup:
        quotes = Markup("").join(self._quote(self.shown(label), text) for label, text in block.texts)
        return quotes + self._sentences(Sentences(block.remarks, "dim"))

    def _quote(self, label: Markup, text: str) -> Markup:
        if not label:
            return Markup('<pre class="text" tabindex="0">{}</pre>\n').format(self.shown(text))
        quote = Markup('<h2>{}</h2>\n<pre class="text" tabindex="0" role="region" aria-label="{}">{}</pre>\n')
        return quote.format(label, label, self.shown(text))

    # --- charts and parts -----------------------------------------------------------------------

    def _charts(self, block: Charts) -> Markup:
        figure = Markup("<figure><figcaption>{}</figcaption>{}</figure>\n")
        figures = Markup("").join(
            figure.format(self.shown(caption), self._drawing(chart)) for caption, chart in block.charts
        )
        return Markup('<div class="charts">\n{}</div>\n').format(figures)

    def _drawing(self, chart: Chart) -> Markup:
        match chart:
            case Histogram():
                return histogram(chart.values) + axis_ruler(Axis.over(chart.values))
            case OverTime():
                return over_time(chart.points, self.plain(chart.what))
            case StepChart():
                return steps(chart.changes, chart.end, self.plain(chart.what))
            case Reliability():
                return reliability(chart.bins, self.plain(chart.what))
            case Portions():
                return portions_bar(chart.parts)

    def _section(self, block: Section) -> Markup:
        summary, blocks = self.shown(block.summary), self.blocks(block.blocks)
        if not block.title:
            return Markup("<details><summary>{}</summary>\n{}</details>\n").format(summary, blocks)
        part = Markup('<details class="more">\n<summary><b>{}</b> {}</summary>\n{}</details>\n')
        return part.format(self.shown(block.title), summary, blocks)


class _HtmlTable:
    """Renders a table.

    Args:
        table: the table.
        page: what renders its texts.
    """

    def __init__(self, table: TableBlock, page: _Html) -> None:
        self._table, self._page, self._kinds = table, page, table.kind.split()
        named = [place for place, column in enumerate(table.columns) if column.kind == "name"]
        self._naming, self._names = next(iter(named), 0), len(named)

    def html(self) -> Markup:
        table = self._table
        look = Markup(' class="{}"').format(table.kind) if table.kind else ""
        scroll = Markup('<div class="scroll" tabindex="0" role="region" aria-label="{}">\n')
        rows = Markup("").join(map(self._row, range(len(table.columns[0].cells))))
        return Markup("{}<table{}>\n{}{}<tbody>\n{}{}</tbody>\n</table>\n</div>\n{}").format(
            scroll.format(self._page.shown(table.label)),
            look,
            self._caption(),
            self._heads(),
            rows,
            self._ruler(),
            Markup('<p class="note">{}</p>\n').format(self._page.shown(table.note)) if table.note else "",
        )

    def _caption(self) -> Markup:
        if not self._table.caption:
            return Markup()
        legend = Markup("").join(
            Markup(" · {} {}").format(dot_sample(finding), words) for finding, words in self._table.legend
        )
        caption = Markup("<caption><span>{}{}</span></caption>\n")
        return caption.format(self._page.shown(self._table.caption), legend)

    def _heads(self) -> Markup:
        columns = self._table.columns
        if not any(column.head or column.axis for column in columns):
            return Markup()
        return Markup("<thead><tr>{}</tr></thead>\n").format(Markup("").join(map(self._head, columns)))

    def _head(self, column: TableColumn) -> Markup:
        if column.sides:
            start, end = map(self._page.shown, column.sides)
            ends = Markup('<th scope="col"><span class="ends"><span>◀ {}</span><span>{} ▶</span></span></th>')
            return ends.format(start, end)
        if column.axis:
            return Markup('<th scope="col" class="chart"><span class="hidden">Chart</span></th>')
        look = Markup(' class="number"') if column.kind == "number" else ""
        about = Markup(' title="{}"').format(self._page.plain(column.about)) if column.about else ""
        return Markup('<th scope="col"{}{}>{}</th>').format(look, about, self._page.shown(column.head))

    def _row(self, at: int) -> Markup:
        start = Markup('<tr class="mean">') if at in self._table.apart else Markup("<tr>")
        cells = (
            self._cell(place, column, column.cells[at]) for place, column in enumerate(self._table.columns)
        )
        return start + Markup("").join(cells) + Markup("</tr>\n")

    def _cell(self, place: int, column: TableColumn, cell: Cell) -> Markup:
        if isinstance(cell, Interval):
            return self._drawn(column, cell)
        looks = [column.kind, cell.look] if isinstance(cell, Text) else [column.kind]
        words = plain_text(cell)
        looks += ["part"] * words.startswith(" ")
        inline = Text(cell.text.strip(), cell.address) if isinstance(cell, Text) else cell
        text = self._page.inline(inline.strip() if isinstance(inline, str) else inline, column.kind == "name")
        look = Markup(' class="{}"').format(" ".join(filter(None, looks))) if any(looks) else ""
        is_named = column.kind == "name" and self._names > 1 and "forest" in self._kinds
        head = self._stacked_head(column) if column.kind == "number" or is_named else ""
        if place == self._naming and words:
            return Markup('<th scope="row"{}{}>{}</th>').format(look, head, text)
        direction = Markup(' dir="auto"') if column.kind == "quote" else ""
        return Markup("<td{}{}{}>{}</td>").format(look, direction, head, text)

    def _stacked_head(self, column: TableColumn) -> Markup | str:
        """Return the head that a cell has on narrow screens, where the cells of some tables stand below each other."""
        is_stacked = not {"forest", "cards", "matrix"}.isdisjoint(self._kinds)
        return Markup(' data-head="{}"').format(self._page.shown(column.head)) if is_stacked else ""

    def _drawn(self, column: TableColumn, cell: Interval) -> Markup:
        axis = cell.axis or column.axis
        bar = Markup()
        if axis is not None and cell.value is not None:
            look = cell.finding or ""
            bar = interval_bar(
                axis, cell.value, cell.ends, mark=cell.mark, label=self._page.plain(cell.label), look=look
            )
        if not cell.beside:
            return Markup('<td class="chart">{}</td>').format(bar)
        beside = Markup('<td{}><span class="cell"><span>{}</span>{}</span></td>')
        return beside.format(self._stacked_head(column), self._page.inline(cell.beside), bar)

    def _ruler(self) -> Markup:
        """Return the axis as the last row; nothing without a drawn column."""
        for place, column in enumerate(self._table.columns):
            if column.axis is not None:
                span = Markup(' colspan="{}"').format(place) if place > 1 else ""
                ruler = Markup('<tr class="ruler"><td{}></td><td class="chart">{}</td></tr>\n')
                return ruler.format(span, axis_ruler(column.axis))
        return Markup()
