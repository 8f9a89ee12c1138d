"""Goldens and test cases made of the rows of a table, and the rows that say the same again.

Which of them a table holds is in `reading.py`; which column is which field, and what a value means, in `fields.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from modelgauge.data.base import explain_lines
from modelgauge.data.json_values import inexact_parts, is_exact
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase
from modelgauge.datasets.fields import (
    ALIASES,
    CUSTOM,
    FIELDS,
    TEXT,
    NamedColumns,
    UnfitError,
    is_joined,
    is_list_meant,
    is_split,
    parse_value,
)
from modelgauge.errors import InputFileError, InvalidDataError
from modelgauge.files.tables import SourceRow, Table
from modelgauge.wording.phrases import beginning, counted

AnyGolden: TypeAlias = Golden | ConversationalGolden
AnyTestCase: TypeAlias = LLMTestCase | ConversationalTestCase
Member: TypeAlias = AnyGolden | AnyTestCase

# What a row must say: one of these.
NEEDED: dict[type[Member], tuple[str, ...]] = {
    Golden: ("input",),
    LLMTestCase: ("input",),
    ConversationalGolden: ("scenario", "turns"),
    ConversationalTestCase: ("turns",),
}

MARK, TEST_CASE = "modelgauge_member", "test_case"
"""The column, and its value, that mark the test cases among the goldens of one file."""


class Reading:
    """The golden or test case of each row, and all that is wrong with those of which none can be made.

    Attributes:
        table: the rows.
        kind: the class of the members.
        members: of the rows that could be read, in order.
        problems: all that is wrong with the others, in order.
        unread: how many others there are.
        doubts: what may be wrong.
    """

    def __init__(
        self, table: Table, columns: Mapping[str, str], chosen: NamedColumns, kind: type[Member]
    ) -> None:
        self.table, self.kind, self._columns, self._chosen = table, kind, columns, chosen
        self.members: list[Any] = []
        self.problems: list[InputFileError] = []
        self.unread = 0
        self.doubts: list[str] = []
        self._split: dict[str, str] = {}
        self._whole: dict[str, str] = {}
        self._skipped: dict[str, None] = {}

    def error(self) -> InputFileError:
        """Return one error for all problems: the first in full, and the number of others."""
        first, others, rows = self.problems[0], len(self.problems) - 1, self.unread - 1
        if not others:
            return first
        more = (
            f"{counted(rows, 'more row')} cannot be read either."
            if rows
            else f"This row has {counted(others, 'more problem')}."
        )
        listed = " `modelgauge datasets validate FILE` lists them all." if self.table.is_file else ""
        return InputFileError(f"{first.problem} {more}", fix=f"{first.fix}{listed}")

    def found_doubts(self) -> Iterator[str]:
        """Yield possible problems in the rows that could be read."""
        for column, delimiter in self._split.items():
            yield (
                f"the texts in {column!r} are read as lists, split at {delimiter!r}; write a single text as a list "
                f"of one{self._way_to_say(column, delimiter)}"
            )
        for column, delimiter in self._whole.items():
            yield f"a text in {column!r} is not split at {delimiter!r}: a part would be blank. Write lists as JSON"
        if self._skipped:
            yield f"skipped what this version of modelgauge does not know: {', '.join(map(repr, self._skipped))}"

    def read(self, row: SourceRow) -> None:
        """Make a member of a row, or keep what is wrong with it."""
        refused: list[_Refusal] = []
        made = None if row.problem else self._read_member(row, refused)
        if made is not None and not refused:
            self.members.append(made)
            return
        self.unread += 1
        self.problems += [row.problem] if row.problem else []
        self.problems += [self._problem(row, *refusal) for refusal in refused]

    def _problem(self, row: SourceRow, column: str | None, problem: str, fix: str) -> InputFileError:
        where = row.place if column is None else f"{row.place}, column {column!r}"
        return InputFileError(f"{where}: {problem}.", fix=f"{fix} {self.table.columns_are()}".lstrip())

    def _read_member(self, row: SourceRow, refused: "list[_Refusal]") -> Member | None:
        data: dict[str, Any] = {}
        for field, column in self._columns.items():
            value = row.values.get(column)
            if (nan := self._nan_in(value)) is not None:
                refused.append((column, nan, _NULL))
                continue
            try:
                made = self._value(field, column, value)
            except UnfitError as error:
                refused.append((column, f"{_short(value)} is not {error}", FIELDS[field].fix))
            else:
                data |= {} if made is None else {field: made}
        needed = [field for field in NEEDED[self.kind] if field in self._columns]
        unfit = [column for column, *_ in refused]
        if not any(field in data or self._columns[field] in unfit for field in needed):
            refused.append(self._nothing(row, self._columns[needed[0]]))
        refused += self._add_custom(data, row)
        if self.kind in (LLMTestCase, ConversationalTestCase) and "additional_metadata" in data:
            data["metadata"] = data.pop("additional_metadata")
        try:
            return self.kind.model_validate(data)
        except InvalidDataError as error:  # of a test case among the turns
            refused.append((self._columns.get("turns"), error.problem.rstrip("."), ""))
            return None
        except ValidationError as error:
            lines = error.errors(include_url=False)
        if not all(map(_is_unknown_part, lines)):
            refused += self._list_refusals(lines)
            return None
        skipped = [line["loc"] for line in lines if line["input"] is not None]
        names = (".".join(part for part in loc if isinstance(part, str)) for loc in skipped)
        self._skipped |= dict.fromkeys(names)
        return self.kind.model_validate(data, extra="ignore")

    def _value(self, field: str, column: str, value: Any) -> Any:
        is_cell = self.table.cells_are_text
        # Rows of other sources than files have types, so that a text is one, and no list.
        delimiter = self._chosen.delimiters.get(field, "") if self.table.is_file else ""
        if is_joined(field, value, delimiter):
            self._note_split(field, column, value, delimiter)
        return parse_value(field, value, delimiter, is_cell=is_cell)

    def _way_to_say(self, column: str, delimiter: str) -> str:
        fields = [
            field for field, name in self._columns.items() if name == column and self.table.cells_are_text
        ]
        return "".join(f"; if all are lists, pass {field}_col_delimiter={delimiter!r}" for field in fields)

    def _nan_in(self, value: Any) -> str | None:
        """Describe where a value of a JSON file has NaN, which Python reads although JSON has no such number."""
        if not self.table.is_file or self.table.cells_are_text or type(value) not in (float, list, dict):
            return None
        found = [part for part in inexact_parts(value) if part.endswith("is nan")]
        return f"{found[0]}, which JSON cannot hold" if found else None

    def _note_split(self, field: str, column: str, text: str, delimiter: str) -> None:
        """Note a warning about a text with a delimiter: split unasked, or not split although the caller asked."""
        is_named, split = field in self._chosen.delimited, is_split(field, text, delimiter)
        holds_texts = field in ("context", "retrieval_context")  # the other fields are lists of names
        if split and not is_named and (holds_texts or not self.table.cells_are_text):
            self._split[column] = delimiter
        elif is_named and not split and not is_list_meant(text):
            self._whole[column] = delimiter

    def _nothing(self, row: SourceRow, column: str) -> "_Refusal":
        fix = "Fill it in, or leave the row out."
        for name in ("turns", "scenario", "input"):
            if name not in self._columns and row.values.get(name):
                fix = f"{name!r} is of the other kind of goldens, which go into a file of their own."
        return column, "there is nothing in it", fix

    def _add_custom(self, data: dict[str, Any], row: SourceRow) -> "Iterator[_Refusal]":
        """Keep the columns that are no field; or say that JSON cannot hold a column, or that it is there twice."""
        used = set(self._columns.values())
        others = {name: value for name, value in row.values.items() if name not in used and value is not None}
        for column, value in others.items():
            if type(column) is str and not is_exact(value):
                fix = (
                    _NULL
                    if self._nan_in(value)
                    else (
                        f"Leave the column out (of a Hugging Face dataset: dataset.remove_columns({column!r})), or "
                        "convert its values to texts or numbers."
                    )
                )
                yield column, f"{next(inexact_parts(value))}, which JSON cannot hold", fix
                return
        custom = data.get(CUSTOM, {})
        if others and isinstance(custom, dict):
            twice = next((column for column in others if column in custom), None)
            if twice is not None:
                yield twice, f"{self._columns[CUSTOM]!r} of this row says {twice!r}, too", "Keep one of them."
            data[CUSTOM] = others | custom

    def _list_refusals(self, lines: "list[ErrorDetails]") -> "Iterator[_Refusal]":
        """Yield pydantic's errors, by field."""
        of_fields: dict[str, list[ErrorDetails]] = {}
        for line in lines:
            if not (line["type"] == "missing" and len(line["loc"]) == 1):  # which is reported already
                of_fields.setdefault(str(line["loc"][0]) if line["loc"] else "", []).append(line)
        for name, found in of_fields.items():
            if all(map(_is_unknown_part, found)):
                continue
            field, first = ALIASES.get(name, name), found[0]
            if first["type"] == "string_type" and len(first["loc"]) == 1:
                problem, fix = f"{_short(first['input'])} is not a text{self._make_text(first['input'])}", ""
            else:
                explained = explain_lines(found, self.kind)
                problem = explained.problem.removeprefix(f"{self.kind.__name__}: ").rstrip(".")
                # Turns and tools have fields of their own.
                own = name in ("turns", "tools_called", "expected_tools") and len(first["loc"]) > 2
                fix = explained.fix if own else FIELDS.get(field, TEXT).fix
            yield self._columns.get(field), problem, fix

    def _make_text(self, value: Any) -> str:
        if isinstance(value, dict | list):
            return ", which this field must be"
        return ": put it in quotes" if self.table.is_file else ": make texts of what stands in the column"


