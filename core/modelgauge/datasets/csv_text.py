"""CSV (RFC 4180) without loss: a cell that is empty (`""`) is not one that is missing; line ends are kept.

Python's csv module reads both alike, and does not say on which line a record begins; the rest is as there.
What the cells mean is in `dataset_rows.py`.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_LINE_END = re.compile(r"\r\n|\r|\n")
_QUOTED = re.compile(r'"((?:[^"]++|"")*+)"')  # possessive: a file without the closing quote costs no time


class Record(NamedTuple):
    """One record of a file.

    Args:
        line: where it begins, from 1.
        cells: their texts; None where there is nothing between two delimiters.
    """

    line: int
    cells: list[str | None]


class CsvError(ValueError):
    """Text that is no CSV.

    Args:
        line: where, from 1.
        problem: what is wrong with it.
        found: the character that follows a closing quote, where that is wrong; else a blank.
    """

    def __init__(self, line: int, problem: str, found: str = " ") -> None:
        super().__init__(problem)
        self.line = line
        self.found = found


def parse_csv(text: str, delimiter: str = ",") -> list[Record]:
    r"""Read the records of a file; blank lines are skipped.

    Where every cell of the first record is quoted, the writer quotes all cells, and `""` is missing too.

    Args:
        text: the whole file, line ends (`\n`, `\r\n` or `\r`) as they are.
        delimiter: one character.

    Raises:
        CsvError: a quote is not closed, or text follows it.
    """
    plain = re.compile(f"[^{re.escape(delimiter)}\r\n]*")
    records: list[Record] = []
    at, line, quotes_all = 0, 1, False
    while at < len(text):
        record = Record(line, [])
        quoted = True
        while True:
            cell, at, lines = _cell(text, at, line, plain)
            quoted = quoted and lines is not None
            record.cells.append((cell or None) if quotes_all else cell)
            line += lines or 0
            if at >= len(text) or text[at] != delimiter:
                break
            at += 1
        at, line = _end_of_record(text, at, line, record)
        if record.cells != [None]:
            quotes_all = quotes_all or (not records and quoted)
            records.append(record)
    return records


def _cell(text: str, at: int, line: int, plain: re.Pattern[str]) -> tuple[str | None, int, int | None]:
    """The cell that begins here, its end, and how many line ends it holds: None where it is not quoted."""
    if not text.startswith('"', at):
        match = plain.match(text, at)
        end = at if match is None else match.end()
        return text[at:end] or None, end, None
    match = _QUOTED.match(text, at)
    if match is None:
        raise CsvError(line, 'a cell begins with a quote (") that is never closed')
    cell = match[1].replace('""', '"')
    return cell, match.end(), len(_LINE_END.findall(cell))


def _end_of_record(text: str, at: int, line: int, record: Record) -> tuple[int, int]:
    if at >= len(text):
        return at, line
    end = _LINE_END.match(text, at)
    if end is None:
        raise CsvError(
            line,
            f'text follows the closing quote (") of cell {len(record.cells)}; a quote inside is written ""',
            text[at],
        )
    return end.end(), line + 1


def csv_text(rows: Iterable[Sequence[str | None]]) -> str:
    r"""Write records so that `parse_csv` gives them back; lines end with `\n`.

    Args:
        rows: equally long ones, the names of the columns first.
    """
    return "".join(",".join(map(_written, row)) + "\n" for row in rows)


def _written(cell: str | None) -> str:
    if cell is None:
        return ""
    if cell and not any(character in cell for character in ',"\r\n'):
        return cell
    return '"' + cell.replace('"', '""') + '"'
