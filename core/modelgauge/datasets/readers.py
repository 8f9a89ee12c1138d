"""The methods of a data set that read goldens and test cases, one pair for each kind of source.

How sources are read is in `dataset_tables.py`, what their rows mean in `dataset_rows.py`; what becomes of
them in `datasets.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Unpack

from modelgauge.datasets.columns import CsvColumns, JsonKeys, RowColumns, spelled_out
from modelgauge.datasets.files import FilePath
from modelgauge.datasets.tables import Table, read_table, table_of_rows


class Readers(ABC):
    """What an `EvaluationDataset` can be filled from."""

    @abstractmethod
    def _add_goldens(self, table: Table, given: Mapping[str, Any]) -> None:
        """Add the goldens of a table, with the columns that the caller gave."""

    @abstractmethod
    def _add_test_cases(self, table: Table, given: Mapping[str, Any]) -> None:
        """Add the test cases of a table, with the columns that the caller gave."""

    @spelled_out(CsvColumns)
    def add_goldens_from_csv_file(
        self,
        file_path: FilePath,
        input_col_name: str | None = None,
        *,
        encoding_type: str = "utf-8",
        delimiter: str = ",",
        **columns: Unpack[CsvColumns],
    ) -> None:
        """Add a golden for each row of a CSV file: all of them, or none where one cannot be read.

        Cells are texts as they stand ("NA" and "007" too); an empty cell is a field that is not given, unless
        it is quoted (`""`). A column `metadata` is read as `additional_metadata`; a file with both is refused
        unless one is named. Columns that are no field are kept in `custom_column_key_values`; what stands in a
        column without a name is refused, except numbers of rows (0, 1, …) in the first. Rows with a scenario
        or turns (a JSON list) in place of an input make conversational goldens.

        Args:
            file_path: the file, whose first line names the columns.
            input_col_name: the column of `input`; without it, the one of that name.
            encoding_type: of the file; a byte order mark is skipped.
            delimiter: between cells.
            columns: of the other fields, and what separates the parts of a cell that holds a list: | for
                contexts, ; for tools and tags. A JSON list is always read as one: of tools, a cell that begins
                with a bracket or brace; of texts, one that begins with `["`, or stands in brackets as a whole,
                as `[1, 2]` does and `[1] Smith et al.` does not. One that is malformed is an error.

        Raises:
            InputFileError: a row cannot be read, or a column is not there; the message names file, line and
                column.
            TypeError: the data set is multi-turn and the file single-turn, or the other way round.
        """
        table = read_table(file_path, "csv", encoding=encoding_type, delimiter=delimiter)
        self._add_goldens(table, {"input_col_name": input_col_name, **columns})

    @spelled_out(JsonKeys)
    def add_goldens_from_json_file(
        self,
        file_path: FilePath,
        input_key_name: str | None = None,
        *,
        encoding_type: str = "utf-8",
        **keys: Unpack[JsonKeys],
    ) -> None:
        """Add a golden for each object of a JSON file that holds a list of them; else as from CSV files.

        A list that stands there as one text, as some tools write it, is split at the delimiter that it has in CSV
        files (| for contexts, ; for tools and tags), with a warning; a text without the delimiter is a list of one.
        Of turns and tools, what is no field is skipped, with one warning for the file.
        """
        table = read_table(file_path, "json", encoding=encoding_type)
        self._add_goldens(table, {"input_key_name": input_key_name, **keys})

    @spelled_out(JsonKeys)
    def add_goldens_from_jsonl_file(
        self,
        file_path: FilePath,
        input_key_name: str | None = None,
        *,
        encoding_type: str = "utf-8",
        **keys: Unpack[JsonKeys],
    ) -> None:
        """Add a golden for each line of a file with one JSON object a line; else as from JSON files."""
        table = read_table(file_path, "jsonl", encoding=encoding_type)
        self._add_goldens(table, {"input_key_name": input_key_name, **keys})

    @spelled_out(RowColumns)
    def add_goldens_from_hf_dataset(
        self, dataset: Any, input_col_name: str | None = None, **columns: Unpack[RowColumns]
    ) -> None:
        """Add a golden for each row of a Hugging Face dataset, or of any iterable of dicts.

        Args:
            dataset: one split: `datasets.load_dataset(…, split="test")`.
            input_col_name: the column of `input`; without it, the one of that name.
            columns: of the other fields.

        Raises:
            InputFileError: a row cannot be read, or a column is not there.
        """
        self._add_goldens(table_of_rows(dataset), {"input_col_name": input_col_name, **columns})

    @spelled_out(CsvColumns)
    def add_test_cases_from_csv_file(
        self,
        file_path: FilePath,
        input_col_name: str | None = None,
        *,
        encoding_type: str = "utf-8",
        delimiter: str = ",",
        **columns: Unpack[CsvColumns],
    ) -> None:
        """Add a test case for each row of a CSV file, as `add_goldens_from_csv_file` adds goldens.

        The parts of contexts are separated by ; here, unless another delimiter is given; in JSON files, where they
        stand as one text, by | as those of goldens.
        """
        table = read_table(file_path, "csv", encoding=encoding_type, delimiter=delimiter)
        self._add_test_cases(table, {"input_col_name": input_col_name, **columns})

    @spelled_out(JsonKeys)
    def add_test_cases_from_json_file(
        self,
        file_path: FilePath,
        input_key_name: str | None = None,
        *,
        encoding_type: str = "utf-8",
        **keys: Unpack[JsonKeys],
    ) -> None:
        """Add a test case for each object of a JSON file that holds a list of them."""
        table = read_table(file_path, "json", encoding=encoding_type)
        self._add_test_cases(table, {"input_key_name": input_key_name, **keys})

    @spelled_out(JsonKeys)
    def add_test_cases_from_jsonl_file(
        self,
        file_path: FilePath,
        input_key_name: str | None = None,
        *,
        encoding_type: str = "utf-8",
        **keys: Unpack[JsonKeys],
    ) -> None:
        """Add a test case for each line of a file with one JSON object a line."""
        table = read_table(file_path, "jsonl", encoding=encoding_type)
        self._add_test_cases(table, {"input_key_name": input_key_name, **keys})

    @spelled_out(RowColumns)
    def add_test_cases_from_hf_dataset(
        self, dataset: Any, input_col_name: str | None = None, **columns: Unpack[RowColumns]
    ) -> None:
        """Add a test case for each row of a Hugging Face dataset, or of any iterable of dicts."""
        self._add_test_cases(table_of_rows(dataset), {"input_col_name": input_col_name, **columns})
