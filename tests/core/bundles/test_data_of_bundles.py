"""Bundles of runs whose test has external data: from the receiver's own folder, given, or included."""

import json
import shutil

import pytest

from modelgauge.cli.main import cli

PLUGIN = """
import json
from pathlib import Path
from modelgauge import ExternalData, PromptResponseTest, TestItem, hookimpl

class Made(ExternalData):
    def fetch(self, target, progress):
        source = Path(__file__).with_name("source.json")
        target.write_bytes(source.read_bytes())

class Quiz(PromptResponseTest):
    def get_dependencies(self):
        return {"questions": Made(LICENSE)}

    def make_test_items(self, dependencies):
        return [TestItem(word) for word in json.loads(dependencies["questions"].read_text())]

    def measure_quality(self, item):
        return {"length": len(item.text)}

@hookimpl
def modelgauge_register_tests(register):
    register("quiz", Quiz)
"""


def run(*arguments, code=0):
    assert cli.main([*map(str, arguments)], standalone_mode=False) == code


@pytest.fixture
def sent(tmp_path, monkeypatch, capsys):
    """`sent(license, *options)`: a bundle of a run, in the folder of somebody who has the test but not its data."""

    def send(license_given, *options):
        sender, receiver = tmp_path / "sender", tmp_path / "receiver"
        for folder in (sender, receiver):
            folder.mkdir()
            argument = f"license={license_given!r}" if license_given else ""
            (folder / "quiz.py").write_text(PLUGIN.replace("LICENSE", argument))
        (sender / "source.json").write_text('["a", "bb"]')
        monkeypatch.chdir(sender)
        run("run-test", "--plugin", "quiz.py", "--test", "quiz", "--sut", "demo_yes_no")
        run("bundle", "latest", "-o", receiver / "run.mgb", *options)
        said = capsys.readouterr()
        shutil.copy(sender / "source.json", tmp_path / "copy.json")
        shutil.rmtree(sender)
        monkeypatch.chdir(receiver)
        run("unbundle", "run.mgb", "-o", "received")
        return said.out + said.err

    return send


AGAIN = ("--plugin", "quiz.py", "--test", "quiz")


def folder_of_run(tmp_path):
    [folder] = (tmp_path / "receiver" / "received" / "runs").iterdir()
    return folder


def commands(tmp_path):
    return (("rescore", folder_of_run(tmp_path), *AGAIN), ("check", "run.mgb", "--rescore", *AGAIN))


def test_missing_data_is_requested_where_it_is_used(sent, tmp_path, capsys):
    sent(None)
    for command in commands(tmp_path):
        run(*command, code=2)
        said = " ".join(capsys.readouterr().err.split())
        assert "--dependency questions=FILE" in said
        assert f"{tmp_path}/receiver/run_data/dependencies/quiz/questions/data" in said
        assert "modelgauge-check" not in said


@pytest.mark.parametrize("way", ["given", "added", "put"])
def test_data_of_the_receiver_is_used(sent, tmp_path, capsys, way):
    sent(None)
    copy, options = tmp_path / "copy.json", ()
    if way == "given":
        options = ("--dependency", f"questions={copy}")
    elif way == "added":
        run("dependencies", "add", "--plugin", "quiz.py", "--test", "quiz", "questions", copy)
    else:
        drop = tmp_path / "receiver" / "run_data" / "dependencies" / "quiz" / "questions" / "data"
        drop.parent.mkdir(parents=True)
        shutil.copy(copy, drop)
    for command in reversed(commands(tmp_path)):
        run(*command, *options)
    assert "2 items, nothing wrong" in capsys.readouterr().out


def test_other_data_is_refused(sent, tmp_path, capsys):
    sent(None)
    (tmp_path / "copy.json").write_text('["a", "cc"]')
    for command in commands(tmp_path):
        run(*command, "--dependency", f"questions={tmp_path / 'copy.json'}", code=2)
        assert "is pinned to" in capsys.readouterr().err


def test_data_with_a_license_is_taken_along(sent, tmp_path, capsys):
    assert "Left out" not in sent("MIT", "--with-data")
    for command in reversed(commands(tmp_path)):
        run(*command)
    assert "2 items, nothing wrong" in capsys.readouterr().out


def test_data_without_a_license_is_left_out(sent, tmp_path):
    said = sent(None, "--with-data")
    assert "Left out: the data quiz:questions; no license was declared when it was stored;" in said
    assert not (tmp_path / "receiver" / "received" / "dependencies").exists()


def test_data_stored_before_its_license_was_declared_is_taken_along_once_it_is_added(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "source.json").write_text('["a", "bb"]')
    for number, argument in enumerate(["", "license='MIT'"], start=1):
        (tmp_path / f"quiz_{number}.py").write_text(PLUGIN.replace("LICENSE", argument))
    run("run-test", "--plugin", "quiz_1.py", "--test", "quiz", "--sut", "demo_yes_no")
    run("bundle", "latest", "-o", "without.mgb", "--with-data")
    assert "`modelgauge dependencies add` notes it" in capsys.readouterr().err
    run("dependencies", "add", "--plugin", "quiz_2.py", "--test", "quiz", "questions", "source.json")
    run("bundle", "latest", "-o", "with.mgb", "--with-data")
    assert "Left out" not in capsys.readouterr().err


def test_data_that_was_changed_beside_its_manifest_is_not_used(sent, tmp_path, capsys):
    sent("MIT", "--with-data")
    [manifest] = (tmp_path / "receiver" / "received").rglob("manifest.json")
    data = manifest.parent / "data" / "data"
    data.write_text('["x"]')
    forged = json.loads(manifest.read_text())
    forged["content"] = "0" * 64
    manifest.write_text(json.dumps(forged))
    run("rescore", folder_of_run(tmp_path), *AGAIN, code=2)
    assert "could not be fetched" in capsys.readouterr().err


def test_redacted_bundle_takes_no_data(sent, capsys):
    sent(None)
    run("bundle", "received", "-o", "x.mgb", "--redact", "--with-data", code=2)
    assert "give one of them" in capsys.readouterr().err
