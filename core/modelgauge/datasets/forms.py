"""How a file of goldens is written, as command lines and manifests say it: columns, delimiter, encoding."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from modelgauge.datasets.columns import as_arguments
from modelgauge.datasets.files import FilePath, file_type_of
from modelgauge.datasets.tables import Table, read_table


class FileForm(NamedTuple):
    """How a file is written, where that is not as ours are.

    Args:
        columns: what it calls the fields, by field.
        delimiter: between the cells of a CSV file; None for a comma.
        encoding: of its text; None for UTF-8.
    """

    columns: Mapping[str, str] = MappingProxyType({})
    delimiter: str | None = None
    encoding: str | None = None

    def table(self, file: FilePath) -> Table:
        """The rows of a file.

        Raises:
            InputFileError: it cannot be read.
            InvalidOptionError: nothing can be delimited so.
        """
        return read_table(
            file, file_type_of(file), encoding=self.encoding or "utf-8", delimiter=self.delimiter or ","
        )

    def arguments(self, file: FilePath) -> dict[str, Any]:
        """The same for `EvaluationDataset.from_file`.

        Args:
            file: to be read.

        Raises:
            InputFileError: its type is unknown.
        """
        of_text = {"encoding_type": self.encoding} if self.encoding is not None else {}
        if self.delimiter is not None and file_type_of(file) == "csv":
            of_text["delimiter"] = self.delimiter
        return {**as_arguments(self.columns), **of_text}

    def over(self, other: "FileForm") -> "FileForm":
        """This one, and what another says besides."""
        return FileForm(
            {**other.columns, **self.columns},
            self.delimiter or other.delimiter,
            self.encoding or other.encoding,
        )
