"""What people and programs see of recorded runs, byte for byte: three widths of terminals, pages, JSON, CSV, Markdown.

`recordings/` holds runs as `record_runs.py` made them. `expected/` holds, for each scene, its commands with their exit
codes and output. To accept an intended change, run `TESTS_ACCEPT_SNAPSHOTS=1 pytest tests/snapshots` and read the diff.
"""

import os
import re
import secrets
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from scenes import SCENES

from modelgauge.cli.main import cli
from modelgauge.plugins import discovery

HERE = Path(__file__).parent
WIDTHS = (40, 80, 120)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A data folder with the recorded runs."""
    folder = tmp_path_factory.mktemp("snapshots")
    shutil.copytree(HERE / "recordings", folder / "run_data")
    for path in folder.rglob("*"):
        os.utime(path, (1_800_000_000, 1_800_000_000))  # the last signs of life of a run that was killed
    return folder


@pytest.fixture
def show(recorded, monkeypatch):
    """Run a command, and return its text as a snapshot has it."""
    for name in ("NO_COLOR", "COLUMNS", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(recorded)
    monkeypatch.setattr(discovery, "installed_entry_points", list)
    monkeypatch.setattr(
        secrets, "token_hex", lambda size=None: "0" * 32
    )  # GitHub's commands stop at a random token

    def show(line, width=80):
        ended = CliRunner(env={"COLUMNS": str(width)}).invoke(cli, line.split(), prog_name="modelgauge")
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        text = f"$ COLUMNS={width} modelgauge {line}\n{ended.stdout}"
        if ended.stderr:
            text += f"--- stderr\n{ended.stderr}"
        return f"{text}--- exit {ended.exit_code}\n"

    return show


def round_numbers(text):
    """Round numbers to 12 digits: the last ones differ between processors."""
    return re.sub(r"-?\d+\.\d{12,}(?:e-?\d+)?", lambda number: f"{float(number[0]):.12g}", text)


def read_written(folder):
    """Return the text of the files that a command wrote; of pages without the styles and scripts that all share."""
    parts = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        text = path.read_bytes().decode("utf-8")
        if path.suffix == ".html":
            text = re.sub(r"sha256-[\w+/=]+", "", text)
            text = re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>", "", text)
        parts.append(f"=== {path.relative_to(folder).as_posix()}\n{text}\n")
    return "".join(parts)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_scene_looks_as_recorded(scene, show, recorded):
    out = recorded / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    seen = "".join(show(line, width) for line in scene.at_widths for width in WIDTHS)
    seen = round_numbers(seen + "".join(map(show, scene.lines)) + read_written(out))
    expected = HERE / "expected" / f"{scene.name}.txt"
    if os.environ.get("TESTS_ACCEPT_SNAPSHOTS"):
        expected.write_bytes(seen.encode("utf-8"))
    assert seen.encode("utf-8") == expected.read_bytes()
