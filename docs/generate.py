"""Writes what is made of the code: pages of docs/reference, and the options of functions as keyword arguments.

    python docs/generate.py            writes the files that have changed
    python docs/generate.py --check    writes nothing, and exits with 1 where a file is not what the code says

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
import command_line
import keywords
from docstrings import entries_of, first_line, prose, sections_of, table

from modelgauge import errors
from modelgauge.comparison.options import CompareOptions, PlanOptions
from modelgauge.config.options import options_in
from modelgauge.config.run_options import RunOptions
from modelgauge.config.settings import SECRETS_FILE, SETTINGS_FILE, TRUSTED, list_settings
from modelgauge.data.tables.frames import TABLES
from modelgauge.plugins import hookspecs

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parent / "reference"
CORE = Path(__file__).parents[1] / "core" / "modelgauge"
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
_API_HEAD = """\
# Python API

Generated from the public names of `modelgauge`. The page of each module has the details: signatures, arguments, errors,
and the source of each formula. `help(modelgauge.NAME)` shows the same. Names that are not listed here may change at any
time."""
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
    """Every public name with one line, and the options of runs, comparisons and plans."""
    parts = [_API_HEAD]
    for module, about in _API.items():
        more = [f"Signatures and arguments: [{module}]({detail_page(module)})."] if module in DETAILED else []
        parts += [f"## {module}", about, *more, table(("name", "kind", "what it is"), _names_of(module))]
    *others, last = [f"`{setting.option}`" for setting in list_settings() if setting.option]
    of_runs = _OPTIONS_OF_RUNS.format(of_settings=f"{', '.join(others)} and {last}")
    parts += [of_runs, _options_of(RunOptions)]
    parts += [_OPTIONS_OF_COMPARISONS, _options_of(CompareOptions)]
    parts += [_OPTIONS_OF_PLANS, _options_of(PlanOptions)]
    return "\n\n".join(parts) + "\n"


def _options_of(kind: Any) -> str:
    return table(
        ("option", "default", "meaning"),
        [(f"`{name}`", _default(option.default), option.help) for name, option in options_in(kind).items()],
    )


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
    "cli.md": command_line.page,
    "hooks.md": hooks_page,
    "run-file.md": command_line.run_file_page,
    "settings.md": settings_page,
    "tables.md": tables_page,
}


MODULES = {
    "config/run_options_dict.py": keywords.of_runs,
    "comparison/options_dicts.py": keywords.of_comparisons,
}


def stale_files() -> dict[Path, str]:
    """The files that are not what the code says, with what it says."""
    made = {FOLDER / name: page() for name, page in PAGES.items()}
    made |= {CORE / name: module() for name, module in MODULES.items()}
    return {
        file: text
        for file, text in made.items()
        if not file.is_file() or file.read_text(encoding="utf-8") != text
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Write what is made of the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where one is stale")
    check = parser.parse_args().check
    stale = stale_files()
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
