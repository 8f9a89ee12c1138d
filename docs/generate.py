"""Writes files that repeat what the code declares: tables of docs/reference, and options as keyword arguments.

    python docs/generate.py            writes the files that have changed
    python docs/generate.py --check    writes nothing, and exits with 1 if a file is out of date

Sphinx makes the rest of the reference of docstrings and commands; see `conf.py`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import click
import keywords

from modelgauge.cli.commands.measure import run_test
from modelgauge.cli.program import HEADING
from modelgauge.cli.run_file import list_keys
from modelgauge.comparison.options import CompareOptions, PlanOptions
from modelgauge.config.options import options_in
from modelgauge.config.run_options import RunOptions
from modelgauge.config.settings import SECRETS_FILE, SETTINGS_FILE, TRUSTED, list_settings
from modelgauge.data.tables.frames import TABLES

FOLDER = Path(__file__).parent / "reference"
CORE = Path(__file__).parents[1] / "core" / "modelgauge"
_RUN_FILE_HEAD = """\
# Run files

Generated from the options of `run-test`.

`modelgauge run FILE` does what `run-test` does, with options from a TOML file. A key is the name of an option with `_`
for `-`. A repeatable option can also have its name in Python (`tests`, `suts`, `stop_sequences`). Its value is a list
or one text, or a table if it consists of pairs such as `LABEL=UID`. Options of the command line replace those of the
file. An example, `suite.toml`:

```toml title="suite.toml"
tests = ["gsm8k", "bbh"]
plugins = ["my_test.py"]
max_test_items = 200
temperature = 0
max_cost = 5
max_errors = "1%"

# Goldens are a test of their own.
datasets = ["goldens.csv"]
metrics = ["exact_match"]

# Fail where it is worse than that run.
baseline = "main.json"
fail_if_worse = true

[suts]
small = "openai/gpt-4o-mini"
large = "openai/gpt-4o?service_tier=flex"

[thresholds]
accuracy = 0.5      # of every test that has this result
gsm8k.accuracy = 0.8
bbh.accuracy = 0.6  # the mean over the tests of the group
```

Relative paths of files start at the file's folder. A path in the name of a SUT (`replay/answers.jsonl`) starts at the
working directory. A threshold for one test replaces a threshold for all tests. Errors in keys and values name the
line. The manifest of each run holds the text of the file, without secrets (`inputs.run_file` in `run.json`), and all
its options, so `modelgauge resume` does not read the file again."""
_SETTINGS = """\
# Settings

Generated from `modelgauge.config.settings`.

A setting comes from `{settings}` in the working directory or the nearest folder above it, from the environment, or
from an option of a command. The later of these wins. An empty variable counts as not set. Relative paths in the file
start at the file's folder, other relative paths at the working directory. `{secrets}` is in the same folder as the
file. Only its owner may have the right to read it.

{table}

For example:

```toml title="{settings}"
data_dir = "runs"
concurrency = 50
plugins = ["my_test.py"]

[judge]
model = "openai/gpt-4o"
```

Each server that speaks a provider's protocol can have a table, `[PROVIDER.servers.NAME]`. Its keys are the options of
the provider's names. `openai/llama?server=gpu` and `gpu/llama` both ask this server:

```toml title="modelgauge.toml"
[openai.servers.gpu]
base_url = "http://gpu.example:8000/v1"
key_env = "GPU_KEY"
```

Each plugin can have a table, `[plugin.NAME]`. The [hooks](hooks.md) of the plugin get it as `settings`. The page of
the plugin lists its keys.

If the file names plugins or an address, it must belong to you, and others must have no right to write it. Otherwise
ModelGauge refuses it. `{trusted}` names folders whose settings and runs are trusted anyway, separated as in
`PATH`. It is read from the environment only.

