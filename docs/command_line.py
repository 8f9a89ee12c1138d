"""The pages of the command line and of run files, made from the commands; written by `generate.py`."""

from __future__ import annotations

from inspect import cleandoc
from typing import TYPE_CHECKING

import click
from docstrings import table

from modelgauge.cli.app import App
from modelgauge.cli.commands.measure import run_test
from modelgauge.cli.main import cli
from modelgauge.cli.program import HEADING, option_groups
from modelgauge.cli.run_file import keys_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD = """# Command line

Generated from the help of the commands; plugins may add commands of their own.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | a threshold, an assertion or a check failed, and none of the following |
| 2 | wrong usage, unknown name, missing secret or data |
| 3 | more errors than `--max-errors` allows |
| 4 | stopped early: a fatal error, a cap, a full disk or another refusal by the operating system, the source of items |
| 70 | internal error |
| 130 | interrupted, by Ctrl-C, SIGTERM or SIGHUP (a closed terminal) |
"""

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


def page() -> str:
    """Every command of ModelGauge itself with its help."""
    return "\n".join([_HEAD, *_sections(cli, "modelgauge", None)]).rstrip("\n") + "\n"


def _sections(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    # As the program makes it: click remembers a command's help option from the first context that it sees.
    settings = dict(command.context_settings) if parent is None else {}
    app = App() if parent is None else None
    ctx = click.Context(command, info_name=name, parent=parent, obj=app, **settings)
    depth = len(ctx.command_path.split())
    yield f"{'#' * (depth + 1 if depth > 1 else 2)} {ctx.command_path}\n"
    yield f"```\n{ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}\n```\n"
    yield _help_as_markdown(command.help or "")
    for heading, rows in option_groups(command, ctx).items():
        yield table((heading, "meaning"), [(f"`{names}`", meaning) for names, meaning in rows]) + "\n"
    if isinstance(command, click.Group):
        # Those of the plugins that happen to be installed are in neither.
        for child in [*getattr(command, "lazy", ()), *command.commands]:
            found = command.get_command(ctx, child)
            if found is not None:
                yield from _sections(found, child, ctx)


def _help_as_markdown(text: str) -> str:
    """Help with its preformatted paragraphs (`\\b`) as code blocks, whose first line becomes text."""
    paragraphs = []
    for paragraph in cleandoc(text).split("\n\n"):
        if not paragraph.startswith("\b\n"):
            paragraphs.append(" ".join(paragraph.split()))
            continue
        head, *lines = paragraph.removeprefix("\b\n").split("\n")
        code = "\n".join(line.removeprefix("  ") for line in lines)
        paragraphs.append(f"{head}\n\n```\n{code}\n```")
    return "\n\n".join(paragraphs) + "\n"


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
