"""The choice of a tier by a session's arguments, in a project that has the tests of `PROJECT`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from children import environment
from tiers import SLOW_FILES, SLOW_FIXTURES

ROOT = Path(__file__).parents[2]

PROJECT = {
    "pytest.ini": "[pytest]\ntestpaths = tests\n",
    "conftest.py": """
        pytest_plugins = ["tiers"]

        from hypothesis import settings

        settings.register_profile("few", max_examples=2, database=None)
        settings.register_profile("fixed", max_examples=7, database=None)
        settings.load_profile("fixed")
        """,
    "tests/caches/test_remote.py": "def test_remote(): pass",
    "tests/test_law.py": """
        from hypothesis import given, strategies

        seen = []

        @given(strategies.integers())
        def test_law(number):
            seen.append(number)

        def test_number_of_examples():
            print("examples:", len(seen))
        """,
    "tests/test_plain.py": "def test_plain(): pass",
    "tests/test_server.py": """
        import pytest

        @pytest.fixture
        def mlflow(): pass

        def test_server(mlflow): pass
        """,
    "tests/test_sweep.py": """
        import pytest
        from tiers import sample

        @pytest.mark.parametrize("case", sample(range(100), 3))
        def test_sweep(case): pass
        """,
}

SLOW = {"test_remote": 1, "test_server": 1}
SAMPLED = {"test_law": 1, "test_sweep": 3}
WHOLE = {"test_law": 1, "test_sweep": 100}
QUICK = {"test_plain": 1, "test_number_of_examples": 1}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    for name, text in PROJECT.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        indent = re.match(r"\n( *)", text)
        file.write_text(text.replace(f"\n{indent[1]}", "\n") if indent else text, encoding="utf-8")
    return folder


def session(folder, *arguments):
    """Run a session of pytest: how many tests ran, by name, and what it printed."""
    command = [sys.executable, "-m", "pytest", "-v", "-s", "-p", "no:modelgauge", "-p", "no:cacheprovider"]
    env = environment("PYTEST", PYTHONPATH=str(ROOT / "tests" / "settings"))
    done = subprocess.run(
        [*command, *arguments], cwd=folder, env=env, check=True, capture_output=True, text=True
    )
    names = re.findall(r"::(\w+)(?:\[\d+\])? (?:examples: \d+\n)?PASSED", done.stdout)
    return {name: names.count(name) for name in names}, done.stdout


def test_session_without_arguments_runs_the_first_tier(project):
    ran, output = session(project)
    assert ran == {**QUICK, **SAMPLED}
    assert "examples: 2\n" in output


def test_session_of_slow_tests_runs_the_second_tier(project):
    ran, _ = session(project, "-m", "slow")
    assert ran == {**SLOW, **WHOLE}


@pytest.mark.parametrize("arguments", [["tests"], ["-m", "slow or not slow"]], ids=["folder", "expression"])
def test_session_runs_both_tiers_in_full(project, arguments):
    ran, output = session(project, *arguments)
    assert ran == {**QUICK, **SLOW, **WHOLE}
    assert "examples: 7\n" in output


def test_selected_workers_run_the_tier_of_the_session(project):
    _, output = session(project, "-n", "2", "-m", "slow")
    assert f"{sum({**SLOW, **WHOLE}.values())} passed" in output


def test_all_that_is_called_slow_exists():
    assert [path for path in SLOW_FILES if not (ROOT / path).exists()] == []
    sources = [
        file.read_text(encoding="utf-8")
        for folder in ("tests", "plugins", "demo_plugins")
        for file in (ROOT / folder).rglob("*.py")
    ]
    assert [name for name in SLOW_FIXTURES if not any(f"def {name}(" in text for text in sources)] == []
