"""The tutorial says of each service what `servers.py` does with it, in five lines."""

import re
from pathlib import Path

import pytest

from modelgauge.config.secrets import SecretStore
from modelgauge.plugins.discovery import discover
from modelgauge_openai.servers import SERVERS

PAGE = Path(__file__).parents[3] / "docs" / "tutorials" / "measure-a-model-behind-an-api.md"
TEXT = PAGE.read_text(encoding="utf-8").partition("## Your service\n")[2].partition("\n## ")[0]
SECTIONS = {
    title: [line for line in text.splitlines() if line.strip("`") not in ("", "text")]
    for title, text in re.findall(r"### (.+)\n([^#]*)", TEXT)
}
SERVICES = {title: lines for title, lines in SECTIONS.items() if title != "Further services"}


def server_of(text):
    found = re.search(r"server=(\w+)", text)
    return SERVERS[found[1]] if found else {}


def test_each_server_has_its_place():
    assert set(re.findall(r"server=(\w+)", TEXT)) == set(SERVERS)
    assert len(SERVICES) == 16


@pytest.mark.parametrize("title", SERVICES)
def test_a_section_is_five_lines_and_its_command_works(title):
    first, command, *notes = SERVICES[title]
    assert len(notes) <= 2
    [name] = re.findall(r'modelgauge run-sut --check --sut "(.*)"', command)
    exported = re.fullmatch(r"export (\w+)=…", first)
    env = {exported[1]: "key-1234"} if exported else {}
    sut = discover().suts.make(name, secrets=SecretStore(env=env))
    assert (sut._connection._key is not None) == bool(exported)


@pytest.mark.parametrize(
    "lines", [*("\n".join(lines) for lines in SERVICES.values()), *SECTIONS["Further services"]]
)
def test_what_the_server_needs_and_lacks_is_said(lines):
    server = server_of(lines)
    assert server.get("key_env", "") in lines
    for field in server.get("omit", ()):
        assert f"`{field}`" in lines
    assert ("one at a time" in lines) or server.get("completions") != "many_calls"
    assert ("`structured_output=false`" in lines) == (server.get("structured_output") is False)
