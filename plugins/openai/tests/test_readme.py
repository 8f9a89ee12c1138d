"""The README's snippets run, and its tables are complete."""

import inspect
import re
import shlex
from pathlib import Path

import children

from modelgauge import SUTOptions
from modelgauge_openai.sut import OpenAIChat

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
LOCAL = "http://localhost:8000/v1"


def snippets(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def rows(heading):
    """The first cells of the table under a heading, names only."""
    table = README.partition(f"| {heading} |")[2].partition("\n\n")[0]
    return [
        name
        for row in re.findall(r"^\| (.+?) \|", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    ]


def run(*arguments):
    """Run Python in a process of its own, with neither a key nor a network to speak of."""
    return children.run(*arguments)


def run_command(command):
    program, *arguments = shlex.split(command)
    assert program == "modelgauge"
    return run("-c", "from modelgauge.cli.main import main; main()", *arguments)


def test_the_python_snippet(server, tmp_path):
    [code] = snippets("python")
    script = tmp_path / "snippet.py"
    script.write_text(code.replace(LOCAL, server.base_url), encoding="utf-8")
    done = run(str(script))
    assert (done.returncode, done.stderr) == (0, "")
    assert "value=0.0" in done.stdout
    assert server.stats().completed == 1


def test_the_command_for_a_server_of_ones_own(server):
    [command] = [line for block in snippets("console") for line in block.splitlines() if LOCAL in line]
    done = run_command(command.replace(LOCAL, server.base_url))
    assert done.returncode == 0, done.stderr
    assert "What is 2+2?" in done.stdout
    assert server.stats().recent[0]["body"]["model"] == "meta-llama/Llama-3.1-8B"


def test_the_command_for_openai_asks_for_the_key_before_anything_else():
    [command] = [line for block in snippets("console") for line in block.splitlines() if "gsm8k" in line]
    done = run_command(f"{command} --offline")
    assert done.returncode == 2
    assert "OPENAI_API_KEY" in done.stderr


def test_every_option_is_in_the_table():
    parameters = inspect.signature(OpenAIChat.__init__).parameters
    assert sorted(rows("option")) == sorted({*parameters, "server"} - {"self", "uid", "model", "api_key"})


def test_every_sut_option_is_in_the_table():
    assert sorted(rows("`SUTOptions`")) == sorted(SUTOptions.model_fields)
