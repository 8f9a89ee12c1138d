"""The options of commands that make a test of a data set: `--dataset`, how it is written, `--metric`, `--judge`."""

from __future__ import annotations

import functools
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from modelgauge.cli.command_options import MEASURED, judge_option, together
from modelgauge.wording.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from modelgauge.cli.app import App
    from modelgauge.datasets.dataset_test import DatasetTest

F = TypeVar("F", bound="Callable[..., Any]")

FILE = click.Path(dir_okay=False, path_type=Path)


def _columns(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    from modelgauge.datasets.fields import ALIASES, FIELDS

    found: dict[str, str] = {}
    for text in given:
        field, _, column = text.partition("=")
        if not (field and column):
            raise click.BadParameter(f"{text!r} is not FIELD=COLUMN.")
        if field not in FIELDS and field not in ALIASES:
            listed = f"{did_you_mean(field, FIELDS)}The fields are: {', '.join(FIELDS)}."
            raise click.BadParameter(f"There is no field {field!r}. {listed}")
        if found.setdefault(field, column) != column:
            raise click.BadParameter(f"{field!r} has two columns, {found[field]!r} and {column!r}.")
    return found


def _delimiter(_ctx: click.Context, _param: click.Parameter, given: str | None) -> str | None:
    delimiter = "\t" if given in ("\\t", "tab") else given
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise click.BadParameter(f"{given!r} is not one character. Use ; or tab, say.")
    return delimiter


def form_options(command: F) -> F:
    """`--column`, `--delimiter` and `--encoding`: how a file of goldens is written; handed on as `form`."""

    @functools.wraps(command)
    def formed(
        *args: Any, columns: dict[str, str], delimiter: str | None, encoding: str | None, **given: Any
    ) -> Any:
        from modelgauge.datasets.dataset_files import FileForm

        return command(*args, form=FileForm(columns, delimiter, encoding), **given)

    return _FORM(cast("F", formed))


_FORM = together(
    click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="FIELD=COLUMN",
        callback=_columns,
        help="The column of a data set that holds a field, such as input=question; repeatable.",
    ),
    click.option(
        "--delimiter",
        metavar="CHARACTER",
        callback=_delimiter,
        help="What separates the cells of a CSV file: ; or tab, say.  [default: a comma]",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="How the text of a data set is encoded: cp1252, say.  [default: utf-8]",
    ),
)


def _metrics_option(text: str) -> Callable[[F], F]:
    return click.option("--metric", "metrics", multiple=True, metavar="UID", help=text)


dataset_options = together(
    click.option(
        "--dataset",
        "datasets",
        multiple=True,
        type=FILE,
        metavar="FILE",
        help="Goldens (CSV, JSON, JSONL, or the alias of a saved data set, or ALIAS@VERSION) as a test, judged by "
        "each --metric; repeatable.",
    ),
    form_options,
    _metrics_option("A metric for --dataset; repeatable."),
    judge_option,
    heading=MEASURED,
)
"""Options of the tests that `pop_dataset_tests` makes."""
other_dataset_options = together(
    click.option(
        "--dataset",
        type=FILE,
        metavar="FILE",
        help="Measure by these goldens: a file, or the alias of a saved data set, or ALIAS@VERSION.  [default: the "
        "run's]",
    ),
    form_options,
    _metrics_option("Measure by this metric of a data set; repeatable.  [default: the run's]"),
    judge_option,
    click.option("--ratings", is_flag=True, help="Measure by people's ratings."),
    heading=MEASURED,
)
"""Options of a run that is measured again, by something else than what the run had."""
names_again = together(
    click.option("--test", metavar="UID", help="The run's test, named again."),
    click.option("--dataset", metavar="FILE", help="The run's file of goldens, named again."),
    _metrics_option("The run's metric, named again; repeatable."),
    click.option("--judge", metavar="UID", help="The run's judge, named again."),
)
"""The names that are given only for a run that is not known to be one's own."""


def pop_dataset_tests(
    app: App, given: dict[str, Any], others: Sequence[str]
) -> tuple[list[DatasetTest], dict[str, Any]]:
    """Take what `dataset_options` added out of a command's arguments, but for the judge, and make the tests.

    Args:
        app: of this invocation.
        given: the command's arguments.
        others: the uids of the other tests that are run.

    Returns:
        A test for each file, and what a run's manifest keeps, so that it can be done again.

    Raises:
        UsageError: there are metrics without a data set, or the other way round, or a name is unknown.
        InputFileError: a file cannot be read.
    """
    files, uids, form = given.pop("datasets"), given.pop("metrics"), given.pop("form")
    if files and not uids:
        raise click.UsageError("--dataset needs at least one --metric, such as --metric exact_match.")
    if uids and not files:
        raise click.UsageError("--metric judges the goldens of a --dataset, which is missing.")
    if any(form) and not files:
        raise click.UsageError("--column, --delimiter and --encoding describe a --dataset, which is missing.")
    if not files:
        return [], {}
    from modelgauge.datasets.file_tests import describe_inputs, file_named, file_tests, made_metrics

    data_dir = Path(given.get("data_dir") or app.settings.data_dir)
    files = [file_named(file, data_dir) for file in files]
    made = file_tests(files, made_metrics(uids, app.plugins, app.secrets), form=form, taken=others)
    by_uid = {test.uid: file for file, test in made.items()}
    return list(made.values()), describe_inputs(by_uid, uids, form)


def judged_by(judge: str | None) -> AbstractContextManager[None]:
    """Let a SUT judge for all metrics that name none of their own."""
    if judge is None:
        return nullcontext()
    from modelgauge.metrics.judges import judging_by_default

    return judging_by_default(judge)
