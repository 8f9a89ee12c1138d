"""What is heavy is imported when it is needed: looking around costs no pydantic, numpy or SDK."""

import json
import os
import subprocess
import sys

import pytest

HEAVY = (
    "aiohttp",
    "anthropic",
    "attr",
    "backports.zstd",
    "diskcache",
    "httpx",
    "jinja2",
    "jsonlines",
    "numpy",
    "openai",
    "pydantic",
    "rich",
    "scipy",
    "torch",
    "tqdm",
)
QUIET = "import sys; from modelgauge.cli.main import main\n"

PROBE = """\
import atexit, json, sys

def tell():
    print(json.dumps([name for name in {heavy!r} if name in sys.modules]), file=sys.stderr)

atexit.register(tell)
{code}
"""

ENTRANCES = {
    "import modelgauge": "import modelgauge",
    "hookimpl": "from modelgauge import hookimpl",
    "errors": "from modelgauge import errors",
    "modelgauge --help": f"{QUIET}sys.argv[1:] = ['--help']; main()",
    "modelgauge run-test --help": f"{QUIET}sys.argv[1:] = ['run-test', '--help']; main()",
    "modelgauge compare --help": f"{QUIET}sys.argv[1:] = ['compare', '--help']; main()",
    "modelgauge --version": f"{QUIET}sys.argv[1:] = ['--version']; main()",
    "modelgauge list": f"{QUIET}sys.argv[1:] = ['list', '--json']; main()",
    "modelgauge list-tests": f"{QUIET}sys.argv[1:] = ['list-tests']; main()",
    "modelgauge plugins": f"{QUIET}sys.argv[1:] = ['plugins']; main()",
}


def imported_by(code: str, folder) -> set[str]:
    """The heavy modules that a fresh interpreter holds after this code."""
    script = PROBE.format(heavy=HEAVY, code=code)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MODELGAUGE_", "COV"))}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_looking_around_is_cheap(entrance: str, tmp_path) -> None:
    assert imported_by(ENTRANCES[entrance], tmp_path) == set()


def test_the_probe_sees_an_import(tmp_path) -> None:
    assert "pydantic" in imported_by("from modelgauge import TestItem", tmp_path)
