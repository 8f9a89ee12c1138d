"""`EvaluationDataset`: goldens and test cases, read from files, edited, and saved.

How sources become tables is in `files/tables.py`, and what tables hold in `reading.py`. What differs between two
data sets is in `differences.py`, and how one is run in `dataset_test.py`.
"""

import hashlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelgauge.config.options import TEXT
from modelgauge.data.case_fields import RUNTIME_FIELDS
from modelgauge.data.json_values import canonical_json
from modelgauge.data.records import DatasetReference
from modelgauge.data.test_cases import ConversationalGolden, ConversationalTestCase, Golden, LLMTestCase
from modelgauge.datasets.checked_list import CheckedList
from modelgauge.datasets.dataset_files import (
    FilePath,
    FileType,
    csv_rows,
    detect_file_type,
    path_to_save,
    read_source,
    write_rows,
)
from modelgauge.datasets.fields import NamedColumns, names_columns
from modelgauge.datasets.reading import read_goldens, read_members, read_test_cases
from modelgauge.datasets.rows import MARK, AnyGolden, AnyTestCase, Reading, checked_row, make_row, make_rows
from modelgauge.datasets.versioned import Versioned
from modelgauge.documents.document import Heading, TableBlock, TableColumn
from modelgauge.documents.notebook import as_notebook
from modelgauge.errors import UsageError
from modelgauge.files.tables import Table
from modelgauge.interfaces.arguments import explains_arguments
from modelgauge.wording.did_you_mean import IN_DATA_SETS
from modelgauge.wording.phrases import counted


