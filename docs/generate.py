"""Writes the pages of docs/reference that are made of the code: command line, hooks, settings and Python API.

    python docs/generate.py            writes the pages that have changed
    python docs/generate.py --check    writes nothing, and exits with 1 where a page is not what the code says

The texts are the docstrings and help texts of the code. `record.md`, `statistics.md` and `comparisons.md` are
written by hand.
"""

from __future__ import annotations

import argparse
import enum
import inspect
import sys
import textwrap
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import api_details
import click
import command_line
from docstrings import entries_of, first_line, prose, sections_of, table

from modelgauge import errors
from modelgauge.cli.commands.measure import run_test
from modelgauge.cli.program import HEADING
from modelgauge.cli.run_file import keys_of
from modelgauge.config.run_options import OPTIONS
from modelgauge.config.settings import SECRETS_FILE, SETTINGS_FILE, TRUSTED, list_settings
from modelgauge.data.tables.frames import TABLES
from modelgauge.plugins import hookspecs

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parent / "reference"
NOT_EXPLAINED_BY_THEMSELVES = {  # values without a docstring of their own
    "ChoiceStyle": "How the letters of choices are written: a literal type.",
    "TestCase": "An `LLMTestCase` or a `ConversationalTestCase`: a type.",
    "hookimpl": "Marks a function as the implementation of a hook.",
}
_HOOKS_HEAD = """\
# Hooks

Generated from `modelgauge.plugins.hookspecs`, the plugin manual."""
_HOOKS_EXAMPLES = """\
The examples begin with:

```python
import sys

from modelgauge import InjectSecret, hookimpl
```"""
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
[command line](cli.md) and the [Python API](api.md#options-of-a-run).
"""
_TABLES_HEAD = """\
# Tables of a run

Generated from `modelgauge.data.tables`.

[`modelgauge export`](cli.md#modelgauge-export) writes these tables as CSV, JSONL or Parquet files. In Python,
`record.to_pandas("items")` and `record.to_arrow("items")` return them. [Look at, compare and share
results](../tutorials/look-at-compare-and-share-results.md#compute-with-data-frames) shows how to use them.

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
_API_HEAD = """\
# Python API

Generated from the public names of `modelgauge`. The page of each module has the details: signatures, arguments, errors,
and the source of each formula. `help(modelgauge.NAME)` shows the same. Names that are not listed here may change at any
time."""
_OPTIONS_HEAD = """\
## Options of a run

Keyword arguments of `run_test`, `Runner`, `resume` and `rescore`. The [settings](settings.md) can change the defaults
of `cache`, `concurrency`, `max_retries`, `attempt_timeout`, `executor` and `workers`."""


# --- pages ------------------------------------------------------------------------------------------------


def cli_page() -> str:
    return command_line.page()


def hooks_page() -> str:
    """Every hook with its signature, its arguments and its example."""
    names = [name for name in vars(hookspecs) if name.startswith("modelgauge_")]
    parts = [_HOOKS_HEAD, *_manual_head(), _HOOKS_EXAMPLES]
    for name in names:
        parts += _hook(name, getattr(hookspecs, name))
    return "\n\n".join(parts) + "\n"


def _manual_head() -> list[str]:
    """What the module says before its hooks: its indented lines are an excerpt of a pyproject.toml."""
    head = []
    for paragraph in (inspect.getdoc(hookspecs) or "").split("\n\n")[1:]:
        if paragraph.startswith("    "):
            head.append(f"```toml\n{textwrap.dedent(paragraph)}\n```")
        else:
            head.append(" ".join(paragraph.split()))
    return head


def _hook(name: str, function: Any) -> list[str]:
    told = sections_of(function)
    arguments: list[tuple[str, ...]] = [(f"`{key}`", text) for key, text in entries_of(told["Args"]).items()]
    return [
        f"## {name}",
        "```text\n" + f"{name}{_signature(function)}" + "\n```",
        prose(told[""]),
        table(("argument", "what it is"), arguments),
        f"```python\n{told['Example']}\n```",
    ]


def _signature(function: Any) -> str:
    parameters = ", ".join(
        f"{each.name}: {each.annotation}" for each in inspect.signature(function).parameters.values()
    )
    return f"({parameters})"


def settings_page() -> str:
    """Every setting with its spellings."""
    rows: list[tuple[str, ...]] = [
        (f"`{setting.key}`", f"`{setting.variable}`", _default(setting.default), setting.meaning)
        for setting in list_settings()
    ]
    head = (f"in {SETTINGS_FILE}", "in the environment", "default", "meaning")
    return _SETTINGS.format(
        trusted=TRUSTED, settings=SETTINGS_FILE, secrets=SECRETS_FILE, table=table(head, rows)
    )


def run_file_page() -> str:
    """Every key of a run file, under the headings of `run-test --help`."""
    groups: dict[str, list[tuple[str, ...]]] = {}
    for key, option in keys_of(run_test).items():
        heading = vars(option).get(HEADING) or "Other keys"
        default = f" [default: {option.default}]" if option.show_default else ""
        groups.setdefault(heading, []).append((f"`{key}`", _written(option), f"{option.help}{default}"))
    parts = [_RUN_FILE_HEAD]
    parts += [table((heading, "value", "meaning"), rows) for heading, rows in groups.items()]
    return "\n\n".join(parts) + "\n"


def _written(option: click.Option) -> str:
    """How the value of an option is written in TOML."""
    if option.is_flag:
        return "`true`"
    if not option.multiple:
        return f"`{option.make_metavar(click.Context(run_test))}`"
    return "table or list" if "=" in (option.metavar or "") else "list"


def _default(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "none" if value == () else f"`{value}`"


def tables_page() -> str:
    """Every table with its columns."""
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


def api_page() -> str:
    """Every public name with one line, and the options of a run."""
    parts = [_API_HEAD]
    for module, about in _API.items():
        more = [f"Signatures and arguments: [{module}]({detail_page(module)})."] if module in DETAILED else []
        parts += [f"## {module}", about, *more, table(("name", "kind", "what it is"), _names_of(module))]
    options: list[tuple[str, ...]] = [
        (f"`{name}`", _default(info.default), info.help) for name, info in OPTIONS.items()
    ]
    parts += [_OPTIONS_HEAD, table(("option", "default", "meaning"), options)]
    return "\n\n".join(parts) + "\n"


_API = {
    "modelgauge": "What authors subclass, the data that flows, and what runs it.",
    "modelgauge.stats": "Aggregations with error bars, intervals, comparisons, plans, agreement of raters.",
    "modelgauge.text": "Chats, multiple choice, reasoning blocks, answers.",
    "modelgauge.evals": "Test cases, data sets, `evaluate` and `assert_test`, for people who test their own app.",
    "modelgauge.metrics": "Metrics for test cases, and the parts of new metrics.",
    "modelgauge.reports": "Pages of runs and comparisons, and what they are made of: views, charts, the data of items.",
    "modelgauge.testing": "Fakes for tests, and the conformance kit for plugins.",
    "modelgauge.errors": "One tree. The message of each error ends with the fix. Errors of wrong use are also a "
    "`ValueError`. If arguments or a class have the wrong form, they are a `TypeError` too.",
}
DETAILED = [module for module in _API if module != "modelgauge.errors"]  # of which the table says all


def detail_page(module: str) -> str:
    """The file of the page that tells all of a module."""
    return f"api-{module.rpartition('.')[2]}.md"


def _detailed(module: str) -> Callable[[], str]:
    def page() -> str:
        named = [value for one in _API for value in public_names(one).values()]
        public = {value for value in named if inspect.isclass(value)}
        return api_details.page(
            module, _API[module], public_names(module), public, NOT_EXPLAINED_BY_THEMSELVES
        )

    return page


def _names_of(module: str) -> list[tuple[str, ...]]:
    return [(f"`{name}`", _kind(value), _about(name, value)) for name, value in public_names(module).items()]


def public_names(module: str) -> dict[str, Any]:
    """The public names of a module and what they stand for."""
    found = import_module(module)
    if found is errors:
        return {name: value for name, value in vars(errors).items() if inspect.isclass(value)}
    return {name: getattr(found, name) for name in found.__all__}


def _kind(value: Any) -> str:
    if inspect.isclass(value):
        if issubclass(value, Exception):
            also = [f", `{one.__name__}`" for one in (ValueError, TypeError) if issubclass(value, one)]
            return f"error, exit code {getattr(value, 'exit_code', 70)}{''.join(also)}"
        return "enum" if issubclass(value, enum.Enum) else "class"
    return "function" if inspect.isfunction(value) else "value"


def _about(name: str, value: Any) -> str:
    if inspect.isclass(value) and value.__name__ != name:
        return f"Another name of `{value.__name__}`."
    told = NOT_EXPLAINED_BY_THEMSELVES.get(name) or first_line(value)
    if not told:
        raise SystemExit(f"{name} has no docstring.")
    return told


PAGES = {
    "api.md": api_page,
    **{detail_page(module): _detailed(module) for module in DETAILED},
    "cli.md": cli_page,
    "hooks.md": hooks_page,
    "run-file.md": run_file_page,
    "settings.md": settings_page,
    "tables.md": tables_page,
}


def stale_pages() -> dict[Path, str]:
    """The pages that are not what the code says, with what it says."""
    made = {FOLDER / name: page() for name, page in PAGES.items()}
    return {
        file: text
        for file, text in made.items()
        if not file.is_file() or file.read_text(encoding="utf-8") != text
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the generated pages of docs/reference.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where one is stale")
    check = parser.parse_args().check
    stale = stale_pages()
    for file, text in stale.items():
        if check:
            print(f"{file} is not what the code says. Run: python docs/generate.py", file=sys.stderr)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
            print(f"wrote {file}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