Seeds, caps, repeats and the like belong to a single run. They are options of the command and of `Runner`, see the
[command line](cli.md) and [keyword arguments](options.md#options-of-a-run).
"""
_TABLES_HEAD = """\
# Tables of a run

Generated from `modelgauge.data.tables`.

[`modelgauge export`](cli.md#modelgauge-export) writes these tables as CSV, JSONL or Parquet files. In Python,
`record.to_pandas("items")` and `record.to_arrow("items")` return them. [Look at, compare and share
results](../tutorials/look-at-compare-and-share-results.md#use-data-frames) shows how to use them.

- Each row is one thing: a run, an item, a completion. The first columns are its key, in **bold**. Tables join by the
  columns that they share: `run_id`, `item_id`, `prompt_index`, `repeat`, `completion`.
- Names and types of columns stay the same in later versions; new columns may come.
- Every value but an id may be missing. In CSV a missing value is an empty cell, and an empty text is `""`.
- A failed item is a row of `items`, with its stage and its error. It has no rows in tables of what it lacks.
- Secrets are taken out, as everywhere else.

| type | in Arrow and Parquet | in pandas | in CSV |
| --- | --- | --- | --- |
| text | `string` | `string` | text |
| integer | `int64` | `Int64` | digits |
| number | `double` | `float64` | the shortest text that is the same number |
| boolean | `bool` | `boolean` | `true` or `false` |
| time | `timestamp[us, tz=UTC]` | `datetime64[us, UTC]` | ISO 8601 |
| JSON | `string` | `string` | text |

A JSON value that is a text stands there as it is, any other value as JSON (`{"target": "Paris"}`). In JSONL files it is
the value itself."""
_OPTIONS_HEAD = """\
# Options

Generated from `RunOptions`, `CompareOptions` and `PlanOptions`. The command line and [run files](run-file.md) have the
same options."""
_OPTIONS_OF_RUNS = """\
## Options of a run

Keyword arguments of `run_test`, `Runner`, `resume` and `rescore`. The [settings](settings.md) can change the defaults
of {of_settings}."""
_OPTIONS_OF_COMPARISONS = """\
## Options of a comparison

Keyword arguments of `compare`. Those that are repeatable take a text or a list of texts."""
_OPTIONS_OF_PLANS = """\
## Options of a plan

Keyword arguments of `plan_comparison`."""


# --- pages ------------------------------------------------------------------------------------------------


def settings_page() -> str:
    """Return the page of the settings."""
    rows: list[tuple[str, ...]] = [
        (f"`{setting.key}`", f"`{setting.variable}`", _default(setting.default), setting.meaning)
        for setting in list_settings()
    ]
    head = (f"in {SETTINGS_FILE}", "in the environment", "default", "meaning")
    return _SETTINGS.format(
        trusted=TRUSTED, settings=SETTINGS_FILE, secrets=SECRETS_FILE, table=table(head, rows)
    )


def _default(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "none" if value == () else f"`{value}`"


def tables_page() -> str:
    """Return the page of the tables of a run."""
    parts = [_TABLES_HEAD]
    for one in TABLES.values():
        columns: list[tuple[str, ...]] = [
            (
                f"**`{column.name}`**" if place < one.key else f"`{column.name}`",
                column.kind,
                column.unit,
                column.meaning,
            )
            for place, column in enumerate(one.columns)
        ]
        parts += [
            f"## {one.name}",
            f"One row for {one.meaning}.",
            table(("column", "type", "unit", "what it is"), columns),
        ]
    return "\n\n".join(parts) + "\n"


def options_page() -> str:
    """Return the page of the options of runs, comparisons and plans."""
    *others, last = [f"`{setting.option}`" for setting in list_settings() if setting.option]
    of_runs = _OPTIONS_OF_RUNS.format(of_settings=f"{', '.join(others)} and {last}")
    parts = [_OPTIONS_HEAD, of_runs, _options_of(RunOptions)]
    parts += [_OPTIONS_OF_COMPARISONS, _options_of(CompareOptions)]
    parts += [_OPTIONS_OF_PLANS, _options_of(PlanOptions)]
    return "\n\n".join(parts) + "\n"


def _options_of(kind: Any) -> str:
    return table(
        ("option", "default", "meaning"),
        [(f"`{name}`", _default(option.default), option.help) for name, option in options_in(kind).items()],
    )


def run_file_page() -> str:
    """Return the page of the keys of run files, under the headings of `run-test --help`."""
    groups: dict[str, list[tuple[str, ...]]] = {}
    for key, option in list_keys(run_test).items():
        heading = vars(option).get(HEADING) or "Other keys"
        default = f" [default: {option.default}]" if option.show_default else ""
        groups.setdefault(heading, []).append((f"`{key}`", _written(option), f"{option.help}{default}"))
    parts = [_RUN_FILE_HEAD]
    parts += [table((heading, "value", "meaning"), rows) for heading, rows in groups.items()]
    return "\n\n".join(parts) + "\n"


def _written(option: click.Option) -> str:
    """Return how to write the value of an option in TOML."""
    if option.is_flag:
        return "`true`"
    if not option.multiple:
        return f"`{option.make_metavar(click.Context(run_test))}`"
    return "table or list" if "=" in (option.metavar or "") else "list"


def cell(text: str) -> str:
    """Return a text as a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table of Markdown."""
    lines = [head, ("---",) * len(head), *(tuple(cell(each) for each in row) for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


PAGES = {
    "options.md": options_page,
    "run-file.md": run_file_page,
    "settings.md": settings_page,
    "tables.md": tables_page,
}


MODULES = {
    "config/run_options_dict.py": keywords.of_runs,
    "comparison/options_dicts.py": keywords.of_comparisons,
}


def stale_files() -> dict[Path, str]:
    """Return the files that are out of date, with the text that they should have."""
    made = {FOLDER / name: page() for name, page in PAGES.items()}
    made |= {CORE / name: module() for name, module in MODULES.items()}
    return {
        file: text
        for file, text in made.items()
        if not file.is_file() or file.read_text(encoding="utf-8") != text
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Write files that repeat what the code declares.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if a file is out of date"
    )
    check = parser.parse_args().check
    stale = stale_files()
    for file, text in stale.items():
        if check:
            print(f"{file} is out of date. Run: python docs/generate.py", file=sys.stderr)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
            print(f"wrote {file}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
