"""Runs snippets of DeepEval's and Confident AI's documents with only their import paths changed.

The snippets stand in the tests as those documents have them, with other words and data. Which path becomes which
is read from the page for people who come from there, so that it says what is true.
"""

import re
import subprocess
from pathlib import Path

import children
import pytest
from processes import VARIABLES
from pytest_sessions import outside_of_any_session

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "tutorials" / "coming-from-deepeval.md"
JUDGE = "gpt-4.1"


def import_paths():
    """The table of the page: the path there, and the path here."""
    rows = re.findall(
        r"^\| `(deepeval[\w.]*)` \| `(modelgauge[\w.]*)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(rows) == 7
    return dict(rows)


def translated(snippet):
    """A snippet with other import paths, and nothing else changed."""
    paths = import_paths()
    made = re.sub(
        r"^from (deepeval[\w.]*) import",
        lambda found: f"from {paths[found[1]]} import",
        snippet,
        flags=re.MULTILINE,
    )
    made = re.sub(r"^import deepeval$", f"import {paths['deepeval']} as deepeval", made, flags=re.MULTILINE)
    assert not re.search(r"^(from|import) deepeval", made, re.MULTILINE)
    return made


class Reader:
    """Somebody who tries the snippets of a document in an empty folder.

    Args:
        folder: the working directory.
    """

    def __init__(self, folder):
        self.folder = folder
        self.names = {"__name__": "__main__"}

    def run(self, snippet):
        """Run a snippet, in the names of those before; returns all names."""
        exec(compile(translated(snippet), "<snippet>", "exec"), self.names)
        return self.names

    def write(self, name, text):
        """Write a file; imports in it are changed too."""
        (self.folder / name).write_text(translated(text) if name.endswith(".py") else text, encoding="utf-8")

    def command(self, line):
        """Run `deepeval …` as `modelgauge …`; returns its exit code and what it printed."""
        program, *arguments = line.split()
        assert program == "deepeval"
        done = children.run(
            *("-m", "modelgauge", *arguments, "-p", "no:cacheprovider"),
            kind=children.Nesting,
            cwd=self.folder,
            env=children.environment("PYTEST", **VARIABLES),
            stderr=subprocess.STDOUT,
        )
        return done.returncode, done.stdout


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """A reader in a folder of its own, with a default judge that needs no network."""
    with outside_of_any_session(tmp_path, monkeypatch) as folder:
        monkeypatch.setenv("MODELGAUGE_JUDGE", JUDGE)
        monkeypatch.setenv("MODELGAUGE_PLUGINS", str(HERE / "scripted_judge.py"))
        yield Reader(folder)