_NULL = "Write null for a value that is missing."

_Refusal: TypeAlias = tuple[str | None, str, str]
"""The column of what a row cannot say, what is wrong with it, and how to write it."""


def _is_unknown_part(line: ErrorDetails) -> bool:
    """Return whether a turn or tool has an unknown field, from a newer version or another tool."""
    return line["type"] == "extra_forbidden" and len(line["loc"]) > 1


def _short(value: Any) -> str:
    return beginning(repr(value), 100)


# --- and back -----------------------------------------------------------------------------------------------


def make_row(member: Member) -> dict[str, Any]:
    """Return a golden or a test case as JSON; reading it gives an equal object."""
    row = member.model_dump(mode="json", exclude_defaults=True)
    values = {ALIASES.get(name, name): value for name, value in row.items()}
    return {name: values[name] for name in FIELDS if name in values}


def make_rows(goldens: Sequence[Member], test_cases: Sequence[Member]) -> list[dict[str, Any]]:
    """Return the rows of goldens, followed by those of test cases, which are marked.

    Raises:
        InvalidDataError: a golden was edited in place and is not valid any more.
    """
    return [*map(checked_row, goldens), *({**checked_row(case), MARK: TEST_CASE} for case in test_cases)]


def checked_row(member: Member) -> dict[str, Any]:
    """Return the row of a member, revalidated because the member may have been edited.

    Raises:
        InvalidDataError: it was edited in place and is not valid any more.
    """
    member.check()
    return make_row(member)
