"""`modelgauge plugins check`: the kit on the command line."""

import json

import pytest

from modelgauge.cli.main import cli

BROKEN = """
from modelgauge import FunctionSUT, hookimpl

@hookimpl
def modelgauge_register_suts(register):
    register("bad*name", FunctionSUT, str.upper, version=1)
"""


@pytest.fixture
def modelgauge(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*args):
        code = cli.main(["plugins", "check", *args], standalone_mode=False)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_a_sound_plugin_exits_with_0_and_lists_every_rule(modelgauge):
    code, out, _ = modelgauge("demo_annotators")
    assert code == 0
    assert "annotator demo_starts_with_y" in out
    assert "0 problems" in out.splitlines()[-1]


def test_a_broken_file_exits_with_1_and_says_the_fix(modelgauge, tmp_path):
    (tmp_path / "mine.py").write_text(BROKEN, encoding="utf-8")
    code, out, _ = modelgauge("--plugin", "mine.py")
    assert code == 1
    assert "PROBLEM names" in out
    assert "Fix: Use letters" in out


def test_quiet_shows_what_is_wrong_and_the_counts(modelgauge, tmp_path):
    (tmp_path / "mine.py").write_text(BROKEN, encoding="utf-8")
    code, out, _ = modelgauge("mine.py", "--quiet")
    first, problem, fix, at, _, counts = out.splitlines()
    assert code == 1
    assert first == "sut bad*name"
    assert problem.split()[:2] == ["PROBLEM", "names"]
    assert fix.strip().startswith("Fix: Use letters")
    assert at.strip() == f"At: {tmp_path / 'mine.py'}:4"
    assert "1 problem" in counts
    code, out, _ = modelgauge("demo_annotators", "-q")
    assert code == 0
    assert len(out.splitlines()) == 1


def test_json_is_one_object(modelgauge, tmp_path):
    (tmp_path / "mine.py").write_text(BROKEN, encoding="utf-8")
    code, out, _ = modelgauge("mine.py", "--json")
    answer = json.loads(out)
    assert code == 1
    assert answer["passed"] is False
    (plugin,) = answer["plugins"]
    assert plugin["name"] == "mine.py"
    assert [one["rule"] for one in plugin["findings"] if one["status"] == "problem"] == ["names"]


def test_an_unknown_name_and_no_name_are_wrong_usage(modelgauge):
    code, _, err = modelgauge("demo_annotatorz")
    assert code == 2
    assert "Did you mean 'demo_annotators'" in err
    code, _, err = modelgauge()
    assert code == 2
    assert "--plugin FILE" in err
