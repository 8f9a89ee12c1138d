"""The README names every setting, and its settings and commands are those of the plugin."""

import re
import tomllib
from pathlib import Path

import click

from modelgauge.plugins.discovery import discover
from modelgauge_mlflow.sending import SETTINGS, checked

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_table_names_every_setting():
    table = README.partition("| setting |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(SETTINGS)


def test_the_example_is_one():
    [example] = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    assert checked(tomllib.loads(example)["plugin"]["mlflow"])["send"]


def test_the_command_is_one_of_modelgauge():
    cli = click.Group("modelgauge")
    discover().register_commands(cli)
    [command] = re.findall(r"^modelgauge mlflow (.*)$", README, re.MULTILINE)
    ctx = cli.commands["mlflow"].make_context("mlflow", command.split())
    assert ctx.params == {"runs": ("latest",), "tracking_uri": "http://localhost:5000", "data_dir": None}
