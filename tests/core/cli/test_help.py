"""The help of commands: options in groups, as wide as the terminal."""

import click
import pytest

from modelgauge.cli.app import App
from modelgauge.cli.main import cli
from modelgauge.cli.program import GroupedCommand, option_groups

MOST_IN_A_GROUP = 12


def commands(command: click.Command, parent: click.Context | None = None):
    """Every command of ModelGauge itself, with its context."""
    # As the program makes it: click keeps a command's help option from the first context that it sees.
    settings = command.context_settings if parent is None else {}
    ctx = click.Context(command, info_name=command.name, parent=parent, obj=App(), **settings)
    yield command, ctx
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            yield from commands(command.get_command(ctx, name), ctx)


def test_no_list_of_options_is_long() -> None:
    found = {
        ctx.command_path: {heading: len(rows) for heading, rows in option_groups(command, ctx).items()}
        for command, ctx in commands(cli)
    }
    assert len(found) > 20
    assert {path: groups for path, groups in found.items() if max(groups.values()) > MOST_IN_A_GROUP} == {}


def test_the_commands_of_a_group_stand_under_one_heading(run) -> None:
    lines = run("datasets", "--help", plugin=False).out.splitlines()
    listed = lines[lines.index("Commands:") + 1 :]
    names = [line.split()[0] for line in listed if line.startswith("  ") and not line.startswith("   ")]
    assert names == ["versions", "push", "pull", "restore", "diff", "list", "show", "validate"]


def test_what_has_groups_leaves_nothing_but_plugins_and_help_to_the_rest() -> None:
    grouped = [option_groups(*command) for command in commands(cli) if isinstance(command[0], GroupedCommand)]
    assert len(grouped) >= 7
    for groups in grouped:
        assert list(groups)[-1] == "Other options"
        assert [names.split(" ")[0] for names, _ in groups["Other options"]] == ["--plugin", "-h,"]


def test_groups_of_run_test(run) -> None:
    shown = run("run-test", "--help", plugin=False).out
    headings = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [
        "What to measure:",
        "Items, repeats and intervals:",
        "What SUTs are asked for:",
        "Limits:",
        "Calls and cache:",
        "Output:",
        "Comparison with a baseline:",
        "Data:",
        "Other options:",
    ]


@pytest.mark.parametrize(("columns", "widest"), [("60", 60), ("100", 100), ("300", 120)])
def test_help_is_as_wide_as_the_terminal(capsys, monkeypatch, columns, widest) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert cli.main(["compare", "--help"], standalone_mode=False) == 0
    _, _, options = capsys.readouterr().out.partition("\nWhat to compare:")
    assert widest - 15 < max(map(len, options.splitlines())) <= widest


@pytest.mark.parametrize("command", [[], ["cache"], ["runs"]])
def test_what_a_command_does_is_never_cut_in_the_list_of_commands(capsys, monkeypatch, command) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main([*command, "--help"], standalone_mode=False) == 0
    _, _, shown = capsys.readouterr().out.partition("\n")
    assert "...\n" not in shown