@explains_arguments
class EvaluationDataset(Versioned):
    """Goldens, and the test cases that runs of the app made of them: all single-turn, or all multi-turn.

    Args:
        goldens: `Golden` or `ConversationalGolden` objects.
        test_cases: `LLMTestCase` or `ConversationalTestCase` objects.
        name: the name of the data set in runs; by default the name of the first file that is read.

    Raises:
        ArgumentError: there is no such argument.
        InvalidOptionError: the name is not a text.
        TypeError: single-turn and multi-turn members are mixed.
    """

    def __init__(
        self,
        goldens: Iterable[AnyGolden] = (),
        *,
        test_cases: Iterable[AnyTestCase] = (),
        name: str | None = None,
    ) -> None:
        self.name = TEXT.check("name", name, or_none=True)
        self._goldens = CheckedList(self, partial(self._check, Golden, ConversationalGolden))
        self._test_cases = CheckedList(self, partial(self._check, LLMTestCase, ConversationalTestCase))
        self._goldens.extend(goldens)
        self._test_cases.extend(test_cases)

    # --- what it holds --------------------------------------------------------------------------------------

    @property
    def goldens(self) -> CheckedList:
        """The goldens, which can be edited, added and removed; all of one kind, so typed as Any."""
        return self._goldens

    @goldens.setter
    def goldens(self, goldens: Iterable[AnyGolden]) -> None:
        self._replace("_goldens", goldens)

    @property
    def test_cases(self) -> CheckedList:
        """The test cases; all of one kind, so typed as Any."""
        return self._test_cases

    @test_cases.setter
    def test_cases(self, test_cases: Iterable[AnyTestCase]) -> None:
        self._replace("_test_cases", test_cases)

    @property
    def is_multi_turn(self) -> bool:
        """True if it contains conversations; False if it is empty."""
        first = next(iter([*self._goldens[:1], *self._test_cases[:1]]), None)
        return isinstance(first, ConversationalGolden | ConversationalTestCase)

    def add_golden(self, golden: AnyGolden) -> None:
        """Add a golden.

        Raises:
            TypeError: it is single-turn and the data set multi-turn, or the other way round.
        """
        self._goldens.append(golden)

    def add_test_case(self, test_case: AnyTestCase) -> None:
        """Add a test case.

        Raises:
            TypeError: it is single-turn and the data set multi-turn, or the other way round.
        """
        self._test_cases.append(test_case)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the test cases; where there are none yet, over the goldens. `in` and `len` do the same."""
        return iter(self._test_cases or self._goldens)

    def __len__(self) -> int:
        return len(self._test_cases or self._goldens)

    if not TYPE_CHECKING:  # for which there is nothing but what is written in classes

        def __getattr__(self, name: str) -> Any:
            """Name what replaces a method that other libraries' data sets have."""
            if name in IN_DATA_SETS:
                raise AttributeError(f"A data set has no {name!r}. {IN_DATA_SETS[name]}.")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        named = "" if self.name is None else f"{self.name!r}: "
        goldens, cases = counted(len(self._goldens), "golden"), counted(len(self._test_cases), "test case")
        return f"<EvaluationDataset {named}{goldens}, {cases}>"

    def _repr_html_(self) -> str:
        head, *rows = csv_rows([make_row(member) for member in list(self)[:10]])
        columns = [
            TableColumn(name or "", [cell or "" for cell in cells])
            for name, *cells in zip(head, *rows, strict=True)
        ]
        more = len(self) - len(rows)
        table = TableBlock(columns, note=f"{more:,} more" if more > 0 else "")
        return as_notebook([Heading(repr(self)[1:-1]), table])

    def __reduce__(self) -> tuple[Any, ...]:
        made = partial(type(self), test_cases=list(self._test_cases), name=self.name)
        return made, (list(self._goldens),), {"pulled": self.pulled}

    def _replace(self, name: str, members: Iterable[Any]) -> None:
        before: CheckedList = getattr(self, name)
        setattr(self, name, CheckedList(self, before.check))
        try:
            getattr(self, name).extend(members)
        except BaseException:
            setattr(self, name, before)
            raise

    def _check(self, single_turn: type, multi_turn: type, member: object) -> None:
        if not isinstance(member, single_turn | multi_turn):
            raise TypeError(
                f"You cannot add a value of type {type(member).__name__} here, "
                f"only one of type {single_turn.__name__} or {multi_turn.__name__}."
            )
        multi = isinstance(member, multi_turn)
        if (self._goldens or self._test_cases) and multi != self.is_multi_turn:
            kind = "single-turn" if multi else "multi-turn"
            raise TypeError(f"You cannot add '{type(member).__name__}' to a {kind} dataset.")

    @property
    def content_hash(self) -> str:
        """SHA-256 of the content of the goldens, in their order, as hexadecimal digits.

        If there are no goldens, it is that of the test cases. Fields that only a run of the app can fill are left out;
        notes (names, tags, comments, sources, metadata) are included. So it is the same for the same goldens from any
        type of file, and differs after an edit or in another order.

        Raises:
            InvalidDataError: a golden was edited in place and is not valid any more.
        """
        rows = [_question(member) for member in (self._goldens or self._test_cases)]
        return hashlib.sha256(canonical_json(rows).encode("ascii")).hexdigest()

    # --- from files -----------------------------------------------------------------------------------------

    @classmethod
    def from_file(
        cls, file_path: FilePath, *, name: str | None = None, **columns: Any
    ) -> "EvaluationDataset":
        """Read goldens from a .csv, .json or .jsonl file, and test cases that were saved with them.

        Args:
            file_path: the file.
            name: of the data set; by default that of the file.
            columns: see `add_goldens_from_csv_file`, or `add_goldens_from_json_file`.

        Raises:
            InputFileError: the name ends in something else, or the file cannot be read.
        """
        dataset = cls(name=name)
        for reading in read_members(*read_source(file_path, detect_file_type(file_path), columns)):
            dataset._accept(reading)
        return dataset

    @names_columns("csv")
    def add_goldens_from_csv_file(
        self, file_path: FilePath, input_col_name: str | None = None, **columns: Any
    ) -> None:
        """Add a golden for each row of a CSV file: all of them, or none if a row cannot be read.

        Cells are unchanged texts ("NA" and "007" too); an empty cell is a field that is not given, unless it is quoted
        (`""`). A column `metadata` is read as `additional_metadata`; if a file has both, name the column to read.
        Other columns are kept in `custom_column_key_values`. Values in a column without a name are refused, except
        numbers of rows (0, 1, …) in the first. Rows with a scenario or turns (a JSON list) in place of an input make
        conversational goldens.

        Args:
            file_path: the file, whose first line names the columns.
            input_col_name: the column of `input`; by default the column `input`.
            encoding_type: of the file; a byte order mark is skipped.
            delimiter: between cells.
            columns: of the other fields; one that does not exist is left out, with a warning. And what separates the
                parts of a cell with a list: | for contexts (with a warning, unless you name the delimiter), ;
                for tools and tags. A cell in which a part would be blank is one text. A JSON list is always read as
                one: of tools, a cell that begins with a bracket or brace; of texts, one that begins with `["`, or
                stands in brackets as a whole, as `[1, 2]` does and `[1] Smith et al.` does not. One that is malformed
                is an error.

        Raises:
            InputFileError: a row cannot be read, or a column is not there; the message names file, line and
                column.
            TypeError: the data set is multi-turn and the file single-turn, or the other way round.
        """
        self._read(read_goldens, file_path, "csv", input_col_name=input_col_name, **columns)

    @names_columns("json")
    def add_goldens_from_json_file(
        self, file_path: FilePath, input_key_name: str | None = None, **columns: Any
    ) -> None:
        """Add a golden for each object of a JSON file that holds a list of them; else as from CSV files.

        A list that is given as one text, as some tools write it, is split at its delimiter in CSV files (| for
        contexts, ; for tools and tags), with a warning; a text without the delimiter is a list of one text. Unknown
        fields of turns and tools are skipped, with one warning for the file.
        """
        self._read(read_goldens, file_path, "json", input_key_name=input_key_name, **columns)

    @names_columns("json")
    def add_goldens_from_jsonl_file(
        self, file_path: FilePath, input_key_name: str | None = None, **columns: Any
    ) -> None:
        """Add a golden for each line of a file with one JSON object a line; else as from JSON files."""
        self._read(read_goldens, file_path, "jsonl", input_key_name=input_key_name, **columns)

    @names_columns("rows")
    def add_goldens_from_hf_dataset(
        self, dataset: Any, input_col_name: str | None = None, **columns: Any
    ) -> None:
        """Add a golden for each row of a Hugging Face dataset, or of any iterable of dicts.

        None, NaN, NaT and pandas' NA mean a field that is not given.

        Args:
            dataset: one split: `datasets.load_dataset(…, split="test")`.
            input_col_name: the column of `input`; by default the column `input`.
            columns: of the other fields.

        Raises:
            InputFileError: a row cannot be read, or a column is not there.
        """
        self._read(read_goldens, dataset, "rows", input_col_name=input_col_name, **columns)

    @names_columns("csv")
    def add_test_cases_from_csv_file(
        self, file_path: FilePath, input_col_name: str | None = None, **columns: Any
    ) -> None:
        """Add a test case for each row of a CSV file, as `add_goldens_from_csv_file` adds goldens.

        The parts of contexts are separated by `;` here, unless another delimiter is given; in JSON files, one text with
        all of them is split at `|`, as for goldens.
        """
        self._read(read_test_cases, file_path, "csv", input_col_name=input_col_name, **columns)

    @names_columns("json")
    def add_test_cases_from_json_file(
        self, file_path: FilePath, input_key_name: str | None = None, **columns: Any
    ) -> None:
        """Add a test case for each object of a JSON file that holds a list of them."""
        self._read(read_test_cases, file_path, "json", input_key_name=input_key_name, **columns)

    @names_columns("json")
    def add_test_cases_from_jsonl_file(
        self, file_path: FilePath, input_key_name: str | None = None, **columns: Any
    ) -> None:
        """Add a test case for each line of a file with one JSON object a line."""
        self._read(read_test_cases, file_path, "jsonl", input_key_name=input_key_name, **columns)

    @names_columns("rows")
    def add_test_cases_from_hf_dataset(
        self, dataset: Any, input_col_name: str | None = None, **columns: Any
    ) -> None:
        """Add a test case for each row of a Hugging Face dataset, or of any iterable of dicts."""
        self._read(read_test_cases, dataset, "rows", input_col_name=input_col_name, **columns)

    def _read(
        self, read: Callable[[Table, NamedColumns], Reading], source: Any, kind: str, /, **given: Any
    ) -> None:
        """Add the members that a function reads of a source; see `read_source`. Named columns may be missing."""
        table, chosen = read_source(source, kind, given)
        self._accept(read(table, chosen._replace(is_lenient=True)))

    def _accept(self, reading: Reading) -> None:
        if reading.problems:
            raise reading.error()
        of_goldens = issubclass(reading.kind, Golden | ConversationalGolden)
        (self._goldens if of_goldens else self._test_cases).extend(reading.members)
        self.name = self.name or reading.table.name
        for doubt in reading.doubts:
            warnings.warn(f"{reading.table.source}: {doubt}.", stacklevel=_levels_to_caller())

    # --- to files -------------------------------------------------------------------------------------------

    @explains_arguments
    def save_as(
        self,
        file_type: FileType,
        directory: FilePath = ".",
        file_name: str | None = None,
        include_test_cases: bool = False,
        raw: bool = False,
    ) -> Path:
        """Write the goldens to a file, from which equal goldens are read; an existing file is replaced.

        Args:
            file_type: csv, json or jsonl.
            directory: where the file goes; made where it is missing.
            file_name: with or without its ending; by default the date and time.
            include_test_cases: write the test cases too, behind the goldens. A column `modelgauge_member` marks them
                then: `from_file` gives both again, the methods that add goldens leave the marked rows out, and
                those that add test cases the others. Where there are no goldens, nothing is marked, and the file
                is one of test cases, for `add_test_cases_from_…`.
            raw: for other programs: leave cells of CSV as they are that spreadsheets run as formulas. Else such a cell
                gets a leading apostrophe, and a column `modelgauge_escaped` names it, so that reading restores it.

        Returns:
            The file.

        Raises:
            UsageError: there is nothing to write, or no such type.
            InvalidDataError: a golden was edited in place and is not valid any more.
            OSError: the disk refuses.
        """
        path = path_to_save(file_type, directory, file_name)
        rows = make_rows(self._goldens, self._test_cases if include_test_cases else ())
        if not self._goldens:  # a file of test cases, which need no mark
            rows = [{name: value for name, value in row.items() if name != MARK} for row in rows]
        if not rows:
            raise UsageError(
                "There are no goldens to save.",
                fix="Add some; for the test cases, save_as(…, include_test_cases=True).",
            )
        write_rows(path, file_type, rows, raw=raw)
        return path


def reference_to(dataset: EvaluationDataset) -> DatasetReference:
    """Return the reference to a data set in a record."""
    name, digest = dataset.name or "dataset", dataset.content_hash
    alias, version = dataset.pulled or (None, None)
    number = version.number if version and (alias, version.content_hash) == (name, digest) else None
    return DatasetReference(name=name, digest=digest, version=number)


def _levels_to_caller() -> int:
    """Return the number of stack frames inside modelgauge, so that a warning points to the caller's line."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("modelgauge."):
        frame, level = frame.f_back, level + 1
    return level


def _question(member: AnyGolden | AnyTestCase) -> dict[str, Any]:
    runtime = {*RUNTIME_FIELDS}
    if isinstance(member, ConversationalTestCase) and member.scenario is not None:
        runtime.add("turns")
    return {name: value for name, value in checked_row(member).items() if name not in runtime}
